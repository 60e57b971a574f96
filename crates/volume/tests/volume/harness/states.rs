//! Crash states of one volume: what cuts can leave, told apart, each judged once.

use std::collections::{BTreeMap, BTreeSet};

use onefold_format::volume::VolumeMode;
use onefold_units::convert::{index64, u64_from};
use onefold_units::{Nanos, Rng};
use onefold_volume::{MemberId, MemberInfo, drive};

use super::disk::{Disk, Fate};
use super::image::Image;
use super::oracle::Oracle;
use super::rig::{Op, Rig, open, read_all, read_family};
use super::setup::Setup;
use super::spoil::{assert_right_or_refused, spoil};

/// Unflushed writes of which every subset is tried.
const SUBSET_MAX: usize = 10;

/// Subsets that are tried of more writes than that: a move of the faithful modes' cleaner is a write by itself.
const fn sampled(mode: VolumeMode) -> u64 {
    if matches!(mode, VolumeMode::Log) { 200 } else { 6 }
}

/// Blocks that are looked at.
pub(crate) const LOOK: [std::ops::Range<u64>; 2] = [0..64, 1010..1040];

/// What became of the backing, beside the loss of whole writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Nothing else.
    Cut,
    /// Some writes are there in part.
    Torn,
    /// Power failed again in the opening.
    Opening,
    /// A request had failed before.
    Failed,
    /// A bit is wrong.
    Rotten,
    /// A write landed elsewhere.
    Misdirected,
    /// A write that was reported done never happened.
    Dropped,
}

impl Fault {
    pub(crate) const ALL: [(Self, &'static str); 7] = [
        (Self::Cut, "cut"),
        (Self::Torn, "torn"),
        (Self::Opening, "cut in their opening"),
        (Self::Failed, "after a request failed"),
        (Self::Rotten, "rotten"),
        (Self::Misdirected, "with a misdirected write"),
        (Self::Dropped, "with a dropped write"),
    ];
}

/// What is done with states beside opening them. One in so many each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Lives on with a further cut; one in sixteen times as many is cut at every request of its opening.
    pub(crate) lives: u64,
    /// Is spoiled.
    pub(crate) spoiled: u64,
}

/// The crash states of all histories of a volume.
pub(crate) struct States {
    pub(crate) setup: Setup,
    pub(crate) begin: Image,
    pub(crate) oracle: Oracle,
    pub(crate) rng: Rng,
    /// What is done by one in so many of those that come next.
    effort: Effort,
    /// Operations of second lives.
    ops: &'static [Op],
    /// Those that were judged, and what had to survive.
    seen: BTreeSet<(u64, u64)>,
    /// What the backing holds in each, and what led to it first.
    distinct: BTreeMap<u64, Fault>,
    tried: u64,
    /// Those that were cut while a remap was not durable.
    pub(crate) remapped: u64,
    /// Markers of histories.
    pub(crate) markers: u64,
    /// Spoiled ones that were refused.
    pub(crate) refused: u64,
}

impl States {
    /// Those of a volume at rest.
    pub(crate) fn new(mut rig: Rig, ops: &'static [Op], effort: Effort) -> Self {
        assert!(rig.settle());
        let mut begin = rig.disk.cut(&mut rig.rng, |_, _| Fate::Lost);
        begin.settle();
        Self {
            setup: rig.setup,
            begin,
            oracle: rig.oracle,
            rng: Rng::new(1),
            effort,
            ops,
            seen: BTreeSet::new(),
            distinct: BTreeMap::new(),
            tried: 0,
            remapped: 0,
            markers: 0,
            refused: 0,
        }
    }

    /// How many backings that differ each fault led to first.
    pub(crate) fn distinct(&self, fault: Fault) -> u64 {
        u64_from(self.distinct.values().filter(|found| **found == fault).count())
    }

    /// The volume as it is in the beginning.
    pub(crate) fn rig(&mut self) -> Rig {
        let disk = Disk::new(self.begin.clone());
        let seed = self.rng.next_u64();
        Rig::open(self.setup, disk, self.oracle.clone(), seed).expect("the beginning opens")
    }

    /// Judges every state that a cut now can leave.
    pub(crate) fn cut_everywhere(&mut self, rig: &Rig, ops: &[Op]) {
        let count = rig.disk.volatile();
        let exhaustive = count <= SUBSET_MAX;
        let subsets = if exhaustive { 1 << count } else { sampled(self.setup.mode) };
        for subset in 0..subsets {
            let subset = if exhaustive { subset } else { self.rng.next_u64() };
            for fault in [Fault::Cut, Fault::Torn] {
                let fate = |n: usize, rng: &mut Rng| match (subset >> (n % 64) & 1, fault) {
                    (0, _) => Fate::Lost,
                    (_, Fault::Torn) if rng.below(2) == 0 => Fate::Torn,
                    _ => Fate::Whole,
                };
                if fault == Fault::Cut || subset != 0 {
                    let image = rig.disk.cut(&mut self.rng, fate);
                    self.judge(&image, rig, fault, ops);
                }
            }
        }
    }

