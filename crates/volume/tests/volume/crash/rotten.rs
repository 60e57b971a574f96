//! Pages of the map that rot, and what runs have of them.

use onefold_format::volume::{DirectoryBlock, RUN_BLOCK_RECORDS, root_addresses};
use onefold_units::convert::{index64, u64_from};
use onefold_units::{Lba, Nanos};
use onefold_volume::{Engine, IoFailed, IoKind, Options, Range, ReadPlan, Refusal, drive, execute};

use crate::harness::disk::Disk;
use crate::harness::image::{Image, block};
use crate::harness::rig::{Op, Rig, fetch, open};
use crate::harness::roots::newest_body;
use crate::harness::setup::{OPTIONS, Setup, UUID};
use crate::harness::stamp::{BLOCK, read_stamp, stamped};

/// Versions of what is written after something rots.
const LATER: u64 = 1 << 20;

/// Writes a block again.
fn write_one(volume: &mut dyn Engine, disk: &mut Disk, lba: u64, version: u64) {
    let range = Range { lba: Lba::new(lba), blocks: 1 };
    let mut taken = Err(Refusal::Busy);
    while taken == Err(Refusal::Busy) {
        taken = volume.write(1, range, Some(&stamped(version, lba, 1)), false);
        drive(volume, disk, Nanos::new(1));
    }
    taken.expect("a write to a page that is there");
}

fn checkpoint(volume: &mut dyn Engine, disk: &mut Disk) {
    volume.as_log_mut().expect("a volume of mode log").want_checkpoint();
    drive(volume, disk, Nanos::new(1));
}

/// Whether no block of a page can be read.
fn is_gone(volume: &mut dyn Engine, disk: &mut Disk, page: u64) -> bool {
    let mut is_error = |lba| {
        let range = Range { lba: Lba::new(lba), blocks: 1 };
        let mut read = Err(Refusal::Busy);
        while read == Err(Refusal::Busy) {
            read = volume.read(range, Some(&mut [0; BLOCK]), &mut ReadPlan::default());
            drive(volume, disk, Nanos::new(1));
        }
        read == Err(Refusal::MediaError)
    };
    (page * 1024..(page + 1) * 1024).all(&mut is_error)
}

/// A volume is opened in which a page has these blocks.
fn assert_page(setup: &Setup, image: Image, page: u64, state: &[u64]) {
    let mut disk = Disk::new(image);
    let (mut volume, _) = open(&mut disk, setup).expect("it opens");
    for lba in page * 1024..(page + 1) * 1024 {
        let found = read_one(&mut *volume, &mut disk, lba);
        assert_eq!(found, Some(state[index64(lba)]), "block {lba} of page {page}");
    }
}

/// A page of the map that cannot be read stays as it is, with what runs have of it, and stops nothing else. What they have of other pages
/// is not taken for newer than the images of these.
#[test]
fn a_rotten_page_of_the_map_does_not_stop_the_sweep() {
    // With runs beside the images, and with all images in the last checkpoints.
    let runs = [usize::MAX, 8].map(rotten_pages);
    assert!(runs[0] > 0 && runs[1] == 0, "{runs:?}");
}

