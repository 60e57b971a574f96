//! Every cut of every short history of remaps and of the housekeeping of their log, on a device with
//! segments of four entries, blocks of eight pages and three references per slot at most. With superblocks
//! of one die, runs are strided.

use std::collections::BTreeSet;
use std::ops::Range;

use onefold_ftl::{FtlConfig, Maintenance, RemapConfig, RemapOptions, RemapRange, RemapScheme};
use onefold_nand::{GeometrySpec, Span};
use onefold_testkit::{Cut, Power, budget};
use onefold_units::convert::index64;
use onefold_units::{Lpn, Rng};

use super::rig::{CUTS, Rig};
use crate::common::{Op, Setup, pick, plain_config, spec};

fn remap(ranges: &[(u32, u32, u32)], options: RemapOptions) -> Op {
    let mut all = [None; 3];
    for (place, (dst, src, len)) in all.iter_mut().zip(ranges) {
        *place = Some(RemapRange { dst: Lpn::new(*dst), src: Lpn::new(*src), len: *len });
    }
    Op::Remap { ranges: all, options }
}

/// The kinds of remaps.
struct Options {
    copy: RemapOptions,
    moves: RemapOptions,
    on_flush: RemapOptions,
    atomic: RemapOptions,
}

fn options() -> Options {
    let copy = RemapOptions::default();
    Options {
        copy,
        moves: RemapOptions { moves: true, ..copy },
        on_flush: RemapOptions { moves_on_flush: true, ..copy },
        atomic: RemapOptions { atomic: true, moves: true, id: Some(0), ..copy },
    }
}

/// What every history may have between its writes.
const MAINTENANCE: [Op; 6] = [
    Op::Flush,
    Op::Maintain(Maintenance::Collect),
    Op::Maintain(Maintenance::CompactLog),
    Op::Maintain(Maintenance::DestageLog),
    Op::Maintain(Maintenance::CollectLog),
    Op::Maintain(Maintenance::Checkpoint),
];

/// What histories are made of.
fn operations() -> Vec<Op> {
    let Options { copy, moves, on_flush, atomic } = options();
    let mut operations = vec![
        Op::Write { lpn: 0, stream: 0 },
        Op::Write { lpn: 5, stream: 0 },
        remap(&[(5, 0, 3)], copy),
        // Away and back, and two units that change places.
        remap(&[(0, 5, 1), (5, 0, 1)], copy),
        remap(&[(9, 1, 2)], moves),
        remap(&[(1, 9, 2), (3, 5, 1)], on_flush),
        remap(&[(8, 0, 2), (0, 2, 1)], atomic),
        Op::Trim { lpn: 0, count: 2 },
    ];
    operations.extend(MAINTENANCE);
    operations
}

/// Units that lie on all dies in turn when histories begin.
const STRIDED_UNITS: Range<u32> = 8..16;

/// The same for superblocks of one die: long ranges, which are a strided run per die, and what makes
/// holes in them.
fn strided_operations() -> Vec<Op> {
    let Options { copy, moves, on_flush, atomic } = options();
    let mut operations = vec![
        Op::Write { lpn: 0, stream: 0 },
        Op::Write { lpn: 23, stream: 0 },
        remap(&[(20, 8, 7)], copy),
        // Away and back, and two runs that change places.
        remap(&[(8, 20, 6), (20, 8, 6)], copy),
        remap(&[(30, 9, 5)], moves),
        remap(&[(9, 30, 5), (36, 8, 4)], on_flush),
        remap(&[(14, 8, 6), (8, 14, 2)], atomic),
        Op::Trim { lpn: 10, count: 2 },
    ];
    operations.extend(MAINTENANCE);
    operations
}

fn devices() -> Vec<(Setup, Power, Vec<Op>)> {
    let one = spec(16, 8, 4096, 4096);
    let two_dies = GeometrySpec { channels: 2, ..one };
    let per_die = GeometrySpec { span: Span::Die, ..two_dies };
    let wide = spec(18, 4, 16384, 4096);
    let remap = |scheme, max_refs, segments: u64| RemapConfig {
        scheme,
        log_bytes: segments * 128,
        segment_bytes: 128,
        max_refs,
        ..RemapConfig::OFF
    };
    let plain = FtlConfig { gc_pacing: false, ..plain_config() };
    let devices = [
        (two_dies, FtlConfig { remap: remap(RemapScheme::Lh, 0, 8), ..plain }),
        (one, FtlConfig { remap: remap(RemapScheme::Lh, 3, 6), metadata_pages: true, ..plain }),
        (one, FtlConfig { remap: remap(RemapScheme::Ln, 3, 8), ..plain }),
        (wide, FtlConfig { remap: remap(RemapScheme::Lh, 0, 8), checkpoint: 0.3, ..plain }),
        (per_die, FtlConfig { remap: remap(RemapScheme::Lh, 0, 10), ..plain }),
    ];
    let with = |power| {
        devices.map(|(spec, config)| {
            let strided = spec.span == Span::Die;
            let operations = if strided { strided_operations() } else { operations() };
            (Setup::new(spec, config, 0.9).unwrap(), power, operations)
        })
    };
    [with(Power::Device), with(Power::Host)].concat()
}

