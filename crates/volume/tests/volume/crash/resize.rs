//! Power fails while a volume or its backing changes size: afterwards it has the old size or the new one, and what it held.

use std::collections::BTreeSet;

use onefold_testkit::{budget, for_each_seed};
use onefold_units::convert::{index64, low32, u64_from};
use onefold_units::{Nanos, Rng};
use onefold_volume::{Geometry, MemberId, Resize, SegmentInfo, Volume, drive, inspect};

use crate::harness::disk::{Disk, Fate};
use crate::harness::image::Image;
use crate::harness::ops::{random_op, resize_to};
use crate::harness::oracle::Oracle;
use crate::harness::rig::{Op, Order, Rig, assert_fixed, host_of, open, read_all};
use crate::harness::setup::{OPTIONS, Setup, pick};
use crate::harness::zones::ZoneSetup;

/// Backings that are smaller have roots in their middle.
const BACKING_MIN: u64 = 32_768;
const FILE: u64 = BACKING_MIN + 40 * 64;
const BEGIN: u64 = BACKING_MIN + 20 * 64 + 7;
const LOGICAL: u64 = 3000;
const LOGICAL_MAX: u64 = 5000;

fn setup() -> Setup {
    let mut setup = Setup::of(BEGIN, LOGICAL, OPTIONS);
    setup.file_blocks = FILE;
    setup
}

/// A volume at rest whose data and map lie all over the backing, the end of it included.
fn begin() -> (Image, Oracle) {
    let mut rig = Rig::new(setup(), 5);
    rig.oracle.extend(LOGICAL_MAX);
    rig.order = Order::InTurn;
    let mut rng = Rng::new(3);
    for lba in (0..LOGICAL).step_by(60) {
        assert!(rig.run(Op::Write { lba, blocks: 60, fua: false }));
    }
    // Most of it is overwritten at once, so that log segments become free without cleaning, until the log comes to the end
    // of the backing.
    while in_the_tail(&rig) < 10 {
        for lba in (0..LOGICAL).step_by(60).filter(|lba| lba % 600 != 0) {
            assert!(rig.run(Op::Write { lba, blocks: 60, fua: false }));
        }
        let lba = rng.below(LOGICAL - 60);
        assert!(rig.run(Op::Write { lba, blocks: 60, fua: false }));
        assert!(rig.run(Op::Checkpoint));
        assert!(rig.settle());
    }
    let mut rig = rig.close_and_reopen().expect("a closed volume opens");
    assert!(rig.settle());
    let mut image = rig.disk.cut(&mut rig.rng, |_, _| Fate::Lost);
    image.settle();
    (image, rig.oracle)
}

/// On zones, of which so many and the last one are conventional.
fn zoned(conventional: u32) -> Setup {
    let zones = ZoneSetup { size: 128, capacity: 64, limit: Some(4), conventional };
    Setup::of(0, LOGICAL, OPTIONS).on_zones(110, zones)
}

fn log_of(rig: &Rig) -> &Volume {
    rig.volume.as_log().expect("a volume of mode log")
}

/// That of the volume, but for what the host uses.
fn geometry(rig: &Rig) -> Geometry {
    Geometry { logical_blocks: rig.blocks(), ..*log_of(rig).layout().geometry() }
}

/// Log segments in use that a smaller backing does not have.
fn in_the_tail(rig: &Rig) -> usize {
    let tail = |info: &SegmentInfo| u64::from(info.segment.raw()) * 64 >= BACKING_MIN;
    log_of(rig).segment_infos().filter(|info| tail(info) && info.live > 0).count()
}

/// A new size, and what the host has to do before.
fn random_resize(rng: &mut Rng, now: &Geometry) -> (Option<Op>, Resize) {
    if now.zone_blocks == 0 && rng.below(2) == 0 {
        let blocks = BACKING_MIN + rng.below(FILE - BACKING_MIN + 1);
        return (None, Resize::Backing { blocks });
    }
    let blocks = 500 + rng.below(LOGICAL_MAX - 499);
    let tail = now.logical_blocks.saturating_sub(blocks);
    let discard = rng.below(2) == 0;
    let trim = (tail > 0 && !discard).then_some(Op::Trim { lba: blocks, blocks: tail });
    (trim, Resize::Logical { member: MemberId::DEVICE, blocks, discard })
}

