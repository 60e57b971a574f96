//! A backing that lies: rotten, misplaced and lost blocks. An error or the right content, never anything else.

use onefold_format::volume::{
    BatchHeader, DirectoryBlock, RunBlock, label_addresses, root_addresses,
};
use onefold_testkit::for_each_seed;
use onefold_units::convert::{index64, u64_from};
use onefold_units::{Lba, Nanos, Rng};
use onefold_volume::{
    IoFailed, IoKind, MemberId, Range, ReadPlan, Refusal, Resize, ResizeError, Volume, drive,
    execute, mount_read_only,
};

use super::rotten::images_of;
use crate::harness::disk::Disk;
use crate::harness::errors::assert_right_or_error;
use crate::harness::image::{Image, block};
use crate::harness::ops::random_op;
use crate::harness::oracle::Oracle;
use crate::harness::rig::{Op, Rig, fetch, open, snapshots};
use crate::harness::roots::newest_body;
use crate::harness::setup::{OPTIONS, Setup, UUID};
use crate::harness::stamp::BLOCK;

pub(crate) fn setup() -> Setup {
    let options =
        onefold_volume::Options { checkpoint_blocks: 400, clean_below: Some(20), ..OPTIONS };
    Setup::of(64 * 134, 2100, options)
}

/// A volume with all kinds of blocks, some batches after its last checkpoint, all of it durable.
pub(crate) fn worked(seed: u64) -> (Image, Oracle) {
    let mut rng = Rng::new(seed);
    let mut rig = Rig::new(setup(), seed);
    for _ in 0..400 {
        assert!(rig.run(random_op(&mut rng, rig.oracle.blocks())));
        rig.step();
    }
    assert!(rig.settle());
    assert!(rig.run(Op::Checkpoint));
    assert!(rig.settle());
    for lba in 0..8 {
        assert!(rig.run(Op::Write { lba: 8 * lba, blocks: 3, fua: true }));
        assert!(rig.settle());
    }
    (rig.disk.view().clone(), rig.oracle)
}

/// What became of a damaged volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Refused,
    Errors,
    Whole,
    /// What came last is gone, as after a power cut: nothing on the backing says that it was durable.
    Older,
}

fn outcome(image: Image, oracle: &Oracle) -> Outcome {
    let mut disk = Disk::new(image);
    let Ok((mut volume, recovery)) = open(&mut disk, &setup()) else {
        // Nothing was changed, so it can be looked at.
        if let Ok((mut volume, _, _)) =
            mount_read_only(&mut disk, setup().backing_blocks, setup().options)
        {
            volume.pump(Nanos::new(1));
        }
        return Outcome::Refused;
    };
    let state = oracle.state_at(recovery.seq);
    let errors = assert_right_or_error(&mut *volume, &mut disk, &state);
    if (0..).zip(&state).any(|(lba, content)| oracle.now(lba) != *content) {
        Outcome::Older
    } else if errors.blocks + errors.pages > 0 {
        Outcome::Errors
    } else {
        Outcome::Whole
    }
}

/// Live data that rots is an error for that block alone; so is data that landed elsewhere or nowhere.
#[test]
fn damaged_data_is_an_error_for_its_block() {
    let (image, oracle) = worked(1);
    let mut rng = Rng::new(1);
    for round in 0..30 {
        let mut disk = Disk::new(image.clone());
        let (mut volume, _) = open(&mut disk, &setup()).expect("it opens");
        let lba = loop {
            let lba = rng.below(oracle.blocks());
            if oracle.now(lba) > 0 {
                break lba;
            }
        };
        let mut plan = ReadPlan::default();
        let range = Range { lba: Lba::new(lba), blocks: 1 };
        while volume.read(range, None, &mut plan) == Err(Refusal::Busy) {
            drive(&mut *volume, &mut disk, Nanos::new(1));
        }
        volume.end_read(&plan);
        let at = u64::from(plan.runs()[0].at.raw());
        let mut damaged = disk.view().clone();
        match round % 3 {
            0 => damaged.flip(at, index64(rng.below(u64_from(BLOCK * 8)))),
            // Something else landed here.
            1 => damaged.set(at, damaged.get(at ^ 1).clone()),
            // Its write was dropped.
            _ => damaged.set(at, block(&[0; BLOCK])),
        }
        let mut disk = Disk::new(damaged);
        let (mut volume, _) = open(&mut disk, &setup()).expect("it opens");
        let errors = assert_right_or_error(&mut *volume, &mut disk, &oracle.state_at(u64::MAX));
        assert_eq!((errors.blocks, errors.pages), (1, 0), "block {lba} in round {round}");
    }
}

