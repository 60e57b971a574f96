//! Power fails at every operation of the medium: what survives of each zone is a prefix of what was written to it, with
//! everything that was promised.

use onefold_nand::{Media, MediaError};
use onefold_ssd::Payload;
use onefold_ssd::zns::{
    Flushing, Select, Zns, ZnsConfig, ZnsError, ZnsLayout, ZoneAction, ZoneState,
};
use onefold_testkit::{Cut, CutMedia, Power, for_each_seed};
use onefold_units::convert::{index, index64, narrow, u32_from, u64_from};
use onefold_units::{Rng, ZoneId};

use crate::common::{NOW, bytes_of, config, geometry, limits, read};

const CUTS: [Cut; 3] = [Cut::Before, Cut::Torn, Cut::After];
const ZONES: u32 = 5;
const SIZE: u64 = 16;
const CAPACITY: usize = 12;

/// One life of a zone, from a reset to the next.
#[derive(Clone, Debug, Default)]
struct Life {
    versions: Vec<u64>,
    /// Blocks that a power cut must not take.
    promised: usize,
    /// It was finished, as far as is known.
    finished: bool,
    /// That is promised.
    finish_promised: bool,
}

/// What each zone may hold after a power cut: the last of these lives, or one before it whose reset may be lost.
struct Model {
    zones: Vec<Vec<Life>>,
    version: u64,
}

impl Model {
    fn last(&mut self, zone: usize) -> &mut Life {
        self.zones[zone].last_mut().unwrap()
    }

    /// Everything that completed is durable.
    fn flushed(&mut self) {
        for lives in &mut self.zones {
            let mut life = lives.pop().unwrap();
            life.promised = life.versions.len();
            life.finish_promised = life.finished;
            *lives = vec![life];
        }
    }

    /// The zone as it was found has to be one that it may be.
    fn settle(&mut self, zone: usize, state: ZoneState, blocks: &[u64]) {
        let written = blocks.iter().take_while(|version| **version != 0).count();
        assert!(blocks[written..].iter().all(|version| *version == 0), "zone {zone}: {blocks:?}");
        let full = state == ZoneState::Full;
        let fits = |life: &&Life| {
            written >= life.promised
                && life.versions.get(..written).is_some_and(|prefix| prefix == &blocks[..written])
                && if full {
                    life.finished || written == CAPACITY
                } else {
                    !life.finish_promised && written < CAPACITY
                }
        };
        let lives = &self.zones[zone];
        let Some(life) = lives.iter().rev().find(fits) else {
            panic!("zone {zone} is {state:?} with {blocks:?}, expected one of {lives:?}");
        };
        let expected = match () {
            () if full => ZoneState::Full,
            () if written == 0 => ZoneState::Empty,
            () => ZoneState::Closed,
        };
        assert_eq!(state, expected, "zone {zone}");
        let versions = life.versions[..written].to_vec();
        self.zones[zone] =
            vec![Life { versions, promised: written, finished: full, finish_promised: full }];
    }
}

struct Device {
    zns: Zns<CutMedia>,
    model: Model,
    /// A completed command is durable.
    durable_at_once: bool,
    /// A reset or a finish is.
    actions_at_once: bool,
    /// A flush whose second half is still to come.
    flushing: Option<Flushing>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write {
        zone: u32,
        blocks: u32,
        fua: bool,
    },
    Act {
        zone: u32,
        action: ZoneAction,
    },
    Flush,
    /// The medium is synchronised by the driver, and other commands come before the flush is over.
    BeginFlush,
    EndFlush,
}

impl Step {
    fn random(rng: &mut Rng) -> Self {
        let zone = narrow(rng.below(u64::from(ZONES)));
        match rng.below(24) {
            0..13 => Self::Write { zone, blocks: 1 + narrow(rng.below(6)), fua: rng.below(6) == 0 },
            13..15 => Self::Act { zone, action: ZoneAction::Reset },
            15 => Self::Act { zone, action: ZoneAction::Finish },
            16 => Self::Act { zone, action: ZoneAction::Close },
            17 => Self::Act { zone, action: ZoneAction::Open },
            18 => Self::Flush,
            19..22 => Self::BeginFlush,
            _ => Self::EndFlush,
        }
    }
}

