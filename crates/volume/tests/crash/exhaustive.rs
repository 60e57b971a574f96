//! Every cut of every short history.

use onefold_format::volume::{Codec, VolumeMode};
use onefold_testkit::budget;
use onefold_units::convert::{index64, u64_from};
use onefold_units::{Nanos, Rng};
use onefold_volume::{CleanMove, IoKind};

use crate::disk::{Fate, Trimmed};
use crate::resize::resize_to;
use crate::rig::{Op, Order, PATIENCE, Rig};
use crate::setup::{OPTIONS, Setup};
use crate::states::{Effort, Fault, States};
use crate::zones::ZoneSetup;

/// What histories are made of. Blocks 1020 to 1027 are in two pages of the map.
const OPS: [Op; 12] = [
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
const BLOCKS: u64 = 1050;
const GROWN: u64 = 1100;

/// From this budget on nothing is left out, as `make crash-campaign` has it.
const CAMPAIGN: u64 = 25_000;

/// Only volumes of mode `log` have snapshots and change their size.
fn ops(mode: VolumeMode) -> &'static [Op] {
    if mode == VolumeMode::Log { &OPS } else { &OPS[..8] }
}

fn setup(mode: VolumeMode) -> Setup {
    Setup { mode, ..Setup::of(64 * 134, BLOCKS, OPTIONS) }
}

/// As few zones are active as can be.
fn on_zones() -> Setup {
    let zones = ZoneSetup { size: 128, capacity: 64, limit: Some(4), conventional: 0 };
    setup(VolumeMode::Log).on_zones(134, zones)
}

fn remaps(setup: &Setup) -> bool {
    setup.options.clean_move == CleanMove::Remap
}

fn marks(setup: &Setup) -> bool {
    setup.options.marker_age == Nanos::ZERO
}

/// A volume at rest with live blocks in several log segments, some of which are worth cleaning, and perhaps a snapshot.
fn begin(setup: Setup, snapshot: bool) -> Rig {
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
    fn failing_history(&mut self, ops: &[Op], step: usize) {
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

/// All histories of up to three operations, with and without a snapshot; a small budget thins out those of three.
#[test]
fn every_cut_of_every_short_history() {
    every_cut(setup(VolumeMode::Log));
}

/// A batch that failed and was written again counts once or not at all, however often openings are cut.
#[test]
fn every_cut_of_openings_after_a_failed_write() {
    let setup = setup(VolumeMode::Log);
    let effort = Effort { lives: 1, spoiled: u64::MAX };
    let mut states = States::new(begin(setup, false), &OPS[..10], effort);
    for _ in 0..budget(300).div_ceil(30) {
        states.failing_history(&[OPS[1], Op::Flush, OPS[0]], 1);
    }
    assert!(states.distinct(Fault::Opening) > 0);
}

/// A zone that could not be finished may still be active, so it is finished again before another one is begun.
#[test]
fn no_zone_too_many_is_active_after_one_could_not_be_finished() {
    let begin = begin(on_zones(), false);
    let effort = Effort { lives: u64::MAX, spoiled: u64::MAX };
    let mut states = States::new(begin, &OPS[..10], effort);
    let mut finishes = 0;
    for (request, seed) in (4..14).flat_map(|request| (1..30).map(move |seed| (request, seed))) {
        states.rng = Rng::new(seed);
        let mut rig = states.rig();
        rig.order = Order::InTurn;
        rig.fail = Some((request, Fate::Torn));
        for op in [Op::Write { lba: 2, blocks: 2, fua: true }, OPS[10], Op::Clean] {
            assert!(rig.run(op));
        }
        while !rig.is_settled() {
            rig.step();
        }
        finishes += u32::from(rig.failed.is_some_and(|io| io.kind == IoKind::Finish));
    }
    assert!(finishes > 0);
}

/// The same with blocks that are compressed.
#[test]
fn every_cut_of_every_short_history_packed() {
    every_cut(Setup { compress: Some(Codec::Lz4), ..setup(VolumeMode::Log) });
}

/// Those in which a log segment is cleaned.
#[test]
fn every_cut_of_every_short_history_cleaned_by_remap() {
    every_cut(setup(VolumeMode::Log).remapped());
}

/// Those in which something is flushed, where a marker follows each flush.
#[test]
fn every_cut_of_every_short_history_with_markers() {
    let mut setup = setup(VolumeMode::Log);
    setup.options.marker_age = Nanos::ZERO;
    every_cut(setup);
}

/// The same on zones.
#[test]
fn every_cut_of_every_short_history_on_zones() {
    every_cut(on_zones());
}

#[test]
fn every_cut_of_every_short_history_of_sung() {
    every_cut(setup(VolumeMode::Sung));
}

#[test]
fn every_cut_of_every_short_history_of_han() {
    every_cut(setup(VolumeMode::Han));
}

/// Histories of one, two and some of three operations.
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
    one.chain(two).filter(wanted).chain(three.step_by(step)).collect()
}

fn every_cut(setup: Setup) {
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
