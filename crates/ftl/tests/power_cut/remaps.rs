//! Every cut of every short history of remaps and of the housekeeping of their log, on a device with
//! segments of four entries, blocks of eight pages and three references per slot at most.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use onefold_ftl::{FtlConfig, Maintenance, RemapConfig, RemapOptions, RemapRange, RemapScheme};
use onefold_nand::GeometrySpec;
use onefold_testkit::{Power, budget};
use onefold_units::convert::{index64, u64_from};
use onefold_units::{Lpn, Rng};

use crate::common::{Op, Setup, plain_config, spec};
use crate::rig::{CUTS, Rig};

/// Crash states that were recovered from and checked.
static STATES: AtomicU64 = AtomicU64::new(0);

fn remap(ranges: &[(u32, u32, u32)], options: RemapOptions) -> Op {
    let mut all = [None; 3];
    for (place, (dst, src, len)) in all.iter_mut().zip(ranges) {
        *place = Some(RemapRange { dst: Lpn::new(*dst), src: Lpn::new(*src), len: *len });
    }
    Op::Remap { ranges: all, options }
}

/// What histories are made of.
fn operations() -> Vec<Op> {
    let copy = RemapOptions::default();
    let moves = RemapOptions { moves: true, ..copy };
    let on_flush = RemapOptions { moves_on_flush: true, ..copy };
    let atomic = RemapOptions { atomic: true, moves: true, id: Some(0), ..copy };
    vec![
        Op::Write { lpn: 0, stream: 0 },
        Op::Write { lpn: 5, stream: 0 },
        remap(&[(5, 0, 3)], copy),
        // Away and back, and two units that change places.
        remap(&[(0, 5, 1), (5, 0, 1)], copy),
        remap(&[(9, 1, 2)], moves),
        remap(&[(1, 9, 2), (3, 5, 1)], on_flush),
        remap(&[(8, 0, 2), (0, 2, 1)], atomic),
        Op::Trim { lpn: 0, count: 2 },
        Op::Flush,
        Op::Maintain(Maintenance::Collect),
        Op::Maintain(Maintenance::CompactLog),
        Op::Maintain(Maintenance::DestageLog),
        Op::Maintain(Maintenance::CollectLog),
        Op::Maintain(Maintenance::Checkpoint),
    ]
}

fn devices() -> Vec<Setup> {
    let one = spec(16, 8, 4096, 4096);
    let two_dies = GeometrySpec { channels: 2, ..one };
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
    ];
    devices
        .map(|(spec, config)| Setup::new(spec, config, 0.9).expect("a device that fits"))
        .to_vec()
}

/// A full device with shared slots, stale entries and log pages, at rest.
fn begin(setup: &Setup, rng: &mut Rng) -> Rig {
    let mut rig = Rig::new(setup, Power::Device, 5);
    rig.fill();
    let operations = operations();
    for _ in 0..60 {
        let op = operations[index64(rng.below(u64_from(operations.len())))];
        assert!(rig.run(op));
    }
    assert!(rig.run(Op::Flush));
    rig
}

/// Histories of `length` operations, one in `step`.
fn histories(length: u32, step: usize) {
    let operations = operations();
    let count = operations.len().pow(length);
    for setup in devices() {
        let mut rng = Rng::new(1);
        let rig = begin(&setup, &mut rng);
        // Each device starts elsewhere, so that a thinned-out run sees different histories.
        for number in (index64(rng.below(u64_from(step)))..count).step_by(step) {
            let mut rest = number;
            let history: Vec<Op> = (0..length)
                .map(|_| {
                    let op = operations[rest % operations.len()];
                    rest /= operations.len();
                    op
                })
                .collect();
            cut_everywhere(&rig, &history, &mut rng);
        }
    }
}

fn cut_everywhere(begin: &Rig, history: &[Op], rng: &mut Rng) {
    for cut in CUTS {
        for after in 0.. {
            let mut rig = begin.clone();
            rig.arm(after, cut);
            let held = history.iter().all(|op| rig.run(*op));
            if held {
                break;
            }
            // In turn, power also fails once or twice within recovery.
            let again = if after % 3 == 0 { 1 + u32::from(after % 2 == 0) } else { 0 };
            let mut rig = rig.recover(rng, again);
            STATES.fetch_add(1 + u64::from(again), Relaxed);
            if after % 4 == 0 {
                // And in what comes first after it.
                rig.arm(after % 7, CUTS[index64(after % 3)]);
                let _ = history.iter().rev().all(|op| rig.run(*op));
                rig.recover(rng, 0);
                STATES.fetch_add(1, Relaxed);
            }
        }
    }
}

/// All histories of three operations, or a part of them with a small budget (10,000 seeds: 66,000 crash
/// states); with a large one, a part of those of four as well.
#[test]
fn every_cut_of_every_short_history_of_remaps() {
    let seeds = budget(10_000);
    let all = operations().len().pow(3);
    let step = usize::try_from(80_000 / seeds.max(1)).unwrap_or(1).max(1);
    histories(3, step);
    if seeds > 80_000 {
        let step = usize::try_from(40 * 100_000 / seeds).unwrap_or(1).max(1);
        histories(4, step);
    }
    let states = STATES.load(Relaxed);
    println!("{states} crash states of {all} histories, one in {step}");
    assert!(states > 0);
}