impl Device {
    fn new(config: &ZnsConfig, power: Power, seed: u64) -> Self {
        let layout = ZnsLayout::new(config).unwrap();
        let media = CutMedia::new(&config.geometry, layout.nvram_bytes(), power, seed);
        let volatile = config.cache_bytes > 0 && config.cache_volatile;
        Self {
            zns: Zns::new(*config, media).unwrap(),
            model: Model { zones: vec![vec![Life::default()]; index(ZONES)], version: 0 },
            durable_at_once: power == Power::Device && !volatile,
            actions_at_once: power == Power::Device,
            flushing: None,
        }
    }

    /// `false` if power failed in it.
    fn run(&mut self, step: Step) -> bool {
        match self.try_run(step) {
            Err(ZnsError::Media(MediaError::PowerLost)) => false,
            Err(error) if error.status().0 == 1 => true,
            Err(error) => panic!("{step:?}: {error}"),
            Ok(()) => {
                if self.durable_at_once {
                    self.model.flushed();
                }
                true
            }
        }
    }

    fn try_run(&mut self, step: Step) -> Result<(), ZnsError> {
        match step {
            Step::Write { zone, blocks, fua } => self.write(zone, blocks, fua),
            Step::Act { zone, action } => self.act(zone, action),
            Step::Flush => {
                self.zns.flush(NOW)?;
                self.model.flushed();
                Ok(())
            }
            Step::BeginFlush if self.flushing.is_none() => {
                self.flushing = Some(self.zns.begin_flush()?);
                self.zns.nand_mut().media_mut().sync().map_err(ZnsError::Media)?;
                self.model.flushed();
                Ok(())
            }
            Step::BeginFlush => Ok(()),
            Step::EndFlush => match self.flushing.take() {
                Some(flushing) => self.zns.end_flush(&flushing),
                None => Ok(()),
            },
        }
    }

    fn write(&mut self, zone: u32, blocks: u32, fua: bool) -> Result<(), ZnsError> {
        let from = self.model.version;
        let versions: Vec<u64> = (from + 1..=from + u64::from(blocks)).collect();
        self.model.version += u64::from(blocks);
        let start = u64::from(zone) * SIZE;
        let bytes = bytes_of(&versions);
        let before = self.model.last(index(zone)).clone();
        self.model.last(index(zone)).versions.extend(&versions);
        let result = self.zns.append(NOW, start, blocks, fua, &Payload::Write(&bytes));
        match result {
            Ok(done) => {
                assert_eq!(done.lba - start, u64_from(before.versions.len()));
                if fua {
                    let life = self.model.last(index(zone));
                    life.promised = life.versions.len();
                }
                Ok(())
            }
            Err(ZnsError::Media(error)) => Err(ZnsError::Media(error)),
            Err(error) => {
                *self.model.last(index(zone)) = before;
                Err(error)
            }
        }
    }

    fn act(&mut self, zone: u32, action: ZoneAction) -> Result<(), ZnsError> {
        let at = index(zone);
        let before = self.model.zones[at].clone();
        match action {
            ZoneAction::Reset => self.model.zones[at].push(Life::default()),
            ZoneAction::Finish => self.model.last(at).finished = true,
            _ => {}
        }
        let result = self.zns.manage(NOW, Select::One(ZoneId::new(zone)), action);
        match result {
            Ok(_) if self.actions_at_once && action == ZoneAction::Reset => {
                let life = self.model.zones[at].pop().unwrap();
                self.model.zones[at] = vec![life];
            }
            Ok(_) if self.actions_at_once && action == ZoneAction::Finish => {
                let life = self.model.last(at);
                (life.finish_promised, life.promised) = (true, life.versions.len());
            }
            Ok(_) | Err(ZnsError::Media(_)) => {}
            Err(_) => self.model.zones[at] = before,
        }
        result.map(drop)
    }

    fn arm(&mut self, after: u64, cut: Cut) {
        self.zns.nand_mut().media_mut().arm(after, cut);
    }

    /// Power comes back, and everything is looked at.
    fn recover(self) -> Self {
        let config = *self.zns.config();
        let mut media = self.zns.into_media();
        media.restore();
        let (zns, report) = Zns::recover(config, media).unwrap();
        assert_eq!(report.read_only, 0);
        let mut again = Self { zns, flushing: None, ..self };
        let (_, active) = again.zns.resources();
        assert_eq!(active, report.closed);
        for info in again.zns.report(ZoneId::new(0), None, index(ZONES), false).unwrap().zones {
            let blocks = read(&mut again.zns, info.start, u32_from(CAPACITY)).unwrap();
            again.model.settle(info.zone.index(), info.state, &blocks);
            let written = blocks.iter().take_while(|version| **version != 0).count();
            if let Some(pointer) = info.write_pointer {
                assert_eq!(pointer - info.start, u64_from(written));
            }
        }
        again.zns.check().unwrap();
        again
    }
}

