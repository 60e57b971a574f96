//! Short histories, all of them, and power cuts at each of their steps.

use onefold_format::volume::VolumeMode;
use onefold_testkit::budget;
use onefold_units::Nanos;
use onefold_units::convert::{index64, u64_from};
use onefold_volume::CleanMove;

use super::disk::{Fate, Trimmed};
use super::ops::resize_to;
use super::rig::{Op, Order, PATIENCE, Rig};
use super::setup::Setup;
use super::states::{Effort, Fault, States};

/// What histories are made of. Blocks 1020 to 1027 are in two pages of the map.
pub(crate) const OPS: [Op; 12] = [
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
    Op::Resize(resize_to(GROWN)),
    Op::Resize(resize_to(1040)),
];

/// Blocks of the host in the beginning, and at most.
pub(crate) const BLOCKS: u64 = 1050;
const GROWN: u64 = 1100;

/// From this budget on nothing is left out, as `make crash-campaign` has it.
const CAMPAIGN: u64 = 25_000;

/// Only volumes of mode `log` have snapshots and change their size.
fn ops(mode: VolumeMode) -> &'static [Op] {
    if mode == VolumeMode::Log { &OPS } else { &OPS[..8] }
}

fn remaps(setup: &Setup) -> bool {
    setup.options.clean_move == CleanMove::Remap
}

fn marks(setup: &Setup) -> bool {
    setup.options.marker_age == Nanos::ZERO
}

/// A volume at rest with live blocks in several log segments, some of which are worth cleaning, and
/// perhaps a snapshot.
pub(crate) fn begin(setup: Setup, snapshot: bool) -> Rig {
    let mut rig = Rig::new(setup, 5);
    rig.oracle.extend(GROWN);
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

impl States {
    fn history(&mut self, ops: &[Op], order: Order) {
        let mut rig = self.rig();
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
        self.markers += rig.volume.stats().markers;
    }

    /// One in so many requests of a history fails; from then on power may fail any time.
    pub(crate) fn failing_history(&mut self, ops: &[Op], step: usize) {
        for request in (1..).step_by(step) {
            let mut rig = self.rig();
            rig.order = Order::InTurn;
            let fate = [Fate::Lost, Fate::Torn, Fate::Whole][index64(request % 3)];
            rig.fail = Some((request, fate));
            for op in ops {
                // It may take nothing any more.
                let _ = rig.try_run(*op);
                self.cut_if_failed(&rig, ops);
            }
            for left in (0..PATIENCE).rev() {
                if rig.is_settled() {
                    break;
                }
                assert!(left > 0, "request {request} of {ops:?} failed, and it never rests");
                rig.step();
                self.cut_if_failed(&rig, ops);
            }
            if rig.failed.is_none() {
                return;
            }
        }
    }

    fn cut_if_failed(&mut self, rig: &Rig, ops: &[Op]) {
        if rig.failed.is_some() {
            self.cut_somewhere(rig, ops);
        }
    }
}

/// Histories of one operation, and some of two and three: of two all from the default budget on.
fn histories(setup: &Setup) -> Vec<Vec<Op>> {
    let ops = ops(setup.mode);
    let count = ops.len();
    let wanted = |history: &Vec<Op>| {
        let resizes = history.iter().filter(|op| matches!(op, Op::Resize(_))).count();
        resizes <= 1
            && (!remaps(setup) || history.contains(&Op::Clean))
            && (!marks(setup) || history.contains(&Op::Flush))
    };
    let one = ops.iter().map(|op| vec![*op]);
    let two = (0..count * count).map(|n| vec![ops[n % count], ops[n / count]]);
    let three = (0..count.pow(3))
        .map(|n| vec![ops[n % count], ops[n / count % count], ops[n / count / count]])
        .filter(wanted);
    let all = three.clone().count();
    let step = index64((u64_from(all) * 25).div_ceil(budget(300).max(1))).clamp(1, all);
    let step = if budget(300) >= CAMPAIGN { 1 } else { step };
    // A step that has no divisor with the operations meets each of them in both places.
    let two = two.step_by(if budget(300) < 300 { 5 } else { 1 });
    one.chain(two).filter(wanted).chain(three.step_by(step)).collect()
}

/// All histories of up to three operations, with and without a snapshot; a small budget thins out
/// those of two and three.
pub(crate) fn every_cut(setup: Setup) {
    let (mode, campaign) = (setup.mode, budget(300) >= CAMPAIGN);
    let (mut counts, mut count, mut remapped, mut refused, mut markers) = ([0; 7], 0, 0, 0, 0);
    for snapshot in [false, true].into_iter().filter(|with| !with || mode == VolumeMode::Log) {
        let second = if mode == VolumeMode::Log { &OPS[..10] } else { ops(mode) };
        let effort = if campaign {
            Effort { lives: 32, spoiled: 4 }
        } else {
            Effort { lives: 128, spoiled: 16 }
        };
        let mut states = States::new(begin(setup, snapshot), second, effort);
        let histories = histories(&setup);
        count += histories.len();
        for (n, history) in histories.iter().enumerate() {
            // Campaigns take long.
            if campaign && n % 200 == 0 {
                println!("{mode:?}, snapshot {snapshot}: {n} of {} histories", histories.len());
            }
            states.history(history, Order::InTurn);
            if campaign && n % 4 == 0 {
                states.history(history, Order::Random);
            }
            // With markers a single operation is a flush of nothing.
            let short = if marks(&setup) { 2 } else { 1 };
            if history.len() <= short || campaign && (history.len() == 2 || n % 8 == 1) {
                states.failing_history(history, if campaign { 1 } else { 3 });
            }
        }
        for (count, (fault, _)) in counts.iter_mut().zip(Fault::ALL) {
            *count += states.distinct(fault);
        }
        remapped += states.remapped;
        refused += states.refused;
        markers += states.markers;
    }
    let distinct: u64 = counts.iter().sum();
    println!(
        "{mode:?}: {count} histories, {distinct} distinct crash states, {remapped} with remaps"
    );
    for (count, (_, name)) in counts.iter().zip(Fault::ALL) {
        println!("{mode:?}: {count} {name}");
    }
    println!("{mode:?}: {refused} spoiled ones were refused");
    let expected = match setup.zones {
        // What survives of a zone is the first of it, so there are fewer.
        Some(_) => 5_000,
        None if marks(&setup) => 8_000,
        None if remaps(&setup) || setup.compress.is_some() => 10_000,
        None => 20_000,
    };
    assert!(budget(300) < 300 || distinct >= expected, "only {distinct} crash states");
    let kinds = if mode == VolumeMode::Log { 7 } else { 4 };
    assert!(counts[..kinds].iter().all(|count| *count > 0), "{counts:?}");
    assert_eq!(remapped > 0, remaps(&setup));
    assert!(markers > 0 || !marks(&setup));
}