/// Nor is it given out while the cleaner has it in memory.
#[test]
fn damaged_data_is_an_error_while_it_moves() {
    let (image, oracle) = worked(1);
    let options = onefold_volume::Options { clean_below: Some(110), ..setup().options };
    let setup = Setup { options, ..setup() };
    let mut refused = 0;
    for lba in (0..oracle.blocks()).filter(|lba| oracle.now(*lba) > 0).step_by(9) {
        let mut disk = Disk::new(image.clone());
        let (mut volume, _) = open(&mut disk, &setup).expect("it opens");
        let range = Range { lba: Lba::new(lba), blocks: 1 };
        let (mut plan, mut bytes) = (ReadPlan::default(), vec![0; BLOCK]);
        while volume.read(range, None, &mut plan) == Err(Refusal::Busy) {
            drive(&mut *volume, &mut disk, Nanos::new(1));
        }
        volume.end_read(&plan);
        let mut damaged = disk.view().clone();
        damaged.flip(u64::from(plan.runs()[0].at.raw()), 4000);
        let mut disk = Disk::new(damaged);
        let (mut volume, _) = open(&mut disk, &setup).expect("it opens");
        for _ in 0..4 {
            volume.want_cleaning();
            volume.pump(Nanos::new(1));
            while let Some(io) = volume.poll_io() {
                match volume.read(range, Some(&mut bytes), &mut plan) {
                    Err(Refusal::Busy) => {}
                    read => {
                        fetch(&disk, &plan, &mut bytes);
                        let in_memory = read == Err(Refusal::MediaError);
                        assert!(in_memory || plan.complete(&mut bytes).len() == 1, "block {lba}");
                        refused += u32::from(in_memory);
                        volume.end_read(&plan);
                    }
                }
                let result = execute(&mut *volume, &mut disk, io);
                volume.completed(Nanos::new(1), io.id, result);
                volume.pump(Nanos::new(1));
            }
        }
    }
    assert!(refused > 0, "none was in memory");
}

/// All copies but one of the label may rot, and any one root.
#[test]
fn labels_and_roots_have_copies() {
    let (image, oracle) = worked(2);
    let blocks = setup().backing_blocks;
    let labels = label_addresses(blocks);
    for kept in &labels {
        let mut damaged = image.clone();
        labels.iter().filter(|at| *at != kept).for_each(|at| damaged.flip(*at, 900));
        assert_eq!(outcome(damaged, &oracle), Outcome::Whole);
    }
    let mut damaged = image.clone();
    for at in &labels {
        damaged.flip(*at, 900);
    }
    assert_eq!(outcome(damaged, &oracle), Outcome::Refused);
    let mut whole = 0;
    for at in root_addresses(blocks) {
        let mut damaged = image.clone();
        damaged.flip(at, 900);
        // Without the newest one, the log since the one before may be there or not.
        whole += u64::from(outcome(damaged, &oracle) == Outcome::Whole);
    }
    assert!(whole >= 7, "only {whole} of 8 roots can be missed");
}

/// Blocks of the log that the volume needs, by what they are.
fn kind_of(image: &Image, at: u64) -> &'static str {
    let bytes = &image.get(at)[..];
    if BatchHeader::decode(bytes, &UUID, at).is_ok() {
        return "header";
    }
    if RunBlock::decode(bytes, &UUID, at).is_ok() {
        return "run";
    }
    if DirectoryBlock::decode(bytes, &UUID, at).is_ok() { "directory" } else { "other" }
}