/// Random operations within what the host can use. `false` if power fails.
fn work(rig: &mut Rig, rng: &mut Rng, ops: u64, blocks: u64) -> bool {
    (0..ops).all(|_| {
        let taken = rig.run(random_op(rng, blocks));
        (0..rng.below(4)).for_each(|_| rig.step());
        taken
    })
}

#[test]
fn random_resizes() {
    let (image, oracle) = begin();
    for_each_seed(("onefold-volume", "volume", "random_resizes"), 24, |seed| {
        let disk = Disk::new(image.clone());
        let rig = Rig::open(setup(), disk, oracle.clone(), seed).expect("it opens");
        resize_often(rig, &mut Rng::new(seed));
    });
}

/// With as few active zones as can be: a label takes one as well.
#[test]
fn random_resizes_on_zones() {
    for_each_seed(("onefold-volume", "volume", "random_resizes_on_zones"), 60, |seed| {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(zoned(pick(&mut rng, &[0, 0, 1, 2, 9])), seed);
        rig.oracle.extend(LOGICAL_MAX);
        resize_often(rig, &mut rng);
    });
}

/// Changes sizes until power fails, four times.
fn resize_often(mut rig: Rig, rng: &mut Rng) {
    for _ in 0..4 {
        rig.fuse = Some(1 + rng.below(900));
        let mut sizes = vec![geometry(&rig)];
        loop {
            let family = [Op::Snapshot, Op::Delete, Op::Flush, Op::Flush][index64(rng.below(4))];
            if !rig.run(family) || rng.below(2) == 0 && !rig.settle() {
                break;
            }
            let now = geometry(&rig);
            let (before, to) = random_resize(rng, &now);
            let power = before.is_none_or(|op| rig.run(op)) && rig.run(Op::Resize(to));
            if !power {
                break;
            }
            let mut new = now;
            match to {
                Resize::Logical { blocks, .. } => new.logical_blocks = blocks,
                Resize::Backing { blocks } => new.backing_blocks = blocks,
            }
            sizes = vec![now, new];
            let usable = now.logical_blocks.min(new.logical_blocks);
            if !work(&mut rig, rng, 20, usable) || !rig.settle() {
                break;
            }
            assert_eq!(geometry(&rig), new);
            if rng.below(3) == 0 {
                rig.assert_counts();
            }
            sizes = vec![new];
        }
        rig = rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}, {sizes:?}"));
        let found = geometry(&rig);
        assert!(sizes.contains(&found), "{found:?} instead of one of {sizes:?}");
        // Nobody wrote over a label or root.
        let blocks = rig.disk.view().blocks();
        let inspection = inspect(&mut rig.disk.clone(), blocks, false).expect("it opened");
        assert!(inspection.findings.is_empty(), "{:?}", inspection.findings);
    }
    rig.assert_counts();
}

/// Any volume, thin ones as well, with sizes that change among snapshots that come and go: each keeps the size that it had.
#[test]
fn random_cuts_of_resized_families() {
    for_each_seed(("onefold-volume", "volume", "random_cuts_of_resized_families"), 40, |seed| {
        let mut rng = Rng::new(seed);
        let setup =
            if seed % 5 == 0 { Setup::random_thin(&mut rng) } else { Setup::random(&mut rng) };
        let mut setup = Setup { cloned: rng.below(3) == 0, ..setup };
        if setup.cloned {
            // As few as the device, the clone and a snapshot need.
            setup.options.map_pages = setup.options.map_pages.max(12);
        }
        let mut rig = Rig::new(setup, seed);
        // Then it may be larger than the device.
        if setup.cloned && setup.logical_blocks < 5000 {
            rig.oracle.extend(5000);
        }
        for _ in 0..4 {
            let within = [20, 300, 3000][index64(rng.below(3))];
            rig.fuse = Some(1 + rng.below(within));
            work_on_a_family(&mut rig, &mut rng);
            rig = rig
                .cut_and_reopen(low32(rng.below(3)))
                .unwrap_or_else(|what| panic!("{what}, {setup:?}"));
        }
        rig.assert_counts();
        rig = rig.close_and_reopen().unwrap_or_else(|what| panic!("{what}, {setup:?}"));
        work_on_a_family(&mut rig, &mut rng);
        rig.assert_counts();
    });
}

