//! Power fails anywhere: what was flushed is there afterwards, and nothing else than what was written.

mod common;

use common::{AT, Op, Setup, pick, plain_config, read, spec};
use onefold_ftl::{Ftl, FtlConfig, FtlError, RecoverError, VictimKind};
use onefold_nand::{FaultSpec, GeometrySpec, MediaError, Span};
use onefold_testkit::{Cut, CutMedia, Model, Power, budget, fill, for_each_seed};
use onefold_units::convert::low32;
use onefold_units::{Lpn, Nanos, Rng};

const CUTS: [Cut; 3] = [Cut::Before, Cut::Torn, Cut::After];

/// Reads of a unit before it counts as lost: a read fault passes, lost content does not come back.
const READS: u32 = 40;

/// A device under test and what it should hold.
#[derive(Clone)]
struct Rig {
    setup: Setup,
    ftl: Ftl<CutMedia>,
    model: Model,
}

impl Rig {
    fn new(setup: &Setup, power: Power, seed: u64) -> Self {
        let setup = *setup;
        let media = CutMedia::new(&setup.geometry, setup.nvram_bytes(), power, seed);
        let model = Model::new(setup.units(), power == Power::Device);
        Self { setup, ftl: setup.build(media), model }
    }

    fn has_faults(&self) -> bool {
        let FaultSpec { program, erase, read, bit_rot, .. } = self.setup.faults;
        [program, erase, read, bit_rot].iter().any(|share| *share > 0.0)
    }

    /// Carries out an operation. `false` if power failed in it.
    fn run(&mut self, op: Op) -> bool {
        match self.try_run(op) {
            Ok(()) => true,
            Err(FtlError::Media(MediaError::PowerLost)) => false,
            Err(error) => panic!("{op:?}: {error} with {:?}", self.setup),
        }
    }

    fn try_run(&mut self, op: Op) -> Result<(), FtlError> {
        match op {
            Op::Write { lpn, stream } => {
                let mut data = self.setup.unit();
                fill(lpn, self.model.write(lpn), &mut data);
                let pages = self.setup.geometry.pages_per_unit();
                self.ftl.write(AT, Lpn::new(lpn), pages, stream, &data)?;
            }
            Op::Trim { lpn, count } => {
                self.model.trim_begins(lpn..lpn + count);
                self.ftl.trim(AT, Lpn::new(lpn), count)?;
                self.model.trim_completes(lpn..lpn + count);
            }
            Op::Read { lpn } => match read(&mut self.ftl, &self.setup, lpn) {
                Ok(data) => self.model.check_running(lpn, &data).unwrap(),
                Err(FtlError::Unreadable { .. }) if self.has_faults() => {}
                Err(error) => return Err(error),
            },
            Op::Flush => {
                self.ftl.flush(AT)?;
                self.model.flushed();
            }
            Op::Checkpoint => {
                self.ftl.checkpoint_now(Nanos::ZERO)?;
                self.model.flushed();
            }
        }
        Ok(())
    }

    fn arm(&mut self, after: u64, cut: Cut) {
        self.ftl.nand_mut().media_mut().arm(after, cut);
    }

    /// Power comes back: recovers, cut again `again` times meanwhile, and checks everything.
    fn recover(self, rng: &mut Rng, again: u32) -> Self {
        self.try_recover(rng, again).expect("no space on a healthy device")
    }

    /// `None` if the device is worn out: recovery may need space for a checkpoint.
    fn try_recover(self, rng: &mut Rng, again: u32) -> Option<Self> {
        let wears = self.has_faults();
        let Self { mut setup, ftl, mut model } = self;
        let bad = ftl.space().bad_superblocks;
        let mut media = ftl.into_media();
        setup.faults.seed += 1;
        media.restore();
        for _ in 0..again {
            media.arm(rng.below(12), *pick(rng, &CUTS));
            match setup.recover(&mut media) {
                // Recovery may write less than that: then power goes out after it.
                Ok(_) | Err(RecoverError::Ftl(FtlError::Media(MediaError::PowerLost))) => {}
                Err(error) => panic!("{error} with {setup:?}"),
            }
            media.restore();
        }
        let copy = media.clone();
        let (ftl, report) = match setup.recover(media) {
            Err(RecoverError::Ftl(FtlError::NoSpace)) if wears => return None,
            recovered => recovered.unwrap_or_else(|e| panic!("{e}: {setup:?}")),
        };
        let (twin, twin_report) = setup.recover(copy).unwrap();
        assert_eq!(report, twin_report, "recovery depends on more than the medium");
        assert_eq!(report.lost_units, 0, "{report:?} with {setup:?}");
        // The wear entry of one superblock may have been cut off.
        assert!(ftl.space().bad_superblocks + 1 >= bad, "bad superblocks came back");
        let mut rig = Self { setup, ftl, model: model.clone() };
        rig.settle(&mut model);
        rig.model = model;
        for lpn in 0..setup.units() {
            let (one, two) = (rig.ftl.touch(Lpn::new(lpn)), twin.touch(Lpn::new(lpn)));
            assert_eq!(one, two, "unit {lpn}: two recoveries differ");
        }
        // A recovery after a recovery gives the same contents.
        if rng.below(4) == 0 {
            let (ftl, _) = setup.recover(twin.into_media()).unwrap();
            let mut third = Self { ftl, ..rig.clone() };
            for lpn in 0..setup.units() {
                assert!(third.run(Op::Read { lpn }));
            }
        }
        Some(rig)
    }