/// Lets each page of a map rot that was written with so many in memory. Gives the runs beside its images.
fn rotten_pages(map_pages: usize) -> usize {
    const PAGES: u64 = 9;
    const ROUNDS: u64 = 60;
    // A block of each page that is written before and after one of them rots.
    const OFTEN: u64 = 1020;
    let options = Options { map_pages, ..OPTIONS };
    let mut setup = Setup { logical_blocks: PAGES * 1024, ..Setup::of(64 * 250, 9000, options) };
    let mut rig = Rig::new(setup, 4);
    let fill = |rig: &mut Rig| {
        for page in 0..PAGES {
            let lba = page * 1024 + rig.rng.below(1000);
            assert!(rig.run(Op::Write { lba, blocks: 3, fua: false }));
            assert!(rig.run(Op::Write { lba: page * 1024 + OFTEN, blocks: 1, fua: false }));
        }
        assert!(rig.run(Op::Checkpoint) && rig.settle());
    };
    (0..20).for_each(|_| fill(&mut rig));
    assert!(rig.run(Op::Snapshot) && rig.settle());
    // A sweep takes four pages, so others have records that their images have not.
    fill(&mut rig);
    let (image, state) = (rig.disk.view().clone(), rig.oracle.state_at(u64::MAX));
    let roots = root_addresses(setup.backing_blocks);
    let body = newest_body(&image, &roots);
    // From now on pages are read again and again.
    setup.options.map_pages = 8;
    for page in 0..PAGES {
        let places = body.members.iter().map(|member| {
            let at = u64::from(member.directory[0].location.raw());
            let directory = DirectoryBlock::decode(&image.get(at)[..], &UUID, at).expect("whole");
            u64::from(directory.entries[index64(page)].page.raw())
        });
        let places: Vec<u64> = places.collect();
        let mut damaged = image.clone();
        for at in &places {
            damaged.set(*at, block(&[7; BLOCK]));
        }
        let mut disk = Disk::new(damaged);
        let (mut volume, _) = open(&mut disk, &setup).expect("it opens");
        let others = || (0..PAGES).filter(|other| *other != page);
        for round in 0..ROUNDS {
            // Runs with the second one are gone in the end.
            let blocks = if round == 0 { vec![round, OFTEN] } else { vec![round] };
            for lba in others().flat_map(|other| blocks.iter().map(move |at| other * 1024 + at)) {
                write_one(&mut *volume, &mut disk, lba, LATER + round);
            }
            checkpoint(&mut *volume, &mut disk);
        }
        let runs = newest_body(disk.view(), &roots).runs.len();
        assert!(runs < 15, "{runs} runs with page {page} damaged");
        assert!(is_gone(&mut *volume, &mut disk, page), "nobody knows what was there");
        let newest = |volume: &mut dyn Engine, disk: &mut Disk| {
            for lba in others().map(|other| other * 1024 + OFTEN) {
                let found = read_one(volume, disk, lba);
                assert_eq!(found, Some(LATER), "block {lba}, page {page} damaged");
            }
        };
        newest(&mut *volume, &mut disk);
        let (mut again, _) = open(&mut disk, &setup).expect("it opens");
        newest(&mut *again, &mut disk);
        // Had it been an error that passes, nothing would be lost.
        let mut whole = disk.view().clone();
        for at in &places {
            whole.set(*at, image.get(*at).clone());
        }
        let mut disk = Disk::new(whole.clone());
        let (mut volume, _) = open(&mut disk, &setup).expect("it opens");
        newest(&mut *volume, &mut disk);
        assert_page(&setup, whole, page, &state);
    }
    body.runs.len()
}

/// Pages of a volume with a run beside their images.
const PAGES: u64 = 9;

/// Records of each in that run, whose blocks so begin and end in the middle of pages.
const EACH: u64 = 60;

/// A volume of so many log segments, of which four pages have images and all are in one run, with what its blocks hold.
fn with_a_run(segments: u64) -> (Setup, Image, Vec<u64>) {
    let setup = Setup { logical_blocks: PAGES * 1024, ..Setup::of(64 * segments, 9000, OPTIONS) };
    let mut rig = Rig::new(setup, 4);
    for page in 0..PAGES {
        assert!(rig.run(Op::Write { lba: page * 1024, blocks: EACH, fua: false }));
    }
    assert!(rig.run(Op::Checkpoint) && rig.settle());
    let setup = Setup { options: Options { map_pages: 8, ..OPTIONS }, ..setup };
    (setup, rig.disk.view().clone(), rig.oracle.state_at(u64::MAX))
}

/// With a run that cannot be read all later ones stay. Where they have no room left the volume takes no more changes, and has all that it was
/// given; where they have, there is an end as well.
#[test]
fn what_a_rotten_run_keeps_does_not_fill_the_log() {
    assert!(checkpoints_with_a_rotten_run(250) < 2000);
    assert_eq!(checkpoints_with_a_rotten_run(3000), 4096);
}

/// Checkpoints until a volume of so many log segments takes no more changes.
fn checkpoints_with_a_rotten_run(segments: u64) -> u64 {
    let (setup, image, state) = with_a_run(segments);
    let roots = root_addresses(setup.backing_blocks);
    let run = newest_body(&image, &roots).runs[0].clone();
    let mut damaged = image;
    damaged.flip(run.extents[0].location.raw().into(), 9000);
    let mut disk = Disk::new(damaged);
    let (mut volume, _) = open(&mut disk, &setup).expect("it opens");
    // The last page is in another block of the run.
    let first = (PAGES - 1) * 1024;
    let mut taken = 0;
    while volume.stalled().is_none() {
        write_one(&mut *volume, &mut disk, first + 100 + taken % 500, LATER);
        checkpoint(&mut *volume, &mut disk);
        taken += 1;
        assert!(taken < 5000, "runs stay for ever");
    }
    assert_eq!(volume.frozen(), None);
    for _ in 0..3 {
        (volume, _) = open(&mut disk, &setup).expect("it opens");
        for at in (0..EACH).chain(100..600) {
            let expected = if at < 100 { state[index64(first + at)] } else { LATER };
            assert_eq!(read_one(&mut *volume, &mut disk, first + at), Some(expected), "{at}");
        }
    }
    taken
}