/// Of two pages of a deleted snapshot that cannot be read, the later one can be first, as it failed later: what each had alone is freed.
#[test]
fn what_unreadable_pages_of_a_deleted_snapshot_had_is_freed() {
    const TENTH: u64 = 100_000_000;
    let setup = Setup::of(64 * 420, 20 * 1024, OPTIONS);
    let mut rig = Rig::new(setup, 4);
    let fill = |rig: &mut Rig, at: u64| {
        for page in 0..20 {
            assert!(rig.run(Op::Write { lba: page * 1024 + at, blocks: 3, fua: false }));
        }
        assert!(rig.run(Op::Checkpoint) && rig.settle());
    };
    fill(&mut rig, 7);
    fill(&mut rig, 100);
    assert!(rig.run(Op::Snapshot) && rig.settle());
    (0..20).for_each(|_| fill(&mut rig, 7));
    let image = rig.disk.view().clone();
    let (own, pages) = (images_of(&image, &setup, 0), images_of(&image, &setup, 1));
    assert!(own[3] != pages[3] && own[9] != pages[9]);
    let unreadable_until = [(pages[3], 2000 * TENTH), (pages[9], 50 * TENTH)];
    let mut disk = Disk::new(image);
    let (mut volume, _) = open(&mut disk, &setup).expect("it opens");
    for tenths in 0..5000 {
        let now = Nanos::new(tenths * TENTH + 1);
        match tenths {
            // Both failed when the map was read. What is shared there has page 9 read once more.
            30 => {
                let range = Range { lba: Lba::new(9 * 1024 + 100), blocks: 1 };
                assert_eq!(volume.write(1, range, Some(&[1; BLOCK]), false), Err(Refusal::Busy));
            }
            35 => {
                let snapshot = snapshots(&*volume)[0].id;
                volume.as_log_mut().expect("mode log").delete_member(2, snapshot).expect("it goes");
            }
            _ => {}
        }
        volume.pump(now);
        while let Some(io) = volume.poll_io() {
            let first = u64::from(io.at.raw());
            let touched = first..first + u64::from(io.blocks);
            let fails = |(at, until): &(u64, u64)| touched.contains(at) && now.get() < *until;
            let is_read = io.kind == IoKind::Read;
            let result = if is_read && unreadable_until.iter().any(fails) {
                Err(IoFailed::Error)
            } else {
                execute(&mut *volume, &mut disk, io)
            };
            volume.completed(now, io.id, result);
        }
    }
    let volume = volume.as_log().expect("mode log");
    assert_eq!(volume.members().count(), 1, "it is still there");
    assert_eq!(volume.recount(), Some(Vec::new()), "live counts are wrong");
}

/// How a resize ends where a block cannot be read any more after so many times.
fn resize_with(
    setup: &Setup,
    image: &Image,
    to: Resize,
    rotten: (u64, u32),
) -> Result<(), ResizeError> {
    let mut disk = Disk::new(image.clone());
    let (mut volume, _) = open(&mut disk, setup).expect("it opens");
    volume.as_log_mut().expect("a volume of mode log").resize(to).expect("it begins");
    let (at, mut left) = rotten;
    for _ in 0..10_000 {
        volume.pump(Nanos::new(1));
        while let Some(io) = volume.poll_io() {
            let first = u64::from(io.at.raw());
            let result = execute(&mut *volume, &mut disk, io);
            if io.kind == IoKind::Read && (first..first + u64::from(io.blocks)).contains(&at) {
                if left == 0 {
                    let from = index64(at - first) * BLOCK;
                    volume.buffer_mut(io.id)[from..from + BLOCK].fill(7);
                }
                left = left.saturating_sub(1);
            }
            volume.completed(Nanos::new(1), io.id, result);
        }
        if let Some(end) = volume.as_log_mut().and_then(Volume::poll_resized) {
            return end;
        }
    }
    panic!("{to:?} does not end with {rotten:?}");
}

