//! Every request to the backing fails, once or for some time.

use onefold_testkit::{Reproduce, budget, for_each_seed};
use onefold_units::{Nanos, Rng};
use onefold_volume::{Acknowledge, CleanMove, Frozen, IoKind, Options, Refusal};

use crate::harness::disk::{Disk, Fate};
use crate::harness::ops::{random_op, resize_to};
use crate::harness::oracle::Oracle;
use crate::harness::rig::{Op, Rig, open};
use crate::harness::setup::{OPTIONS, Setup};
use crate::harness::zones::ZoneSetup;

/// Times that a request fails when it is sent again, so that something else is done: they are tried five or ten times.
const AGAIN: u32 = 9;

fn setup() -> Setup {
    let options = Options {
        checkpoint_blocks: 300,
        flush_blocks: 200,
        clean_below: Some(110),
        map_pages: 4,
        ..OPTIONS
    };
    Setup::of(64 * 134, 5200, options)
}

/// One with room for snapshots.
fn family_setup() -> Setup {
    let options = Options { clean_below: Some(60), map_pages: 16, ..setup().options };
    Setup { logical_blocks: 2100, options, ..setup() }
}

/// A volume that is worth cleaning.
fn begin(setup: Setup) -> Rig {
    let mut rig = Rig::new(setup, 5);
    let step = (setup.logical_blocks - 90) / 11;
    for n in 0..40 {
        let op = Op::Write { lba: n * 37 % 11 * step + n, blocks: 40, fua: false };
        assert!(rig.run(op));
    }
    rig.close_and_reopen().expect("a closed volume opens")
}

/// The same work every time, until the volume takes nothing any more.
fn work(rig: &mut Rig) -> Option<Refusal> {
    let mut rng = Rng::new(3);
    let family = rig.setup.options.map_pages >= 16;
    for n in 0..150 {
        let op = match n % 15 {
            3 | 10 if family => Op::Snapshot,
            7 if family => Op::Delete,
            _ => random_op(&mut rng, rig.oracle.blocks()),
        };
        match rig.try_run(op) {
            Ok(taken) => assert!(taken),
            // A page of the map that cannot be read is an error for what it maps.
            Err(Refusal::MediaError) => {
                assert!(rig.failed.is_some_and(|io| io.kind == IoKind::Read));
            }
            Err(refusal) => return Some(refusal),
        }
        rig.step();
    }
    None
}

/// What has to follow from a failure.
fn assert_reaction(rig: &Rig, refusal: Option<Refusal>) {
    let kind = rig.failed.expect("it failed").kind;
    let frozen = rig.volume.frozen();
    match kind {
        IoKind::Flush => assert_eq!(frozen, Some(Frozen::Flush)),
        IoKind::Write => assert_eq!(frozen, None, "it is written again, or elsewhere"),
        IoKind::Read | IoKind::Trim | IoKind::Reset | IoKind::Finish | IoKind::Report => {
            assert_eq!(frozen, None);
        }
        IoKind::Remap => {
            assert_eq!(frozen, None, "the cleaner copies instead");
            assert_eq!(rig.volume.stats().failed_remaps, 1);
        }
    }
    assert_eq!(refusal, frozen.map(|_| Refusal::ReadOnly));
    assert!(frozen.is_some() || rig.oracle.failed == 0, "nothing else fails");
}

/// Batches that end up behind one that fails lie in no chain of headers: they were written, and go elsewhere with it.
#[test]
fn what_was_written_behind_a_batch_that_fails_moves_along() {
    let mut overtaken = 0;
    for seed in 0..40 {
        let mut rig = Rig::new(Setup::of(64 * 134, 2100, OPTIONS), seed);
        assert!(rig.settle());
        (rig.fail, rig.fail_again) = (Some((rig.requests + 1 + seed % 3, Fate::Lost)), AGAIN);
        // Three batches in one log segment.
        assert!(rig.run(Op::Write { lba: 0, blocks: 45, fua: false }));
        assert!(rig.run(Op::Flush) && rig.settle());
        assert!(rig.failed.is_some_and(|io| io.kind == IoKind::Write), "{:?}", rig.failed);
        overtaken += rig.volume.stats().retried_batches;
        assert_eq!((rig.volume.frozen(), rig.oracle.failed), (None, 0));
        rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}, seed {seed}"));
    }
    assert!(overtaken > 60, "{overtaken} batches were written elsewhere");
}