fn random_config(rng: &mut Rng) -> ZnsConfig {
    let page = [1, 2, 4][index64(rng.below(3))];
    let mut config = config(page, ZONES, limits(3, 4));
    config.zone_dies = 1 + narrow(rng.below(2));
    config.geometry = geometry(page, 20);
    config.cache_bytes = [0, 0, 16_384, 1 << 20][index64(rng.below(4))];
    config.cache_volatile = rng.below(2) == 0;
    config
}

fn random_run(seed: u64, power: Power) {
    let mut rng = Rng::fork(seed, 42);
    let mut device = Device::new(&random_config(&mut rng), power, seed);
    for _ in 0..4 {
        device.arm(rng.below(120), CUTS[index64(rng.below(3))]);
        while device.run(Step::random(&mut rng)) {}
        // Power may fail in recovery, too.
        if rng.below(3) == 0 {
            device = fail_in_recovery(device, &mut rng);
        }
        device = device.recover();
    }
}

fn fail_in_recovery(device: Device, rng: &mut Rng) -> Device {
    let config = *device.zns.config();
    let mut media = device.zns.into_media();
    media.restore();
    media.arm(rng.below(12), CUTS[index64(rng.below(3))]);
    drop(Zns::recover(config, &mut media));
    media.restore();
    // A namespace that is only there to carry the medium to the next recovery.
    let zns = Zns::new(config, media).unwrap();
    Device { zns, flushing: None, ..device }
}

#[test]
fn random_device_cuts() {
    for_each_seed(("onefold-ssd", "zns", "random_device_cuts"), 250, |seed| {
        random_run(seed, Power::Device);
    });
}

#[test]
fn random_host_cuts() {
    for_each_seed(("onefold-ssd", "zns", "random_host_cuts"), 250, |seed| {
        random_run(seed, Power::Host);
    });
}

/// A fixed history with every kind of command, cut at every operation of the medium in every way.
#[test]
fn every_cut_of_a_history() {
    let write = |zone, blocks| Step::Write { zone, blocks, fua: false };
    let act = |zone, action| Step::Act { zone, action };
    let steps = [
        write(0, 3),
        write(1, 12),
        Step::Flush,
        write(0, 2),
        Step::Write { zone: 2, blocks: 1, fua: true },
        act(0, ZoneAction::Finish),
        write(2, 4),
        act(1, ZoneAction::Reset),
        write(1, 5),
        act(2, ZoneAction::Reset),
        act(0, ZoneAction::Reset),
        write(0, 1),
    ];
    for page in [1, 2, 4] {
        for cache in [0, 1 << 20] {
            for cut in CUTS {
                for after in 0.. {
                    let mut config = config(page, ZONES, limits(3, 4));
                    config.cache_bytes = cache;
                    let mut device = Device::new(&config, Power::Device, after);
                    device.arm(after, cut);
                    let done = steps.iter().all(|step| device.run(*step));
                    let mut device = device.recover();
                    // It goes on where it is.
                    device.zns.nand_mut().media_mut().disarm();
                    for zone in 0..ZONES {
                        assert!(device.run(write(zone, 4)));
                    }
                    device.recover();
                    if done {
                        break;
                    }
                }
            }
        }
    }
}

/// A cut loses what a volatile cache held and nothing else: a device that wrote everything at once would pass the tests
/// above.
#[test]
fn a_volatile_cache_loses_what_was_not_flushed() {
    for (cache, volatile, expected) in [(0, true, 7), (1 << 20, true, 6), (1 << 20, false, 7)] {
        let mut config = config(4, ZONES, limits(3, 4));
        (config.cache_bytes, config.cache_volatile) = (cache, volatile);
        let mut device = Device::new(&config, Power::Device, 1);
        assert!(device.run(Step::Write { zone: 0, blocks: 6, fua: false }));
        assert!(device.run(Step::Flush));
        assert!(device.run(Step::Write { zone: 0, blocks: 1, fua: false }));
        let device = device.recover();
        let pointer = device.zns.zone(ZoneId::new(0)).unwrap().write_pointer;
        assert_eq!(pointer, Some(expected), "cache {cache} volatile {volatile}");
    }
}