/// What runs have of a page cannot be read: it stays as it is, with all runs since then, as no other page must get back what they have
/// replaced.
#[test]
fn a_rotten_run_brings_nothing_back() {
    const ROUNDS: u64 = 30;
    let (setup, image, state) = with_a_run(250);
    let [run] = &newest_body(&image, &root_addresses(setup.backing_blocks)).runs[..] else {
        panic!("one checkpoint, one run");
    };
    assert_eq!((run.records, run.extents.len()), (PAGES * EACH, 1));
    let records = u64_from(RUN_BLOCK_RECORDS);
    for part in 0..run.data_blocks {
        let first = u64::from(part) * records;
        let hit = first / EACH..=((first + records).min(PAGES * EACH) - 1) / EACH;
        let at = u64::from(run.extents[0].location.raw() + part);
        let mut damaged = image.clone();
        damaged.flip(at, 9000);
        let mut disk = Disk::new(damaged);
        let (mut volume, _) = open(&mut disk, &setup).expect("it opens");
        let others = || (0..PAGES).filter(|page| !hit.contains(page));
        for round in 0..ROUNDS {
            for page in others() {
                // What the rotten run has of it, and then other blocks.
                let lba = page * 1024 + if round == 0 { 5 } else { 100 + round };
                write_one(&mut *volume, &mut disk, lba, LATER);
            }
            checkpoint(&mut *volume, &mut disk);
        }
        assert!(hit.clone().all(|page| is_gone(&mut *volume, &mut disk, page)));
        let (mut again, _) = open(&mut disk, &setup).expect("it opens");
        for page in others() {
            for at in (0..EACH).chain(100..100 + ROUNDS) {
                let lba = page * 1024 + at;
                let written = at == 5 || at > 100;
                let expected = if written { LATER } else { state[index64(lba)] };
                for volume in [&mut *volume, &mut *again] {
                    let found = read_one(volume, &mut disk, lba);
                    assert_eq!(found, Some(expected), "block {lba}, pages {hit:?} damaged");
                }
            }
        }
        // Had it been an error that passes, nothing would be lost.
        let mut whole = disk.view().clone();
        whole.set(at, image.get(at).clone());
        hit.clone().for_each(|page| assert_page(&setup, whole.clone(), page, &state));
    }
}

/// A checkpoint that repeats what a run has of a page comes to nothing, because a write failed, and is begun again.
#[test]
fn a_checkpoint_beside_a_rotten_page_is_begun_again() {
    let (mut setup, image, state) = with_a_run(250);
    // No checkpoint comes before it is asked for.
    setup.options.map_pages = 32;
    let at = images_of(&image, &setup, 0)[0];
    let mut damaged = image.clone();
    damaged.flip(at, 9000);
    let (mut begun_again, mut fails) = (0, 0);
    loop {
        let mut disk = Disk::new(damaged.clone());
        let (mut volume, _) = open(&mut disk, &setup).expect("it opens");
        let mut writes = 0;
        for round in 0..4 {
            (1..PAGES).for_each(|page| {
                write_one(&mut *volume, &mut disk, page * 1024 + 5, LATER + round);
            });
            volume.as_log_mut().expect("a volume of mode log").want_checkpoint();
            drive_with(&mut *volume, &mut disk, |io| {
                writes += u64::from(io == IoKind::Write);
                // More often than a batch is tried in its place.
                io == IoKind::Write && (fails + 1..fails + 12).contains(&writes)
            });
            if volume.frozen().is_some() {
                break;
            }
        }
        if writes <= fails {
            break;
        }
        begun_again += u64::from(volume.stats().retried_batches > 0);
        let newest = volume.frozen().is_none().then_some(LATER + 3);
        for _ in 0..20 {
            checkpoint(&mut *volume, &mut disk);
        }
        let (mut again, _) = open(&mut disk, &setup).expect("it opens");
        for lba in (1..PAGES).map(|page| page * 1024 + 5) {
            let found = read_one(&mut *again, &mut disk, lba);
            assert!(found >= Some(LATER) && newest.is_none_or(|newest| found == Some(newest)));
        }
        let mut whole = disk.view().clone();
        whole.set(at, image.get(at).clone());
        assert_page(&setup, whole, 0, &state);
        fails += 1;
    }
    assert!(begun_again > 2, "{begun_again} of {fails}");
}