/// While a label is written to its zone no other zone is begun: what waited for that is written or fails when the label cannot be.
#[test]
fn a_write_beside_a_resize_that_fails_is_answered() {
    let zones = ZoneSetup { size: 128, capacity: 64, limit: Some(4), conventional: 0 };
    // It is sent before the volume stalls, or after it.
    let late = Options {
        acknowledge: Acknowledge::Buffered,
        batch_age: Nanos::new(600_000_000_000),
        ..OPTIONS
    };
    for options in [OPTIONS, late] {
        let setup = Setup::of(64 * 134, 1050, options).on_zones(134, zones);
        let mut stalled = 0;
        for request in 1..12 {
            let mut rig = Rig::new(setup, request);
            assert!(rig.settle());
            // Longer than the host waits.
            (rig.fail, rig.fail_again) = (Some((rig.requests + request, Fate::Lost)), 100);
            assert!(rig.run(Op::Resize(resize_to(1100))));
            assert!(rig.run(Op::Write { lba: 40, blocks: 1, fua: false }) && rig.settle());
            rig.pass(late.batch_age);
            assert!(rig.oracle.waiting().is_empty(), "request {request}");
            // A label is written for as long as it takes.
            assert_eq!((rig.volume.stalled(), rig.resizing), (None, false), "request {request}");
            stalled += rig.oracle.failed;
        }
        assert!(stalled > 0);
    }
}

#[test]
fn every_request_fails_once() {
    every_request_fails(setup(), "every_request_fails_once");
}

#[test]
fn every_request_fails_once_with_snapshots() {
    every_request_fails(family_setup(), "every_request_fails_once_with_snapshots");
}

/// Some are remaps, and some are headers of batches that were remapped.
#[test]
fn every_request_fails_once_when_cleaning_by_remap() {
    let test = "every_request_fails_once_when_cleaning_by_remap";
    every_request_fails(setup().remapped(), test);
}

#[test]
fn every_request_fails_once_on_zones() {
    let zones = ZoneSetup { size: 64, capacity: 64, limit: Some(4), conventional: 0 };
    every_request_fails(setup().on_zones(138, zones), "every_request_fails_once_on_zones");
}

fn every_request_fails(setup: Setup, test: &'static str) {
    let begin = begin(setup);
    // Each failure in three ways; a small budget looks at some only.
    let step = if budget(300) >= 5_000 { 1 } else { 4 };
    let (mut failures, mut moved) = ([0_u64; 6], 0);
    for request in (1..).step_by(step) {
        let seed = request;
        let _guard = Reproduce::new(seed, "onefold-volume", "volume", test);
        let fate = [Fate::Lost, Fate::Torn, Fate::Whole][usize::try_from(request % 3).unwrap()];
        let disk = Disk::new(begin.disk.view().clone());
        let mut rig =
            Rig::open(begin.setup, disk, begin.oracle.clone(), 1).expect("the beginning opens");
        rig.fail = Some((request, fate));
        rig.fail_again = [0, AGAIN][usize::from(request % 8 < 4)];
        let mut refusal = work(&mut rig);
        rig.settle();
        if rig.failed.is_none() {
            break;
        }
        // What was under way when it froze is refused from now on.
        if refusal.is_none() && rig.volume.frozen().is_some() {
            refusal = rig.try_run(Op::Write { lba: 0, blocks: 1, fua: false }).err();
        }
        assert_reaction(&rig, refusal);
        moved += rig.volume.stats().retried_batches;
        let kind = rig.failed.map(|io| io.kind);
        let [read, write, flush] = [IoKind::Read, IoKind::Write, IoKind::Flush];
        let kinds = [read, write, flush, IoKind::Trim, IoKind::Remap, IoKind::Reset];
        failures[kinds.iter().position(|one| Some(*one) == kind).unwrap()] += 1;
        let reopened = if rig.volume.frozen().is_some() || request % 2 == 0 {
            rig.cut_and_reopen(0)
        } else {
            rig.close_and_reopen()
        };
        let mut rig =
            reopened.unwrap_or_else(|what| panic!("{what} after request {request} failed"));
        work(&mut rig);
        rig.assert_counts();
    }
    println!("failed reads, writes, flushes, trims, remaps and resets: {failures:?}");
    assert!(moved > 0, "some are written elsewhere");
    let (remaps, zoned) = (setup.options.clean_move == CleanMove::Remap, setup.zones.is_some());
    let expected = [true, true, true, !zoned, remaps, zoned];
    assert_eq!(failures.map(|count| count > 0), expected, "{failures:?}");
}