    fn settle(&mut self, model: &mut Model) {
        self.ftl.check().unwrap_or_else(|e| panic!("{e} with {:?}", self.setup));
        let reads = if self.has_faults() { READS } else { 1 };
        for lpn in 0..self.setup.units() {
            let mut read_once = || read(&mut self.ftl, &self.setup, lpn);
            match (0..reads).find_map(|_| read_once().ok()) {
                Some(data) => {
                    let settled = model.settle(lpn, &data);
                    settled.unwrap_or_else(|e| panic!("{e} with {:?}", self.setup));
                }
                None if self.has_faults() => model.settle_unreadable(lpn),
                None => panic!("unit {lpn} is unreadable with {:?}", self.setup),
            }
        }
    }

    fn fill(&mut self) {
        for lpn in 0..self.setup.units() {
            assert!(self.run(Op::Write { lpn, stream: 0 }));
        }
    }

    fn overwrite(&mut self, rng: &mut Rng, overwrites: u32) {
        for _ in 0..overwrites {
            let lpn = low32(rng.below(u64::from(self.setup.units())));
            let stream = low32(rng.below(u64::from(self.setup.config.streams)));
            assert!(self.run(Op::Write { lpn, stream }));
        }
    }

    /// The device can be filled and overwritten: no space has leaked.
    fn fill_and_overwrite(&mut self, rng: &mut Rng) {
        self.fill();
        self.overwrite(rng, self.setup.units() * 2);
        self.ftl.check().unwrap();
        for lpn in 0..self.setup.units() {
            assert!(self.run(Op::Read { lpn }));
        }
    }
}

fn random_run(seed: u64, power: Power) {
    let mut rng = Rng::new(seed);
    let setup = Setup::random(&mut rng);
    let mut rig = Rig::new(&setup, power, seed);
    let trims = *pick(&mut rng, &[10, 10, 10, 50]);
    // Some devices are full when it begins.
    if rng.below(3) > 0 {
        rig.fill();
        assert!(rig.run(Op::Flush));
    }
    for _ in 0..4 {
        let within = *pick(&mut rng, &[4, 40, 400]);
        rig.arm(rng.below(within), *pick(&mut rng, &CUTS));
        for _ in 0..600 {
            if !rig.run(Op::random(&mut rng, &setup, trims)) {
                break;
            }
        }
        let again = low32(rng.below(3));
        rig = rig.recover(&mut rng, again);
    }
    if rng.below(4) == 0 {
        rig.fill_and_overwrite(&mut rng);
    }
}

#[test]
fn random_device_cuts() {
    for_each_seed(("onefold-ftl", "power_cut", "random_device_cuts"), 10_000, |seed| {
        random_run(seed, Power::Device);
    });
}

#[test]
fn random_host_cuts() {
    for_each_seed(("onefold-ftl", "power_cut", "random_host_cuts"), 4_000, |seed| {
        random_run(seed, Power::Host);
    });
}

/// The devices of the exhaustive test: every way in which programs, metadata and frontiers differ.
fn small_devices() -> Vec<Setup> {
    let one = spec(12, 8, 4096, 4096);
    let two_dies = GeometrySpec { channels: 2, pages: 4, ..one };
    let per_die = GeometrySpec { channels: 2, blocks: 10, span: Span::Die, ..one };
    let wide = spec(12, 6, 8192, 4096);
    let wider = spec(14, 4, 16384, 4096);
    let plain = FtlConfig { gc_pacing: false, ..plain_config() };
    let pages = FtlConfig { metadata_pages: true, ..plain_config() };
    let shared = FtlConfig { separate_gc: false, ..plain_config() };
    let streams = FtlConfig { streams: 2, checkpoint: 0.1, ..plain };
    let small_cache = FtlConfig { map_cache_bytes: Some(4096), victim: VictimKind::Fifo, ..shared };
    let devices = [
        (one, plain),
        (two_dies, pages),
        (per_die, small_cache),
        (one, FtlConfig { metadata_pages: true, ..streams }),
        (wide, pages),
        (wide, shared),
        (wider, plain),
        (wide, streams),
    ];
    let setups = devices.map(|(spec, config)| Setup::new(spec, config, 0.9).unwrap());
    setups.to_vec()
}