/// Carries out what a volume asks for, but for what fails.
fn drive_with(volume: &mut dyn Engine, disk: &mut Disk, mut fails: impl FnMut(IoKind) -> bool) {
    let mut now = Nanos::new(1);
    loop {
        volume.pump(now);
        let mut nothing = true;
        while let Some(io) = volume.poll_io() {
            nothing = false;
            let result =
                if fails(io.kind) { Err(IoFailed::Error) } else { execute(volume, disk, io) };
            volume.completed(now, io.id, result);
        }
        if nothing && volume.is_idle() {
            return;
        }
        if nothing {
            now = volume.poll_timeout().expect("what failed is sent again").max(now);
        }
    }
}

/// One checkpoint repeats what runs have of no more pages than it would sweep over.
#[test]
fn many_rotten_pages_do_not_fill_one_checkpoint() {
    const PAGES: u64 = 40;
    const SWEPT: u64 = 4;
    let mut setup = Setup::of(64 * 400, PAGES * 1024, OPTIONS);
    let mut rig = Rig::new(setup, 4);
    for _ in 0..24 {
        for page in 0..PAGES {
            let lba = page * 1024 + rig.rng.below(1000);
            assert!(rig.run(Op::Write { lba, blocks: 3, fua: false }));
        }
        assert!(rig.run(Op::Checkpoint) && rig.settle());
    }
    let (image, state) = (rig.disk.view().clone(), rig.oracle.state_at(u64::MAX));
    let roots = root_addresses(setup.backing_blocks);
    let before = newest_body(&image, &roots);
    let places = images_of(&image, &setup, 0);
    let mut damaged = image.clone();
    for at in &places {
        damaged.flip(*at, 900);
    }
    setup.options.map_pages = 8;
    let mut disk = Disk::new(damaged);
    let (mut volume, _) = open(&mut disk, &setup).expect("it opens");
    for page in 0..PAGES {
        let range = Range { lba: Lba::new(page * 1024), blocks: 1 };
        let read = volume.read(range, Some(&mut [0; BLOCK]), &mut ReadPlan::default());
        assert_eq!(read, Err(Refusal::Busy));
        drive(&mut *volume, &mut disk, Nanos::new(1));
    }
    let most = SWEPT * 3 * u64_from(before.runs.len());
    let mut repeated = 0;
    for _ in 0..3 * PAGES / SWEPT {
        checkpoint(&mut *volume, &mut disk);
        let runs = newest_body(disk.view(), &roots).runs;
        let new =
            runs.last().filter(|run| run.number >= before.next_run).map_or(0, |run| run.records);
        assert!(new <= most, "{new} records in one checkpoint");
        repeated += new;
    }
    assert!(repeated > most);
    let runs = newest_body(disk.view(), &roots).runs;
    assert!(
        runs.iter().all(|run| run.number >= before.next_run),
        "the others are dropped: {runs:?}"
    );
    let mut whole = disk.view().clone();
    for at in &places {
        whole.set(*at, image.get(*at).clone());
    }
    (0..PAGES).for_each(|page| assert_page(&setup, whole.clone(), page, &state));
}

/// Images of the map pages of a member.
pub(crate) fn images_of(image: &Image, setup: &Setup, member: usize) -> Vec<u64> {
    let body = newest_body(image, &root_addresses(setup.backing_blocks));
    let at = u64::from(body.members[member].directory[0].location.raw());
    let directory = DirectoryBlock::decode(&image.get(at)[..], &UUID, at).expect("whole");
    let pages = directory.entries.iter().map(|entry| entry.page).filter(|at| at.is_block());
    pages.map(|at| at.raw().into()).collect()
}

/// The operation that wrote a block.
fn read_one(volume: &mut dyn Engine, disk: &mut Disk, lba: u64) -> Option<u64> {
    let (mut plan, mut bytes) = (ReadPlan::default(), vec![0; BLOCK]);
    let range = Range { lba: Lba::new(lba), blocks: 1 };
    while let Err(refusal) = volume.read(range, Some(&mut bytes), &mut plan) {
        assert_eq!(refusal, Refusal::Busy);
        drive(volume, disk, Nanos::new(1));
    }
    fetch(disk, &plan, &mut bytes);
    volume.end_read(&plan);
    read_stamp(&bytes, lba)
}