/// What lies behind a smaller end and cannot be read is told, whether that is found when the tail is looked at or when its images
/// are to go; what a snapshot has there does not matter.
#[test]
fn a_rotten_page_behind_a_smaller_end_is_told() {
    const PAGES: u64 = 20;
    const LEFT: u64 = 5;
    let fill = |rig: &mut Rig, pages: std::ops::Range<u64>| {
        for page in pages {
            let lba = page * 1024 + rig.rng.below(1000);
            assert!(rig.run(Op::Write { lba, blocks: 3, fua: false }));
        }
        assert!(rig.run(Op::Checkpoint) && rig.settle());
    };
    let mut setup = Setup::of(64 * 420, PAGES * 1024, OPTIONS);
    let mut rig = Rig::new(setup, 4);
    (0..20).for_each(|_| fill(&mut rig, 0..PAGES));
    assert!(rig.run(Op::Snapshot) && rig.settle());
    (0..20).for_each(|_| fill(&mut rig, 0..PAGES));
    let image = rig.disk.view().clone();
    let (own, of_snapshot) = (images_of(&image, &setup, 0), images_of(&image, &setup, 1));
    let to = |discard| Resize::Logical { member: MemberId::DEVICE, blocks: LEFT * 1024, discard };
    for page in [LEFT, LEFT + 7, PAGES - 1] {
        let at = index64(page);
        assert_ne!(own[at], of_snapshot[at]);
        let unreadable = Err(ResizeError::Unreadable { lba: page * 1024 });
        assert_eq!(resize_with(&setup, &image, to(true), (own[at], 0)), unreadable);
        assert_eq!(resize_with(&setup, &image, to(true), (of_snapshot[at], 0)), Ok(()));
    }
    // The tail maps nothing any more, but it has images: the sweep, which begins anew, had enough with the pages before it.
    rig = rig.cut_and_reopen(0).expect("it opens");
    let tail = Op::Trim { lba: LEFT * 1024, blocks: (PAGES - LEFT) * 1024 };
    assert!(rig.run(tail));
    fill(&mut rig, 0..LEFT);
    let image = rig.disk.view().clone();
    let body = newest_body(&image, &root_addresses(setup.backing_blocks));
    let run = body.runs.last().expect("the tail is trimmed").extents[0].location.raw();
    // Less memory than the tail has pages, so that what the run says of them is read when the tail is looked at, and again for the
    // sweep.
    setup.options.map_pages = 8;
    let ends: Vec<_> =
        (0..100).map(|reads| resize_with(&setup, &image, to(false), (run.into(), reads))).collect();
    let at_a_look = index64(PAGES - LEFT);
    let told = |end: &Result<(), ResizeError>| matches!(end, Err(ResizeError::Unreadable { .. }));
    let good = ends.iter().position(Result::is_ok).expect("it ends well with few errors");
    assert!(good > at_a_look && ends[..good].iter().all(told), "{ends:?}");
    assert!(ends[good..].iter().all(Result::is_ok), "{ends:?}");
}

/// A header that rots is not the end of the log if a later one says that it was durable.
#[test]
fn rotten_headers_are_noticed() {
    let (image, oracle) = worked(3);
    let header = |at| BatchHeader::decode(&image.get(at)[..], &UUID, at).ok();
    let mut headers: Vec<(u64, u64)> = (0..image.blocks())
        .filter_map(|at| header(at).map(|batch| (batch.header.seq.raw(), at)))
        .collect();
    headers.sort_unstable();
    // The last one could as well have been lost in a power cut.
    let (_, before) = headers.split_last().expect("a volume with batches");
    for (seq, at) in &before[before.len() - 6..] {
        let mut damaged = image.clone();
        damaged.flip(*at, 900);
        assert_eq!(outcome(damaged, &oracle), Outcome::Refused, "batch {seq} at block {at}");
    }
}

/// Any block of the backing rots, or holds what belongs elsewhere, or what it held long ago.
#[test]
fn random_damage() {
    let mut outcomes = [0_u64; 4];
    for_each_seed(("onefold-volume", "volume", "random_damage"), 60, |seed| {
        let mut rng = Rng::new(seed);
        let (image, oracle) = worked(seed % 4);
        let blocks = image.blocks();
        // Data is rather common, metadata rather telling.
        let wanted = ["header", "run", "directory", "other"][index64(rng.below(4))];
        let mut at = rng.below(blocks);
        for _ in 0..2_000 {
            if kind_of(&image, at) == wanted {
                break;
            }
            at = rng.below(blocks);
        }
        let mut damaged = image.clone();
        match rng.below(3) {
            0 => damaged.flip(at, index64(rng.below(u64_from(BLOCK * 8)))),
            1 => damaged.set(at, image.get(rng.below(blocks)).clone()),
            _ => damaged.set(at, block(&[0; BLOCK])),
        }
        outcomes[match outcome(damaged, &oracle) {
            Outcome::Refused => 0,
            Outcome::Errors => 1,
            Outcome::Whole => 2,
            Outcome::Older => 3,
        }] += 1;
    });
    println!("refused, errors, nothing lost, the end lost: {outcomes:?}");
}

/// The test of the test: a backing that drops flushes loses what was promised, and the oracle says so.
#[test]
fn dropped_flushes_are_noticed() {
    let noticed = (0..20).filter(|seed| {
        let mut rng = Rng::new(*seed);
        let mut rig = Rig::new(setup(), *seed);
        rig.disk.drops_flushes = true;
        for _ in 0..30 {
            assert!(rig.run(random_op(&mut rng, rig.oracle.blocks())));
        }
        assert!(rig.run(Op::Flush));
        assert!(rig.settle());
        rig.cut_and_reopen(0).is_err()
    });
    let noticed = noticed.count();
    assert!(noticed >= 5, "a backing that drops flushes was noticed {noticed} times of 20");
}