/// Every sequence of three operations, a cut at every media operation of them, in every way; then on,
/// and a second cut close after.
#[test]
fn every_cut_of_every_short_history() {
    let a = Op::Write { lpn: 0, stream: 0 };
    let b = Op::Write { lpn: 3, stream: 1 };
    let ops = [a, b, Op::Trim { lpn: 0, count: 2 }, Op::Flush, Op::Checkpoint];
    let mut rng = Rng::new(1);
    for setup in small_devices() {
        // Collection is at different places when the history begins.
        for overwrites in [0, 7] {
            let mut begin = Rig::new(&setup, Power::Device, 5);
            begin.fill();
            begin.overwrite(&mut rng, setup.units() + overwrites);
            assert!(begin.run(Op::Flush));
            // A small budget for the random tests thins this one out, too.
            let step = if budget(10_000) < 10_000 { 9 } else { 1 };
            for history in (0..ops.len().pow(3)).step_by(step) {
                let n = ops.len();
                let history = [ops[history % n], ops[history / n % n], ops[history / n / n]];
                cut_everywhere(&begin, history, &mut rng);
            }
        }
    }
}

fn cut_everywhere(begin: &Rig, history: [Op; 3], rng: &mut Rng) {
    for cut in CUTS {
        for after in 0.. {
            let mut rig = begin.clone();
            rig.arm(after, cut);
            let held = history.into_iter().all(|op| rig.run(op));
            // In turn, power also fails in what comes first after recovery.
            let mut rig = rig.recover(rng, u32::from(after % 3 == 0));
            rig.arm(after % 5, CUTS[usize::from(after % 2 == 0)]);
            for lpn in 1..4 {
                if !rig.run(Op::Write { lpn, stream: 0 }) {
                    break;
                }
            }
            rig.recover(rng, 0);
            if held {
                break;
            }
        }
    }
}

/// Flash that fails: an error or the right content, never another one.
#[test]
fn random_faults_and_cuts() {
    for_each_seed(("onefold-ftl", "power_cut", "random_faults_and_cuts"), 2_000, |seed| {
        let mut rng = Rng::new(seed);
        let mut setup = Setup::random(&mut rng);
        setup.faults = FaultSpec {
            program: *pick(&mut rng, &[0.0, 0.002, 0.01]),
            erase: *pick(&mut rng, &[0.0, 0.01]),
            read: *pick(&mut rng, &[0.0, 0.02]),
            bit_rot: *pick(&mut rng, &[0.0, 0.02]),
            bad_superblocks: 0,
            seed,
        };
        setup.config.endurance = *pick(&mut rng, &[0, 30]);
        let mut rig = Rig::new(&setup, Power::Device, seed);
        for _ in 0..4 {
            rig.arm(rng.below(200), *pick(&mut rng, &CUTS));
            for _ in 0..400 {
                match rig.try_run(Op::random(&mut rng, &setup, 10)) {
                    Ok(()) => {}
                    Err(FtlError::Media(MediaError::PowerLost)) => break,
                    // The end of its life, which has to come from worn superblocks.
                    Err(FtlError::NoSpace) => {
                        let FaultSpec { program, erase, .. } = setup.faults;
                        let wears = program > 0.0 || erase > 0.0 || setup.config.endurance > 0;
                        assert!(wears, "no space on a healthy device: {setup:?}");
                        return;
                    }
                    Err(error) => panic!("{error} with {setup:?}"),
                }
            }
            match rig.try_recover(&mut rng, 0) {
                Some(recovered) => rig = recovered,
                None => return,
            }
        }
    });
}

/// Superblocks that are bad from the factory were not in the wear table: after a recovery they were
/// used like any other.
#[test]
fn bad_superblocks_stay_bad() {
    let mut setup = Setup::new(spec(20, 8, 4096, 4096), plain_config(), 0.5).unwrap();
    setup.faults.bad_superblocks = 3;
    let media = CutMedia::new(&setup.geometry, setup.nvram_bytes(), Power::Device, 1);
    let ftl = setup.build(media);
    assert_eq!(ftl.space().bad_superblocks, 3);
    let (ftl, _) = setup.recover(ftl.into_media()).unwrap();
    assert_eq!(ftl.space().bad_superblocks, 3);
}
