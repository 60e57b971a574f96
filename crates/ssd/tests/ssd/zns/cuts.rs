//! Power fails at every operation of the medium: what survives of each zone is a prefix of what was written to it, with
//! everything that was promised. Conventional zones in front hold what FLUSH and FUA covered, or something later.

use onefold_nand::{Media, MediaError};
use onefold_ssd::Payload;
use onefold_ssd::zns::{Flushing, Select, Zns, ZnsConfig, ZnsError, ZnsMedia, ZoneAction};
use onefold_testkit::{Cut, CutMedia, Power, for_each_seed};
use onefold_units::convert::{index, index64, narrow, u32_from, u64_from};
use onefold_units::{Rng, ZoneId};

use super::common::{NOW, bytes_of, config, geometry, limits, media, read, with_conventional};
use super::lives::{CAPACITY, Life, Model};
use super::mapped::Mapped;

const CUTS: [Cut; 3] = [Cut::Before, Cut::Torn, Cut::After];
const ZONES: u32 = 5;
const SIZE: u64 = 16;

struct Device {
    zns: Zns<CutMedia>,
    model: Model,
    /// Conventional zones, which come first.
    front: u32,
    mapped: Mapped,
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
    Overwrite {
        at: u32,
        blocks: u32,
        fua: bool,
    },
    Deallocate {
        at: u32,
        blocks: u32,
    },
    Flush,
    /// The medium is synchronised by the driver, and other commands come before the flush is over.
    BeginFlush,
    EndFlush,
}

impl Step {
    /// A step of a namespace with so many conventional zones.
    fn random(rng: &mut Rng, front: u32) -> Self {
        if front > 0 && rng.below(2) == 0 {
            return Self::random_mapped(rng, front);
        }
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

    fn random_mapped(rng: &mut Rng, front: u32) -> Self {
        let (zone, at) = (rng.below(front.into()), rng.below(SIZE));
        let blocks = narrow(1 + rng.below(6.min(SIZE - at)));
        let at = narrow(zone * SIZE + at);
        match rng.below(8) {
            0 => Self::Deallocate { at, blocks },
            one => Self::Overwrite { at, blocks, fua: one == 1 },
        }
    }
}

impl Device {
    fn new(config: &ZnsConfig, power: Power, seed: u64) -> Self {
        let media = media(config, |geometry, nvram| CutMedia::new(geometry, nvram, power, seed));
        let front = config.conventional_zones();
        let volatile = config.cache_bytes > 0 && config.cache_volatile;
        Self {
            zns: Zns::new(*config, media).unwrap(),
            model: Model { zones: vec![vec![Life::default()]; index(ZONES)], version: 0 },
            front,
            mapped: Mapped::new(front * narrow(SIZE), power == Power::Device),
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
            Step::Overwrite { at, blocks, fua } => {
                self.mapped.write(&mut self.zns, at, blocks, fua)
            }
            Step::Deallocate { at, blocks } => self.mapped.deallocate(&mut self.zns, at, blocks),
            Step::Flush => {
                self.zns.flush(NOW)?;
                self.model.flushed();
                self.mapped.flushed();
                Ok(())
            }
            Step::BeginFlush if self.flushing.is_none() => {
                self.flushing = Some(self.zns.begin_flush(NOW)?);
                self.mapped.flushed();
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
        let start = u64::from(self.front + zone) * SIZE;
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
        let result = self.zns.manage(NOW, Select::One(ZoneId::new(self.front + zone)), action);
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

    /// Power fails at an operation of conventional zones.
    fn arm_mapped(&mut self, after: u64, cut: Cut) {
        let device = self.zns.conventional_mut().unwrap();
        device.ftl_mut().nand_mut().media_mut().arm(after, cut);
    }

    /// Power comes back, and everything is looked at.
    fn recover(self) -> Self {
        let config = *self.zns.config();
        let media = restored(self.zns.into_media());
        let (zns, report) = Zns::recover(config, media).unwrap();
        assert_eq!(report.read_only, 0);
        let mut again = Self { zns, flushing: None, ..self };
        let (_, active) = again.zns.resources();
        assert_eq!(active, report.closed);
        let first = ZoneId::new(again.front);
        for info in again.zns.report(first, None, index(ZONES), false).unwrap().zones {
            let blocks = read(&mut again.zns, info.start, u32_from(CAPACITY)).unwrap();
            again.model.settle(info.zone.index() - first.index(), info.state, &blocks);
            let written = blocks.iter().take_while(|version| **version != 0).count();
            if let Some(pointer) = info.write_pointer {
                assert_eq!(pointer - info.start, u64_from(written));
            }
        }
        again.mapped.settle(&mut again.zns);
        again.zns.check().unwrap();
        again
    }
}

/// Power is back.
fn restored(mut media: ZnsMedia<CutMedia>) -> ZnsMedia<CutMedia> {
    media.sequential.restore();
    if let Some(medium) = &mut media.conventional {
        medium.restore();
    }
    media
}

fn random_config(rng: &mut Rng) -> ZnsConfig {
    let page = [1, 2, 4][index64(rng.below(3))];
    let mut config = config(page, ZONES, limits(3, 4));
    config.zone_dies = 1 + narrow(rng.below(2));
    config.geometry = geometry(page, 20);
    config.cache_bytes = [0, 0, 16_384, 1 << 20][index64(rng.below(4))];
    config.cache_volatile = rng.below(2) == 0;
    if rng.below(2) == 0 { with_conventional(&config, 2) } else { config }
}

fn random_run(seed: u64, power: Power) {
    let mut rng = Rng::fork(seed, 42);
    let mut device = Device::new(&random_config(&mut rng), power, seed);
    for _ in 0..4 {
        let (after, cut) = (rng.below(120), CUTS[index64(rng.below(3))]);
        if device.front > 0 && rng.below(2) == 0 {
            device.arm_mapped(after, cut);
        } else {
            device.arm(after, cut);
        }
        let front = device.front;
        while device.run(Step::random(&mut rng, front)) {}
        // Power may fail in recovery, too.
        if rng.below(3) == 0 {
            device = fail_in_recovery(device, &mut rng);
        }
        device = device.recover();
    }
}

fn fail_in_recovery(device: Device, rng: &mut Rng) -> Device {
    let config = *device.zns.config();
    let mut media = restored(device.zns.into_media());
    let (after, cut) = (rng.below(12), CUTS[index64(rng.below(3))]);
    match &mut media.conventional {
        Some(medium) if rng.below(2) == 0 => medium.arm(after, cut),
        _ => media.sequential.arm(after, cut),
    }
    let (sequential, conventional) = (&mut media.sequential, media.conventional.as_mut());
    drop(Zns::recover(config, ZnsMedia { sequential, conventional }));
    let media = restored(media);
    // A namespace that is only there to carry the medium to the next recovery.
    let zns = Zns::new(config, media).unwrap();
    Device { zns, flushing: None, ..device }
}

#[test]
fn random_device_cuts() {
    for_each_seed(("onefold-ssd", "ssd", "zns::cuts::random_device_cuts"), 250, |seed| {
        random_run(seed, Power::Device);
    });
}

#[test]
fn random_host_cuts() {
    for_each_seed(("onefold-ssd", "ssd", "zns::cuts::random_host_cuts"), 250, |seed| {
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
