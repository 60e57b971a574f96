//! Every cut of every short history.

use std::collections::BTreeSet;

use onefold_format::volume::VolumeMode;
use onefold_testkit::budget;
use onefold_units::Rng;
use onefold_units::convert::{index64, u64_from};
use onefold_volume::{CleanMove, MemberId, MemberInfo, drive};

use crate::disk::{Disk, Fate, Trimmed};
use crate::image::Image;
use crate::oracle::Oracle;
use crate::rig::{Op, Order, Rig, open, read_all, read_family};
use crate::setup::{OPTIONS, Setup};

/// Unflushed writes of which every subset is tried.
const SUBSET_MAX: usize = 10;

/// Subsets that are tried of more writes than that: a move of the faithful modes' cleaner is a write by itself.
const fn sampled(mode: VolumeMode) -> u64 {
    if matches!(mode, VolumeMode::Log) { 200 } else { 6 }
}

/// What histories are made of. Blocks 1020 to 1027 are in two pages of the map.
const OPS: [Op; 10] = [
    Op::Write { lba: 40, blocks: 1, fua: false },
    Op::Write { lba: 1020, blocks: 8, fua: false },
    Op::Write { lba: 3, blocks: 1, fua: false },
    Op::Trim { lba: 2, blocks: 1020 },
    Op::Flush,
    Op::Write { lba: 2, blocks: 2, fua: true },
    Op::Checkpoint,
    Op::Clean,
    Op::Snapshot,
    Op::Delete,
];

/// Only volumes of mode `log` have snapshots.
fn ops(mode: VolumeMode) -> &'static [Op] {
    if mode == VolumeMode::Log { &OPS } else { &OPS[..8] }
}

/// Blocks that are looked at.
const LOOK: [std::ops::Range<u64>; 2] = [0..64, 1010..1040];

fn setup(mode: VolumeMode) -> Setup {
    Setup { mode, ..Setup::of(64 * 134, 1050, OPTIONS) }
}

fn remaps(setup: &Setup) -> bool {
    setup.options.clean_move == CleanMove::Remap
}

/// A volume at rest with live blocks in several log segments, some of which are worth cleaning, and perhaps a snapshot.
fn begin(setup: Setup, snapshot: bool) -> Rig {
    let mut rig = Rig::new(setup, 5);
    rig.order = Order::InTurn;
    let (rounds, blocks) = if setup.mode == VolumeMode::Log { (6, 64) } else { (3, 16) };
    for round in 0..rounds {
        for lba in (0..blocks).step_by(8) {
            assert!(rig.run(Op::Write { lba: lba + round % 2 * 4, blocks: 8, fua: false }));
        }
        assert!(rig.run(Op::Write { lba: 1015, blocks: 9, fua: false }));
        assert!(rig.settle());
        if snapshot && round == 2 {
            assert!(rig.run(Op::Snapshot) && rig.settle());
        }
    }
    rig.close_and_reopen().expect("a closed volume opens")
}

/// The crash states of all histories.
struct States {
    setup: Setup,
    begin: Image,
    oracle: Oracle,
    rng: Rng,
    /// Those that were looked at, and what had to survive.
    seen: BTreeSet<(u64, usize)>,
    distinct: BTreeSet<u64>,
    /// One state in so many lives on; one in sixteen times as many is cut at every request of its opening.
    every: u64,
    tried: u64,
    /// Those that were cut while a remap was not durable.
    remapped: u64,
}

impl States {
    fn new(setup: Setup, every: u64, snapshot: bool) -> Self {
        let mut rig = begin(setup, snapshot);
        assert!(rig.settle());
        let mut begin = rig.disk.cut(&mut rig.rng, |_, _| Fate::Lost);
        begin.settle();
        let (seen, distinct) = (BTreeSet::new(), BTreeSet::new());
        let setup = rig.setup;
        Self {
            setup,
            begin,
            oracle: rig.oracle,
            rng: Rng::new(1),
            seen,
            distinct,
            every,
            tried: 0,
            remapped: 0,
        }
    }

    fn history(&mut self, ops: &[Op], order: Order) {
        let disk = Disk::new(self.begin.clone());
        let seed = self.rng.next_u64();
        let mut rig =
            Rig::open(self.setup, disk, self.oracle.clone(), seed).expect("the beginning opens");
        rig.order = order;
        rig.disk.trimmed = Trimmed::Garbage;
        for op in ops {
            assert!(rig.run(*op));
            self.cut_everywhere(&rig, ops);
            for _ in 0..rig.rng.below(4) {
                rig.step();
                self.cut_everywhere(&rig, ops);
            }
        }
        while !rig.is_settled() {
            rig.step();
            self.cut_everywhere(&rig, ops);
        }
    }

    /// Every state that a cut now can leave.
    fn cut_everywhere(&mut self, rig: &Rig, ops: &[Op]) {
        let count = rig.disk.volatile();
        let exhaustive = count <= SUBSET_MAX;
        let subsets = if exhaustive { 1 << count } else { sampled(self.setup.mode) };
        for subset in 0..subsets {
            let subset = if exhaustive { subset } else { self.rng.next_u64() };
            for torn in 0..2 {
                let fate = |n: usize, rng: &mut Rng| match (subset >> (n % 64) & 1, torn) {
                    (0, _) => Fate::Lost,
                    (_, 0) => Fate::Whole,
                    _ if rng.below(2) == 0 => Fate::Torn,
                    _ => Fate::Whole,
                };
                if torn == 0 || subset != 0 {
                    let image = rig.disk.cut(&mut self.rng, fate);
                    self.state(&image, rig, ops);
                }
            }
        }
    }