/// Power fails soon after a request failed: what was promised meanwhile is there.
#[test]
fn power_fails_after_a_failed_request() {
    let begin = begin(setup());
    for_each_seed(
        ("onefold-volume", "volume", "power_fails_after_a_failed_request"),
        150,
        |seed| {
            let mut rng = Rng::new(seed);
            let disk = Disk::new(begin.disk.view().clone());
            let mut rig = Rig::open(begin.setup, disk, begin.oracle.clone(), seed)
                .expect("the beginning opens");
            let request = 1 + rng.below(200);
            rig.fail = Some((request, Fate::Torn));
            rig.fuse = Some(request + 1 + rng.below(50));
            for _ in 0..200 {
                let op = if rng.below(6) == 0 {
                    Op::Flush
                } else {
                    random_op(&mut rng, rig.oracle.blocks())
                };
                if rig.try_run(op) == Ok(false) {
                    break;
                }
                rig.step();
            }
            rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}"));
        },
    );
}

/// Every request of an opening fails once: it says so, and the next one comes to the same.
#[test]
fn every_request_of_an_opening_fails_once() {
    let mut rig = begin(setup());
    rig.fuse = Some(150);
    let mut rng = Rng::new(9);
    while rig.run(random_op(&mut rng, rig.setup.logical_blocks)) {}
    let image = rig.random_cut();
    let whole =
        Rig::open(rig.setup, Disk::new(image.clone()), rig.oracle.clone(), 1).expect("it opens");
    for request in 0..whole.opening {
        let mut disk = Disk::new(image.clone());
        disk.fails = Some(request);
        let opened = open(&mut disk, &rig.setup);
        drop(opened);
        let disk = Disk::new(disk.random_cut(&mut rng));
        Rig::open(rig.setup, disk, whole.oracle.clone(), 1)
            .unwrap_or_else(|what| panic!("{what} after request {request} failed"));
    }
}

/// A batch that failed went behind some with higher numbers, and is durable there. What was sent between it and them is not.
pub(crate) fn moved_behind(setup: Setup, seed: u64) -> Option<Rig> {
    let mut rig = Rig::new(setup, seed);
    let write = |lba, blocks, fua| Op::Write { lba, blocks, fua };
    // The log segment has room for two more.
    for blocks in [15, 15, 15, 11] {
        assert!(rig.run(write(100, blocks, false)) && rig.settle());
    }
    assert!(rig.run(write(1, 1, false)));
    let flush = rig.oracle.next_op();
    assert!(rig.run(Op::Flush));
    (rig.fail, rig.fail_again) = (Some((rig.requests + 1, Fate::Lost)), 4);
    rig.step();
    assert!((2..8).all(|lba| rig.run(write(lba, 1, true))));
    while rig.oracle.waiting().contains(&flush) {
        rig.step();
    }
    let recovered = |fate| {
        let mut disk = Disk::new(rig.disk.cut(&mut Rng::new(seed), |_, _| fate));
        open(&mut disk, &setup).expect("it opens").1.seq
    };
    (recovered(Fate::Lost) + 6 <= recovered(Fate::Whole)).then_some(rig)
}

/// The batches with higher numbers do not count after a power cut, and the one behind them does: the chain of headers that leads there
/// stays, whenever an opening is cut, and for the cleaner.
#[test]
fn what_does_not_count_leads_to_what_does() {
    let setup = Setup::of(64 * 134, 900, Options { clean_below: Some(110), ..OPTIONS });
    let mut rig = (0..100).find_map(|seed| moved_behind(setup, seed)).expect("one of them");
    let disk = Disk::new(rig.disk.cut(&mut rig.rng, |_, _| Fate::Lost));
    let open_on = |disk: &Disk, oracle: &Oracle| {
        let opened = Rig::open(setup, disk.clone(), oracle.clone(), 1);
        opened.unwrap_or_else(|what| panic!("{what}"))
    };
    let mut whole = open_on(&disk, &rig.oracle);
    for fuse in 0..whole.opening {
        let mut cut = disk.clone();
        cut.fuse = Some(fuse);
        let _ = open(&mut cut, &setup);
        for fate in [Fate::Lost, Fate::Whole] {
            open_on(&Disk::new(cut.cut(&mut whole.rng, |_, _| fate)), &whole.oracle);
        }
    }
    for n in 0..120 {
        assert!(whole.run(Op::Write { lba: 100 + n % 8 * 100, blocks: 90, fua: false }));
    }
    whole.assert_counts();
}
