//! A device under test beside the model of what it should hold.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use onefold_ftl::{Ftl, FtlError, RecoverError, RemapOptions, RemapRange};
use onefold_nand::{FaultSpec, Media, MediaError};
use onefold_testkit::{Cut, CutMedia, Model, Power, fill, version_of};
use onefold_units::convert::{index, index64, low32};
use onefold_units::{Lpn, Nanos, Rng, SuperblockId};

use crate::common::{AT, Op, Setup, pairs, pick, read};

pub(crate) const CUTS: [Cut; 3] = [Cut::Before, Cut::Torn, Cut::After];

/// Reads of a unit before it counts as lost: a read fault passes, lost content does not come back.
const READS: u32 = 40;

/// A device under test and what it should hold.
#[derive(Clone)]
pub(crate) struct Rig {
    pub(crate) setup: Setup,
    pub(crate) ftl: Ftl<CutMedia>,
    model: Model,
    /// Targets of an atomic remap that is under way, and what they are to hold.
    atomic: Vec<(u32, Vec<u64>)>,
    /// Units that the next flush unmaps.
    moving: BTreeSet<u32>,
    /// Remaps so far: their numbers.
    commands: u128,
    /// Numbered remaps that were done.
    done: Vec<(u128, Vec<RemapRange>, RemapOptions)>,
}

/// Whether a command is to be done as a whole or not at all.
fn is_atomic(options: RemapOptions) -> bool {
    options.atomic || options.moves && options.id.is_some()
}

impl Rig {
    pub(crate) fn new(setup: &Setup, power: Power, seed: u64) -> Self {
        let setup = *setup;
        let media = CutMedia::new(&setup.geometry, setup.nvram_bytes(), power, seed);
        let model = Model::new(setup.units(), power == Power::Device);
        Self {
            setup,
            ftl: setup.build(media),
            model,
            atomic: Vec::new(),
            moving: BTreeSet::new(),
            commands: 0,
            done: Vec::new(),
        }
    }

    fn has_faults(&self) -> bool {
        let FaultSpec { program, erase, read, bit_rot, .. } = self.setup.faults;
        [program, erase, read, bit_rot].iter().any(|share| *share > 0.0)
    }

    /// Carries out an operation. `false` if power failed in it.
    pub(crate) fn run(&mut self, op: Op) -> bool {
        match self.try_run(op) {
            Ok(()) => true,
            Err(FtlError::Media(MediaError::PowerLost)) => false,
            Err(error) => panic!("{op:?}: {error} with {:?}", self.setup),
        }
    }

    pub(crate) fn try_run(&mut self, op: Op) -> Result<(), FtlError> {
        match op {
            Op::Write { lpn, stream } => {
                let mut data = self.setup.unit();
                fill(lpn, self.model.write(lpn), &mut data);
                let pages = self.setup.geometry.pages_per_unit();
                self.moving.remove(&lpn);
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
                for lpn in &self.moving {
                    self.model.trim_begins(*lpn..*lpn + 1);
                }
                self.ftl.flush(AT)?;
                let moved = std::mem::take(&mut self.moving);
                self.model.flushed_but(&moved);
            }
            Op::Checkpoint => {
                self.ftl.checkpoint_now(Nanos::ZERO)?;
                self.model.flushed();
            }
            Op::Maintain(step) => self.ftl.maintain(Nanos::ZERO, step)?,
            Op::Remap { ranges, options } => {
                let ranges: Vec<_> = ranges.into_iter().flatten().collect();
                self.remap(&ranges, options)?;
            }
        }
        Ok(())
    }

    fn remap(&mut self, ranges: &[RemapRange], options: RemapOptions) -> Result<(), FtlError> {
        // Every numbered command has a number of its own.
        self.commands += 1;
        let options = RemapOptions { id: options.id.map(|_| self.commands), ..options };
        let pairs = pairs(ranges);
        self.begin_atomic(&pairs, options);
        self.model.remap_begins(&pairs, options.moves);
        let done = match self.ftl.remap(AT, ranges, options) {
            Err(FtlError::Unreadable { .. }) if self.has_faults() => {
                self.model.remap_failed(&pairs, options.moves);
                for (dst, _) in &pairs {
                    // Whether the next flush unmaps it is open, too.
                    if self.moving.remove(dst) {
                        self.model.may_be_unmapped(*dst);
                    }
                }
                self.atomic.clear();
                return Ok(());
            }
            done => done?,
        };
        self.atomic.clear();
        assert!(!done.repeated, "a new number was taken for an old one");
        let skipped: u32 = done.outcomes.iter().map(|outcome| outcome.skipped).sum();
        if skipped > 0 {
            assert!(is_atomic(options), "skipped without a reason: {:?}", done.outcomes);
            assert_eq!(index(skipped), pairs.len(), "{:?}", done.outcomes);
            self.model.remap_skipped(&pairs, options.moves);
            return Ok(());
        }
        self.model.remap_completes(&pairs, options.moves);
        if options.moves_on_flush {
            self.moving.extend(pairs.iter().map(|(_, src)| *src));
        }
        for (dst, _) in &pairs {
            self.moving.remove(dst);
        }
        if let Some(id) = options.id {
            self.done.push((id, ranges.to_vec(), options));
        }
        Ok(())
    }