    fn state(&mut self, image: &Image, rig: &Rig, ops: &[Op]) {
        let digest = image.digest();
        if !self.seen.insert((digest, rig.oracle.promised_all())) {
            return;
        }
        self.distinct.insert(digest);
        self.tried += 1;
        self.remapped += u64::from(rig.disk.has_volatile_remap());
        let check = recover(&self.setup, image, &rig.oracle);
        let (seq, infos) = check.unwrap_or_else(|what| panic!("{what}, after {ops:?}"));
        if self.tried.is_multiple_of(self.every) {
            let mut oracle = rig.oracle.clone();
            oracle.recovered_family(infos.clone());
            oracle.recovered(seq);
            self.live_on(image, &oracle);
        }
        if self.tried.is_multiple_of(self.every * 16) {
            self.cut_the_opening(image, &rig.oracle, seq, infos);
        }
    }

    /// A second life, and another cut.
    fn live_on(&mut self, image: &Image, oracle: &Oracle) {
        let seed = self.rng.next_u64();
        let disk = Disk::new(image.clone());
        let mut rig = Rig::open(self.setup, disk, oracle.clone(), seed).expect("it opened before");
        rig.fuse = Some(1 + self.rng.below(40));
        for _ in 0..6 {
            let ops = ops(self.setup.mode);
            let op = ops[index64(self.rng.below(u64_from(ops.len())))];
            if !rig.run(op) {
                break;
            }
        }
        let mut rig =
            rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}, in a second life"));
        rig.assert_counts();
    }

    /// Power fails at every request of an opening: the next one comes to the same.
    fn cut_the_opening(
        &mut self,
        image: &Image,
        oracle: &Oracle,
        seq: u64,
        infos: Vec<MemberInfo>,
    ) {
        let mut expected = oracle.clone();
        expected.recovered_family(infos);
        expected.recovered(seq);
        for fuse in 0.. {
            let mut disk = Disk::new(image.clone());
            disk.fuse = Some(fuse);
            let through = open(&mut disk, &self.setup).is_ok();
            let left = disk.random_cut(&mut self.rng);
            self.distinct.insert(left.digest());
            recover(&self.setup, &left, &expected)
                .unwrap_or_else(|what| panic!("{what}, after a cut of the opening"));
            if through {
                return;
            }
        }
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
    drive(&mut *volume, &mut disk, onefold_units::Nanos::new(1));
    oracle.check(recovery.seq, &found)?;
    let family = read_family(&mut *volume, &mut disk, Some(&LOOK), oracle.blocks())?;
    oracle.check_family(&family)?;
    Ok((recovery.seq, family.into_iter().map(|(info, _)| info).collect()))
}

/// All histories of up to three operations, with and without a snapshot; a small budget thins out those of three.
#[test]
fn every_cut_of_every_short_history() {
    every_cut(setup(VolumeMode::Log));
}

/// Those in which a log segment is cleaned.
#[test]
fn every_cut_of_every_short_history_cleaned_by_remap() {
    every_cut(setup(VolumeMode::Log).remapped());
}

#[test]
fn every_cut_of_every_short_history_of_sung() {
    every_cut(setup(VolumeMode::Sung));
}

#[test]
fn every_cut_of_every_short_history_of_han() {
    every_cut(setup(VolumeMode::Han));
}

fn every_cut(setup: Setup) {
    let (mode, budget) = (setup.mode, budget(300));
    let ops = ops(mode);
    let count = ops.len();
    let wanted = |ops: &Vec<Op>| !remaps(&setup) || ops.contains(&Op::Clean);
    let one = ops.iter().map(|op| vec![*op]);
    let two = (0..count * count).map(|n| vec![ops[n % count], ops[n / count]]);
    let three = (0..count.pow(3))
        .map(|n| vec![ops[n % count], ops[n / count % count], ops[n / count / count]])
        .filter(wanted);
    let all = three.clone().count();
    let step = index64((u64_from(all) * 25).div_ceil(budget.max(1))).clamp(1, all);
    let histories: Vec<_> = one.chain(two).filter(wanted).chain(three.step_by(step)).collect();
    let (mut distinct, mut remapped) = (0, 0);
    for snapshot in [false, true].into_iter().filter(|with| !with || mode == VolumeMode::Log) {
        let mut states = States::new(setup, if budget > 5_000 { 8 } else { 128 }, snapshot);
        for history in &histories {
            states.history(history, Order::InTurn);
            if budget > 5_000 {
                states.history(history, Order::Random);
            }
        }
        distinct += states.distinct.len();
        remapped += states.remapped;
    }
    let count = histories.len();
    println!(
        "{mode:?}: {count} histories, {distinct} distinct crash states, {remapped} with remaps"
    );
    let expected = if remaps(&setup) { 10_000 } else { 20_000 };
    assert!(budget < 300 || distinct >= expected, "only {distinct} crash states");
    assert_eq!(remapped > 0, remaps(&setup));
}