/// A write behind the old end of a clone is taken when a root says the new one, so no power cut takes it away.
#[test]
fn what_is_written_behind_the_old_end_of_a_clone_stays() {
    let setup = Setup { cloned: true, ..Setup::of(64 * 134, 2000, OPTIONS) };
    for (seed, steps) in (0..400).map(|n| (n, n % 25)) {
        let mut rig = Rig::new(setup, seed);
        rig.oracle.extend(3000);
        rig.order = Order::InTurn;
        assert!(rig.run(Op::Resize(resize_to(3000))));
        while rig.resizing {
            rig.step();
        }
        assert!(rig.run(Op::Write { lba: 2500, blocks: 3, fua: true }));
        (0..steps).for_each(|_| rig.step());
        rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what} after {steps} steps"));
    }
}

fn work_on_a_family(rig: &mut Rig, rng: &mut Rng) {
    let mut blocks = rig.blocks();
    for _ in 0..400 {
        let op = match rng.below(100) {
            0..4 => Op::Snapshot,
            4..7 => Op::Delete,
            7..10 => {
                let (most, layout) = (rig.oracle.blocks(), log_of(rig).layout());
                // A device that is not thin any more does not become so again.
                let least = if layout.is_thin() { layout.logical_max() } else { most / 4 };
                let to = least + 1 + rng.below(most - least);
                blocks = blocks.min(to);
                Op::Resize(Resize::Logical { member: MemberId::DEVICE, blocks: to, discard: true })
            }
            _ => random_op(rng, blocks),
        };
        if !rig.run(op) {
            return;
        }
        (0..rng.below(4)).for_each(|_| rig.step());
        if !rig.resizing {
            blocks = rig.blocks();
        }
    }
}

/// What is cut at every step of one resize.
fn every_cut(
    setup: Setup,
    image: &Image,
    oracle: &Oracle,
    before: Option<Op>,
    to: Resize,
    subsets: u64,
) -> usize {
    let disk = Disk::new(image.clone());
    let mut rig = Rig::open(setup, disk, oracle.clone(), 9).expect("it opens");
    rig.order = Order::InTurn;
    assert!(before.is_none_or(|op| rig.run(op)));
    assert!(rig.run(Op::Resize(to)));
    let mut seen = BTreeSet::new();
    loop {
        for _ in 0..subsets {
            let image = rig.random_cut();
            if seen.insert(image.digest()) {
                recover(&setup, &image, &rig.oracle)
                    .unwrap_or_else(|what| panic!("{what}, {to:?}"));
            }
        }
        if rig.is_settled() {
            return seen.len();
        }
        rig.step();
    }
}

fn recover(setup: &Setup, image: &Image, oracle: &Oracle) -> Result<(), String> {
    let mut disk = Disk::new(image.clone());
    let (mut volume, recovery) = open(&mut disk, setup).map_err(|error| error.to_string())?;
    assert_fixed(&*volume);
    let (member, end) = host_of(setup, &*volume);
    let mut found = read_all(&mut *volume, &mut disk, member, 0..end)?;
    found.resize(index64(oracle.blocks()), None);
    oracle.check(recovery.seq, &found)
}

#[test]
fn every_cut_of_a_resize() {
    let (image, oracle) = begin();
    let tail = Op::Trim { lba: 1000, blocks: LOGICAL - 1000 };
    let resizes = [
        (None, resize_to(LOGICAL_MAX)),
        (Some(tail), resize_to(1000)),
        (None, Resize::Backing { blocks: FILE }),
        (None, Resize::Backing { blocks: BACKING_MIN + 1 }),
    ];
    let subsets = budget(6);
    let states: Vec<_> = resizes
        .into_iter()
        .map(|(before, to)| u64_from(every_cut(setup(), &image, &oracle, before, to, subsets)))
        .collect();
    println!("{states:?} distinct crash states of resizes");
    assert!(states.iter().all(|count| *count >= 6), "{states:?}");
}

#[test]
fn every_cut_of_a_resize_on_zones() {
    for conventional in [0, 1, 9] {
        let mut rig = Rig::new(zoned(conventional), 5);
        rig.oracle.extend(LOGICAL_MAX);
        for lba in (0..LOGICAL).step_by(60) {
            assert!(rig.run(Op::Write { lba, blocks: 60, fua: false }));
        }
        let mut rig = rig.close_and_reopen().expect("a closed volume opens");
        assert!(rig.settle());
        let (image, oracle) = (rig.disk.cut(&mut rig.rng, |_, _| Fate::Lost), rig.oracle);
        let tail = Op::Trim { lba: 1000, blocks: LOGICAL - 1000 };
        let resizes = [(None, resize_to(LOGICAL_MAX)), (Some(tail), resize_to(1000))];
        for (before, to) in resizes {
            let setup = zoned(conventional);
            let states = every_cut(setup, &image, &oracle, before, to, budget(6));
            assert!(states >= 6, "{states}");
        }
    }
}

