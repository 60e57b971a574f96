//! Power fails anywhere: what was flushed is there afterwards, and nothing else than what was written.

mod common;

use common::{AT, Op, Setup, pick, read};
use onefold_ftl::{Ftl, FtlError, RecoverError};
use onefold_nand::MediaError;
use onefold_testkit::{Cut, CutMedia, Model, Power, fill, for_each_seed};
use onefold_units::convert::low32;
use onefold_units::{Lpn, Nanos, Rng};

const CUTS: [Cut; 3] = [Cut::Before, Cut::Torn, Cut::After];

/// A device under test and what it should hold.
struct Rig {
    setup: Setup,
    ftl: Ftl<CutMedia>,
    model: Model,
}

impl Rig {
    fn new(setup: Setup, power: Power, seed: u64) -> Self {
        let media = CutMedia::new(&setup.geometry, setup.nvram_bytes(), power, seed);
        let model = Model::new(setup.units(), power == Power::Device);
        Self { setup, ftl: setup.build(media), model }
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
            Op::Read { lpn } => {
                let data = read(&mut self.ftl, &self.setup, lpn)?;
                self.model.check_running(lpn, &data).unwrap();
            }
            Op::Flush => {
                self.ftl.flush(AT)?;
                self.model.flushed();
            }
            Op::Checkpoint => {
                self.ftl.checkpoint_now(Nanos::ZERO)?;
            }
        }
        Ok(())
    }

    /// Power comes back: recovers, cut again `again` times meanwhile, and checks everything.
    fn recover(self, rng: &mut Rng, again: u32) -> Self {
        let Self { setup, ftl, mut model } = self;
        let mut media = ftl.into_media();
        media.restore();
        for _ in 0..again {
            media.arm(rng.below(12), *pick(rng, &CUTS));
            match setup.recover(&mut media) {
                // Power held, or recovery wrote less than that: it goes out afterwards.
                Ok(_) | Err(RecoverError::Ftl(FtlError::Media(MediaError::PowerLost))) => {}
                Err(error) => panic!("{error} with {setup:?}"),
            }
            media.restore();
        }
        let copy = media.clone();
        let (ftl, report) = setup.recover(media).unwrap_or_else(|e| panic!("{e}: {setup:?}"));
        let (mut twin, again) = setup.recover(copy).unwrap();
        assert_eq!(report, again, "recovery depends on more than the medium");
        assert_eq!(report.lost_units, 0, "{report:?} with {setup:?}");
        let mut rig = Self { setup, ftl, model: model.clone() };
        rig.check_all(&mut model);
        rig.model = model;
        for lpn in 0..setup.units() {
            let (one, two) = (rig.ftl.touch(Lpn::new(lpn)), twin.touch(Lpn::new(lpn)));
            assert_eq!(one, two, "unit {lpn}: two recoveries differ");
        }
        // A recovery after a recovery gives the same contents.
        if rng.below(4) == 0 {
            let media = twin.into_media();
            (twin, _) = setup.recover(media).unwrap();
            for lpn in 0..setup.units() {
                let data = read(&mut twin, &setup, lpn).unwrap();
                rig.model.check_running(lpn, &data).unwrap();
            }
        }
        rig
    }

    fn check_all(&mut self, model: &mut Model) {
        self.ftl.check().unwrap_or_else(|e| panic!("{e} with {:?}", self.setup));
        for lpn in 0..self.setup.units() {
            let data = read(&mut self.ftl, &self.setup, lpn)
                .unwrap_or_else(|e| panic!("reading unit {lpn}: {e} with {:?}", self.setup));
            model.settle(lpn, &data).unwrap_or_else(|e| panic!("{e} with {:?}", self.setup));
        }
    }

    /// The device can be filled and overwritten: no space has leaked.
    fn fill_and_overwrite(&mut self, rng: &mut Rng, overwrites: u32) {
        for lpn in 0..self.setup.units() {
            assert!(self.run(Op::Write { lpn, stream: 0 }));
        }
        for _ in 0..overwrites {
            let lpn = low32(rng.below(u64::from(self.setup.units())));
            let stream = low32(rng.below(u64::from(self.setup.config.streams)));
            assert!(self.run(Op::Write { lpn, stream }));
        }
        self.ftl.check().unwrap();
        for lpn in 0..self.setup.units() {
            assert!(self.run(Op::Read { lpn }));
        }
    }
}

fn random_run(seed: u64, power: Power) {
    let mut rng = Rng::new(seed);
    let setup = Setup::random(&mut rng);
    let mut rig = Rig::new(setup, power, seed);
    // Some devices are full when it begins.
    if rng.below(3) > 0 {
        for lpn in 0..setup.units() {
            assert!(rig.run(Op::Write { lpn, stream: 0 }));
        }
        assert!(rig.run(Op::Flush));
    }
    for _ in 0..4 {
        let within = *pick(&mut rng, &[4, 40, 400]);
        let after = rng.below(within);
        rig.ftl.nand_mut().media_mut().arm(after, *pick(&mut rng, &CUTS));
        for _ in 0..600 {
            let op = Op::random(&mut rng, &setup);
            if !rig.run(op) {
                break;
            }
        }
        let again = low32(rng.below(3));
        rig = rig.recover(&mut rng, again);
    }
    if rng.below(4) == 0 {
        let overwrites = setup.units() * 2;
        rig.fill_and_overwrite(&mut rng, overwrites);
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
    for_each_seed(("onefold-ftl", "power_cut", "random_host_cuts"), 2_000, |seed| {
        random_run(seed, Power::Host);
    });
}