/// A full device with shared slots, stale entries and log pages, at rest.
fn begin(setup: &Setup, power: Power, operations: &[Op], rng: &mut Rng) -> Rig {
    let mut rig = Rig::new(setup, power, 5);
    rig.fill();
    for _ in 0..60 {
        assert!(rig.run(*pick(rng, operations)));
    }
    if setup.geometry.pools() > 1 {
        // By now nothing lies as it was written; these take the dies in turn again.
        for lpn in STRIDED_UNITS {
            assert!(rig.run(Op::Write { lpn, stream: 0 }));
        }
    }
    assert!(rig.run(Op::Flush));
    rig
}

/// Operations until power fails once more, after a recovery.
const OPERATIONS_AFTER: u32 = 3;

/// A walk through all histories. A cut within an operation depends on nothing that comes after it, so
/// each is tried once: in the last operation of a history.
struct Walk {
    operations: Vec<Op>,
    rng: Rng,
    /// One in so many histories of full length is taken.
    step: u64,
    /// Recoveries that were checked.
    recoveries: u64,
    /// Media that power left, by device and fingerprint.
    media: BTreeSet<(usize, u64)>,
    /// The same with what recovery is checked against.
    seen: BTreeSet<(usize, u64)>,
    device: usize,
    /// Strided entries that the last operations of histories wrote, if power did not fail.
    strided: u64,
}

impl Walk {
    /// Continues the history that led to `begin` by up to `length` operations.
    fn explore(&mut self, begin: &Rig, length: u32) {
        for op in self.operations.clone() {
            if length == 1 && self.rng.below(self.step) > 0 {
                continue;
            }
            self.cut_everywhere(begin, op);
            if length > 1 {
                let mut rig = begin.clone();
                assert!(rig.run(op));
                self.explore(&rig, length - 1);
            }
        }
    }

    /// Lets power fail at every media operation of `op`, in every way.
    fn cut_everywhere(&mut self, begin: &Rig, op: Op) {
        for cut in CUTS {
            // Before any later media operation is the same as after the one that it follows.
            let end = if cut == Cut::Before { 1 } else { u64::MAX };
            for after in 0..end {
                let mut rig = begin.clone();
                rig.arm(after, cut);
                if rig.run(op) {
                    let strided = |rig: &Rig| rig.ftl.remap_stats().strided_entries;
                    self.strided += strided(&rig) - strided(begin);
                    break;
                }
                // In turn, power also fails once or twice within recovery.
                let again = if after % 3 == 0 { 1 + u32::from(after % 2 == 0) } else { 0 };
                let Some(mut rig) = self.recover(rig, again) else { continue };
                if after % 4 == 0 {
                    // And in what comes first after it.
                    rig.arm(after % 7, CUTS[index64(after % 3)]);
                    let _ = (0..OPERATIONS_AFTER).all(|_| {
                        let op = *pick(&mut self.rng, &self.operations);
                        rig.run(op)
                    });
                    self.recover(rig, 0);
                }
            }
        }
    }

    /// `None` for what was checked before.
    fn recover(&mut self, mut rig: Rig, again: u32) -> Option<Rig> {
        let (medium, state) = rig.crash_state();
        self.media.insert((self.device, medium));
        let is_new = self.seen.insert((self.device, state));
        if !is_new && !rig.ftl.nand_mut().media_mut().is_damaged() {
            return None;
        }
        self.recoveries += 1;
        Some(rig.recover(&mut self.rng, again))
    }
}

/// All histories of up to three operations, one in some of those of three with a small budget; with
/// a large one, of five: those of five operations are what makes the numbers.
#[test]
fn every_cut_of_every_short_history_of_remaps() {
    let seeds = budget(10_000).max(1);
    let (length, step) = if seeds > 80_000 { (5, 1_000_000 / seeds) } else { (3, 10_000 / seeds) };
    let mut walk = Walk {
        operations: Vec::new(),
        rng: Rng::new(1),
        step: step.max(1),
        recoveries: 0,
        media: BTreeSet::new(),
        seen: BTreeSet::new(),
        device: 0,
        strided: 0,
    };
    for (setup, power, operations) in devices() {
        let begin = begin(&setup, power, &operations, &mut walk.rng);
        let strided = walk.strided;
        walk.operations = operations;
        walk.explore(&begin, length);
        let per_die = setup.geometry.pools() > 1;
        assert!(!per_die || walk.strided > strided, "no run was strided");
        walk.device += 1;
        let (states, recoveries) = (walk.media.len(), walk.recoveries);
        println!(
            "{} devices: {states} distinct crash states, {recoveries} recoveries",
            walk.device
        );
    }
    println!("histories of up to {length} operations, of those one in {}", walk.step);
    println!("{} strided entries", walk.strided);
    assert!(!walk.media.is_empty());
}