    /// Judges some states that a cut now can leave, after a request failed.
    pub(crate) fn cut_somewhere(&mut self, rig: &Rig, ops: &[Op]) {
        for _ in 0..2 {
            let image = rig.disk.random_cut(&mut self.rng);
            self.judge(&image, rig, Fault::Failed, ops);
        }
    }

    fn judge(&mut self, image: &Image, rig: &Rig, fault: Fault, ops: &[Op]) {
        let digest = image.digest();
        if !self.seen.insert((digest, rig.oracle.promised_all())) {
            return;
        }
        self.distinct.entry(digest).or_insert(fault);
        self.tried += 1;
        self.remapped += u64::from(rig.disk.has_volatile_remap());
        let judged = recover(&self.setup, image, &rig.oracle);
        let (seq, infos) = judged
            .unwrap_or_else(|what| panic!("{what}, {fault:?} after {ops:?}, {:?}", rig.failed));
        let mut expected = rig.oracle.clone();
        if self.tried.is_multiple_of(self.effort.lives) {
            expected.recovered_family(infos);
            expected.recovered(seq);
            self.live_on(image, &expected);
            if self.tried.is_multiple_of(self.effort.lives * 16) {
                self.cut_the_opening(image, [&rig.oracle, &expected], (fault, ops));
            }
        }
        // The modes of the papers have no checksums of data.
        if self.setup.mode == VolumeMode::Log && self.tried.is_multiple_of(self.effort.spoiled) {
            self.spoil(image, &rig.oracle, ops);
        }
    }

    /// A second life, and another cut.
    fn live_on(&mut self, image: &Image, oracle: &Oracle) {
        let seed = self.rng.next_u64();
        let disk = Disk::new(image.clone());
        let mut rig = Rig::open(self.setup, disk, oracle.clone(), seed).expect("it opened before");
        rig.fuse = Some(1 + self.rng.below(40));
        for _ in 0..6 {
            let op = self.ops[index64(self.rng.below(u64_from(self.ops.len())))];
            if !rig.run(op) {
                break;
            }
        }
        let mut rig =
            rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}, in a second life"));
        rig.assert_counts();
    }

    /// Power fails at every request of an opening: the next one comes to the same, `expected`.
    /// Where the first cut tore a header and an opening that was cut as well tore what it wrote
    /// there, both parts may make the header whole. It counts then, as it might have `before`.
    fn cut_the_opening(
        &mut self,
        image: &Image,
        [before, expected]: [&Oracle; 2],
        (fault, ops): (Fault, &[Op]),
    ) {
        for fuse in 0.. {
            let mut disk = Disk::new(image.clone());
            disk.fuse = Some(fuse);
            let through = open(&mut disk, &self.setup).is_ok();
            let left = disk.random_cut(&mut self.rng);
            self.distinct.entry(left.digest()).or_insert(Fault::Opening);
            let mut judged = recover(&self.setup, &left, expected);
            if judged.is_err() && !through && fault == Fault::Torn {
                judged = recover(&self.setup, &left, before);
            }
            judged.unwrap_or_else(|what| {
                panic!("{what}, after a cut of the opening, {fault:?} after {ops:?}")
            });
            if through {
                return;
            }
        }
    }

    /// A backing that lied as well: what a write left is rotten, elsewhere, or nowhere.
    fn spoil(&mut self, image: &Image, oracle: &Oracle, ops: &[Op]) {
        let faults = [Fault::Rotten, Fault::Misdirected, Fault::Dropped];
        let fault = faults[index64(self.rng.below(3))];
        let Some((image, at)) = spoil(image, fault, &mut self.rng) else { return };
        self.distinct.entry(image.digest()).or_insert(fault);
        let judged = assert_right_or_refused(&self.setup, &image, oracle);
        let refused = judged.unwrap_or_else(|what| panic!("{what}, {fault:?} at {at}, {ops:?}"));
        self.refused += u64::from(refused);
    }
}

/// Opens a volume and looks at what it holds.
fn recover(
    setup: &Setup,
    image: &Image,
    oracle: &Oracle,
) -> Result<(u64, Vec<MemberInfo>), String> {
    let mut disk = Disk::new(image.clone());
    let (mut volume, recovery) = open(&mut disk, setup).map_err(|error| error.to_string())?;
    let mut found = vec![None; index64(oracle.blocks())];
    for range in LOOK {
        let part = read_all(&mut *volume, &mut disk, MemberId::DEVICE, range.clone())?;
        found[index64(range.start)..index64(range.end)].copy_from_slice(&part);
    }
    drive(&mut *volume, &mut disk, Nanos::new(1));
    oracle.check(recovery.seq, &found)?;
    let family = read_family(&mut *volume, &mut disk, Some(&LOOK))?;
    oracle.check_family(&family)?;
    Ok((recovery.seq, family.into_iter().map(|(info, _)| info).collect()))
}
