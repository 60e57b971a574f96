//! Power cuts and failures.

use onefold_format::volume::{Transaction, VolumeMode};
use onefold_modes::open_read_only;
use onefold_testkit::{budget, for_each_seed};
use onefold_units::Rng;
use onefold_units::convert::{index64, low32};
use onefold_volume::{Frozen, IoKind, MountError, PaperFlush, Refusal, Sent};

use super::setups::{partitioned, random};
use crate::harness::disk::{Disk, Fate, Trimmed};
use crate::harness::errors::assert_right_or_error;
use crate::harness::histories::{BLOCKS, every_cut};
use crate::harness::ops::{random_op, work};
use crate::harness::rig::{Op, Order, Rig, open};
use crate::harness::setup::{OPTIONS, Setup, UUID};

fn random_run(mode: VolumeMode, seed: u64) {
    let mut rng = Rng::new(seed);
    let setup = random(mode, &mut rng);
    let mut rig = Rig::new(setup, seed);
    rig.disk.trimmed = [Trimmed::Old, Trimmed::Zeroes, Trimmed::Garbage][index64(rng.below(3))];
    if rng.below(2) == 0 {
        let blocks = rig.oracle.blocks();
        for lba in (0..blocks).step_by(100) {
            assert!(rig.run(Op::Write { lba, blocks: 100.min(blocks - lba), fua: false }));
        }
    }
    for _ in 0..4 {
        if rng.below(8) == 0 {
            rig.order = Order::InTurn;
        }
        let within = [20, 300, 3000][index64(rng.below(3))];
        rig.fuse = Some(1 + rng.below(within));
        work(&mut rig, &mut rng, 400);
        rig = rig
            .cut_and_reopen(low32(rng.below(3)))
            .unwrap_or_else(|what| panic!("{what}, {setup:?}"));
    }
    rig = rig.close_and_reopen().unwrap_or_else(|what| panic!("{what}, {setup:?}"));
    work(&mut rig, &mut rng, 200);
}

#[test]
fn random_cuts_of_sung() {
    for_each_seed(("onefold-modes", "modes", "random_cuts_of_sung"), 30, |seed| {
        random_run(VolumeMode::Sung, seed);
    });
}

#[test]
fn random_cuts_of_han() {
    for_each_seed(("onefold-modes", "modes", "random_cuts_of_han"), 30, |seed| {
        random_run(VolumeMode::Han, seed);
    });
}

/// Space is short all the time, so each hole and each region is used as soon as it can be.
fn full(mode: VolumeMode, seed: u64) {
    let mut rng = Rng::new(seed);
    let options = random(mode, &mut rng).options;
    let setup = partitioned(mode, 8576, 5700, options);
    let mut rig = Rig::new(setup, seed);
    for _ in 0..2 {
        let mut moved = 0;
        for lba in (0..5700).step_by(60) {
            assert!(rig.run(Op::Write { lba, blocks: 60, fua: false }));
        }
        for _ in 0..rng.below(2000) {
            let lba = rng.below(5600);
            let flush = rng.below(30) == 0;
            let write = Op::Write { lba, blocks: 1 + rng.below(8), fua: false };
            assert!(rig.run(if flush { Op::Flush } else { write }));
            moved = rig.volume.stats().sent(Sent::Cleaning);
        }
        rig.fuse = Some(1 + rng.below(4000));
        let mut on = true;
        while on {
            let lba = rng.below(5600);
            on = rig.run(Op::Write { lba, blocks: 1 + rng.below(90), fua: rng.below(40) == 0 });
            for _ in 0..rng.below(3) {
                rig.step();
            }
        }
        rig = rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}, {setup:?}, {moved}"));
    }
}

#[test]
fn random_cuts_of_full_sung() {
    for_each_seed(("onefold-modes", "modes", "random_cuts_of_full_sung"), 10, |seed| {
        full(VolumeMode::Sung, seed);
    });
}

#[test]
fn random_cuts_of_full_han() {
    for_each_seed(("onefold-modes", "modes", "random_cuts_of_full_han"), 10, |seed| {
        full(VolumeMode::Han, seed);
    });
}

fn small(mode: VolumeMode) -> Setup {
    partitioned(mode, 8576, 2000, OPTIONS)
}

/// The same work every time, with cleaning and checkpoints, until the volume takes nothing any
/// more.
fn same_work(rig: &mut Rig) -> Option<Refusal> {
    let mut rng = Rng::new(3);
    for n in 0..40 {
        let op = match n % 10 {
            7 => Op::Clean,
            9 => Op::Checkpoint,
            _ => random_op(&mut rng, rig.oracle.blocks()),
        };
        match rig.try_run(op) {
            Ok(taken) => assert!(taken),
            Err(refusal) => return Some(refusal),
        }
        rig.step();
    }
    None
}