    /// A command that is known to be done is not done again.
    fn repeat(&mut self) {
        for (_, ranges, options) in std::mem::take(&mut self.done).iter().rev().take(3) {
            let done = self.ftl.remap(AT, ranges, *options).unwrap();
            assert!(done.repeated && done.outcomes.is_empty(), "done twice: {options:?}");
        }
    }

    /// Notes what an atomic command is about to change.
    fn begin_atomic(&mut self, pairs: &[(u32, u32)], options: RemapOptions) {
        self.atomic.clear();
        if is_atomic(options) {
            // A unit that may hold the new content anyway says nothing.
            let tells = |unit: &(u32, Vec<u64>)| {
                let (lpn, new) = unit;
                self.model.allowed(*lpn).iter().all(|version| !new.contains(version))
            };
            let units = pairs.iter().map(|(dst, src)| (*dst, self.model.newest(*src)));
            self.atomic = units.filter(tells).collect();
        }
    }

    /// All or nothing: no unit of the command is new while another is not.
    fn check_atomic(&self, found: &[u64]) {
        let is_new = |(lpn, new): &(u32, Vec<u64>)| new.contains(&found[index(*lpn)]);
        let new = self.atomic.iter().filter(|unit| is_new(unit)).count();
        let all = self.atomic.len();
        assert!(new == 0 || new == all, "{new} of {:?} with {:?}", self.atomic, self.setup);
    }

    pub(crate) fn arm(&mut self, after: u64, cut: Cut) {
        self.ftl.nand_mut().media_mut().arm(after, cut);
    }

    /// Power comes back: recovers, cut again `again` times meanwhile, and checks everything.
    pub(crate) fn recover(self, rng: &mut Rng, again: u32) -> Self {
        self.try_recover(rng, again).expect("no space on a healthy device")
    }

    /// `None` if the device is worn out: recovery may need space for a checkpoint.
    pub(crate) fn try_recover(self, rng: &mut Rng, again: u32) -> Option<Self> {
        let wears = self.has_faults();
        let Self { mut setup, ftl, mut model, atomic, commands, done, .. } = self;
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
        let moving = BTreeSet::new();
        let model_now = model.clone();
        let mut rig = Self { setup, ftl, model: model_now, atomic, moving, commands, done };
        rig.settle(&mut model);
        rig.atomic.clear();
        if !wears && rig.model.trims_are_durable() {
            rig.repeat();
        }
        rig.done.clear();
        rig.model = model;
        for lpn in 0..setup.units() {
            let (one, two) = (rig.ftl.slot(Lpn::new(lpn)), twin.slot(Lpn::new(lpn)));
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

    /// Power is back: tells the states apart in which it may have failed. The first number stands for the
    /// medium (spare areas tell data apart, but for what a torn program made of it), the second for that
    /// and all that recovery is checked against.
    pub(crate) fn crash_state(&mut self) -> (u64, u64) {
        let media = self.ftl.nand_mut().media_mut();
        media.restore();
        let mut hasher = DefaultHasher::new();
        for superblock in (0..self.setup.geometry.superblocks()).map(SuperblockId::new) {
            hasher.write(&media.read_head(superblock).unwrap());
            media.read_spares(superblock).unwrap().hash(&mut hasher);
        }
        let mut nvram = vec![0; index64(self.setup.nvram_bytes())];
        media.nvram_read(0, &mut nvram).unwrap();
        hasher.write(&nvram);
        let medium = hasher.finish();
        for lpn in 0..self.setup.units() {
            self.model.allowed(lpn).hash(&mut hasher);
        }
        self.atomic.hash(&mut hasher);
        for (id, _, _) in &self.done {
            id.hash(&mut hasher);
        }
        (medium, hasher.finish())
    }

    fn settle(&mut self, model: &mut Model) {
        self.ftl.check().unwrap_or_else(|e| panic!("{e} with {:?}", self.setup));
        let reads = if self.has_faults() { READS } else { 1 };
        let mut found = vec![0; index(self.setup.units())];
        for lpn in 0..self.setup.units() {
            let mut read_once = || read(&mut self.ftl, &self.setup, lpn);
            match (0..reads).find_map(|_| read_once().ok()) {
                Some(data) => {
                    let settled = model.settle(lpn, &data);
                    settled.unwrap_or_else(|e| panic!("{e} with {:?}", self.setup));
                    found[index(lpn)] = version_of(&data).unwrap_or(u64::MAX);
                }
                None if self.has_faults() => model.settle_unreadable(lpn),
                None => panic!("unit {lpn} is unreadable with {:?}", self.setup),
            }
        }
        if !self.has_faults() {
            self.check_atomic(&found);
        }
    }

    pub(crate) fn fill(&mut self) {
        for lpn in 0..self.setup.units() {
            assert!(self.run(Op::Write { lpn, stream: 0 }));
        }
    }

    pub(crate) fn overwrite(&mut self, rng: &mut Rng, overwrites: u32) {
        for _ in 0..overwrites {
            let lpn = low32(rng.below(u64::from(self.setup.units())));
            let stream = low32(rng.below(u64::from(self.setup.config.streams)));
            assert!(self.run(Op::Write { lpn, stream }));
        }
    }

    /// The device can be filled and overwritten: no space has leaked.
    pub(crate) fn fill_and_overwrite(&mut self, rng: &mut Rng) {
        self.fill();
        self.overwrite(rng, self.setup.units() * 2);
        self.ftl.check().unwrap();
        for lpn in 0..self.setup.units() {
            assert!(self.run(Op::Read { lpn }));
        }
    }
}