/// Nothing but what a resize asks for happens meanwhile: where no stream has a zone to leave, or one that is conventional, nobody
/// calls the volume again for it.
#[test]
fn a_resize_on_zones_at_rest() {
    for (conventional, writes) in [(0, false), (0, true), (9, true)] {
        let mut rig = Rig::new(zoned(conventional), 5);
        if writes {
            assert!(rig.run(Op::Write { lba: 0, blocks: 30, fua: false }) && rig.settle());
        }
        let volume = rig.volume.as_log_mut().expect("a volume of mode log");
        volume.resize(resize_to(LOGICAL_MAX)).expect("there is room");
        drive(volume, &mut rig.disk, Nanos::new(1 << 40));
        assert_eq!(volume.poll_resized(), Some(Ok(())), "{conventional} conventional zones");
    }
}

/// A map that no single checkpoint sweeps: its pages change, the sweep goes on with the tail before it is cut off, and each
/// run stays until its pages were swept.
#[test]
fn resizes_of_many_pages() {
    const PAGES: u64 = 20;
    for_each_seed(("onefold-volume", "volume", "resizes_of_many_pages"), 12, |seed| {
        let mut rng = Rng::new(seed);
        let setup = Setup::of(64 * 420, PAGES * 1024, OPTIONS);
        let setup = Setup { cloned: seed % 3 == 0, ..setup };
        let mut rig = Rig::new(setup, seed);
        rig.order = Order::InTurn;
        for _ in 0..4 {
            for _ in 0..4 {
                let blocks = geometry(&rig).logical_blocks;
                for _ in 0..3 {
                    // One block in many pages.
                    for _ in 0..rng.below(30) {
                        let lba = rng.below(blocks);
                        assert!(rig.run(Op::Write { lba, blocks: 1, fua: false }));
                    }
                    assert!(rig.run(Op::Checkpoint) && rig.settle());
                }
                let to = (5 + rng.below(PAGES - 4)) * 1024 - rng.below(2) * 100;
                let family = [Op::Snapshot, Op::Delete, Op::Flush][index64(rng.below(3))];
                assert!(rig.run(family));
                if to < blocks {
                    assert!(rig.run(Op::Trim { lba: to, blocks: blocks - to }));
                }
                assert!(rig.run(Op::Resize(resize_to(to))));
                assert!(rig.settle());
                assert_eq!(geometry(&rig).logical_blocks, to);
            }
            if rng.below(2) == 0 {
                rig.assert_counts();
            }
            rig = rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}"));
        }
        rig.assert_counts();
    });
}

/// A resize makes the sweep begin anew in the middle of its round: what a run has of pages that it did not come to stays.
#[test]
fn a_run_stays_when_a_resize_interrupts_the_sweep() {
    const PAGES: u64 = 20;
    let setup = Setup::of(64 * 420, (PAGES - 1) * 1024, OPTIONS);
    let mut rig = Rig::new(setup, 1);
    rig.oracle.extend(PAGES * 1024);
    rig.order = Order::InTurn;
    for page in 0..PAGES - 1 {
        assert!(rig.run(Op::Write { lba: page * 1024, blocks: 1, fua: false }));
    }
    // Each sweeps four pages.
    for _ in 0..3 {
        assert!(rig.run(Op::Checkpoint) && rig.settle());
    }
    assert!(rig.run(Op::Resize(resize_to(PAGES * 1024))));
    assert!(rig.settle());
    rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}"));
}

/// A block of the directory stands for 252 pages. That of the tail of the device, in which nothing is mapped any more, is that of the
/// snapshot as well.
#[test]
fn a_directory_block_that_a_snapshot_shares_stays() {
    const PAGES: u64 = 300;
    let mut rig = Rig::new(Setup::of(64 * 420, PAGES * 1024, OPTIONS), 1);
    let lba = (PAGES - 1) * 1024;
    for op in [Op::Write { lba, blocks: 1, fua: false }, Op::Trim { lba, blocks: 1 }] {
        assert!(rig.run(op) && rig.run(Op::Checkpoint) && rig.settle());
    }
    assert!(rig.run(Op::Snapshot) && rig.settle());
    assert!(rig.run(Op::Resize(resize_to(100 * 1024))) && rig.settle());
    rig.assert_counts();
    let mut rig = rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}"));
    rig.assert_counts();
}