/// Every request to the backing fails once. A flush that fails ends all changes, a write is sent
/// again; what was promised is there.
fn every_request_fails_once(mode: VolumeMode) {
    let mut begin = Rig::new(small(mode), 5);
    for n in 0..8 {
        assert!(begin.run(Op::Write { lba: n % 3 * 40, blocks: 45, fua: false }));
    }
    let begin = begin.close_and_reopen().expect("a closed volume opens");
    let step = if budget(300) >= 5_000 { 1 } else { 5 };
    let mut failures = [0_u64; 4];
    for request in (1..).step_by(step) {
        let fate = [Fate::Lost, Fate::Torn, Fate::Whole][index64(request % 3)];
        let disk = Disk::new(begin.disk.view().clone());
        let mut rig =
            Rig::open(begin.setup, disk, begin.oracle.clone(), 1).expect("the beginning opens");
        rig.fail = Some((request, fate));
        let mut refusal = same_work(&mut rig);
        rig.settle();
        let Some(failed) = rig.failed else { break };
        let frozen = rig.volume.frozen();
        if refusal.is_none() && frozen.is_some() {
            refusal = rig.try_run(Op::Write { lba: 0, blocks: 1, fua: false }).err();
        }
        let kinds = [IoKind::Read, IoKind::Write, IoKind::Flush, IoKind::Trim];
        failures[kinds.iter().position(|kind| *kind == failed.kind).unwrap()] += 1;
        match failed.kind {
            IoKind::Flush => assert_eq!(frozen, Some(Frozen::Flush)),
            _ => assert_eq!(frozen, None),
        }
        assert_eq!(refusal, frozen.map(|_| Refusal::ReadOnly));
        let mut rig = rig
            .cut_and_reopen(0)
            .unwrap_or_else(|what| panic!("{what} after request {request} failed"));
        same_work(&mut rig);
    }
    println!("{mode:?}: failed reads, writes, flushes and trims: {failures:?}");
    assert!(failures.iter().all(|count| *count > 0), "{failures:?}");
}

#[test]
fn every_request_of_sung_fails_once() {
    every_request_fails_once(VolumeMode::Sung);
}

#[test]
fn every_request_of_han_fails_once() {
    every_request_fails_once(VolumeMode::Han);
}

/// Every request of an opening fails once: it says so, and the next one comes to the same.
#[test]
fn every_request_of_an_opening_of_sung_and_han_fails_once() {
    for mode in [VolumeMode::Sung, VolumeMode::Han] {
        let mut rig = Rig::new(small(mode), 7);
        rig.fuse = Some(150);
        let mut rng = Rng::new(9);
        while rig.run(random_op(&mut rng, rig.setup.logical_blocks)) {}
        let image = rig.random_cut();
        let whole =
            Rig::open(rig.setup, Disk::new(image.clone()), rig.oracle.clone(), 1).expect("opens");
        for request in 0..whole.opening {
            let mut disk = Disk::new(image.clone());
            disk.fails = Some(request);
            drop(open(&mut disk, &rig.setup));
            let disk = Disk::new(disk.random_cut(&mut rng));
            Rig::open(rig.setup, disk, whole.oracle.clone(), 1)
                .unwrap_or_else(|what| panic!("{what} after request {request} failed"));
        }
    }
}

/// How often of 20 times something promised is lost, or the volume does not open, after a cut.
fn losses(setup: Setup, drops_flushes: bool) -> usize {
    let lost = |seed: &u64| {
        let mut rng = Rng::new(*seed);
        let mut rig = Rig::new(setup, *seed);
        rig.disk.drops_flushes = drops_flushes;
        for _ in 0..30 {
            assert!(rig.run(random_op(&mut rng, rig.oracle.blocks())));
        }
        assert!(rig.run(Op::Flush));
        assert!(rig.settle());
        rig.cut_and_reopen(0).is_err()
    };
    (0..20).filter(lost).count()
}

/// The test of the test, and what the papers leave out: without FLUSH between data, log and answer,
/// what was promised is lost (volume.md, section 3, V4).
#[test]
fn dropped_flushes_and_paper_flush_are_noticed() {
    for mode in [VolumeMode::Sung, VolumeMode::Han] {
        let mut setup = small(mode);
        assert_eq!(losses(setup, false), 0);
        let dropped = losses(setup, true);
        assert!(dropped >= 5, "{mode:?}: dropped flushes were noticed {dropped} times of 20");
        setup.options.paper_flush = PaperFlush::All;
        let paper = losses(setup, false);
        assert!(paper >= 5, "{mode:?}: missing flushes were noticed {paper} times of 20");
    }
}

/// A log block in the middle rots. What lies behind it is whole and does not count: each
/// transaction builds on the ones before it.
#[test]
fn the_log_ends_at_its_first_gap() {
    for mode in [VolumeMode::Sung, VolumeMode::Han] {
        let mut rig = Rig::new(small(mode), 1);
        for n in 0..12 {
            // The next ones change other blocks, and the same ones again.
            assert!(rig.run(Op::Write { lba: n % 5 * 8, blocks: 8, fua: true }));
            assert!(rig.settle());
        }
        let mut image = rig.disk.view().clone();
        let decode = |at: u64| Transaction::decode(&image.get(at)[..], &UUID, low32(at)).ok();
        let log = |at: u64| Some((decode(at)?.seq.raw(), at));
        let mut logs: Vec<(u64, u64)> = (0..image.blocks()).filter_map(log).collect();
        logs.sort_unstable();
        let (seq, rotten) = logs[logs.len() - 4];
        let before = seq - 1;
        image.flip(rotten, 900);
        let mut disk = Disk::new(image);
        let (mut volume, recovery, durable) =
            open_read_only(&mut disk, rig.setup.file_blocks, rig.setup.options).expect("a root");
        assert_eq!((recovery.seq, durable), (before, before + 4), "{mode:?}");
        let errors = assert_right_or_error(&mut *volume, &mut disk, &rig.oracle.state_at(before));
        assert_eq!(errors.blocks + errors.pages, 0);
        let opened = open(&mut disk, &rig.setup);
        assert!(matches!(opened, Err(MountError::Lost { .. })), "{mode:?}: {:?}", opened.err());
    }
}

#[test]
fn every_cut_of_every_short_history_of_sung() {
    every_cut(partitioned(VolumeMode::Sung, 64 * 134, BLOCKS, OPTIONS));
}

#[test]
fn every_cut_of_every_short_history_of_han() {
    every_cut(partitioned(VolumeMode::Han, 64 * 134, BLOCKS, OPTIONS));
}
