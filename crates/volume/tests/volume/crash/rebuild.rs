//! Every root is gone: what is made anew is what was there, or says what it does not know.

use onefold_format::volume::{BatchHeader, BodyBlock, DirectoryBlock, Root, root_addresses};
use onefold_testkit::{budget, chosen_seed, for_each_seed};
use onefold_units::convert::{index64, u64_from};
use onefold_units::{Lba, Nanos, Rng};
use onefold_volume::{
    Engine, Found, MountError, Range, ReadPlan, Rebuilt, Refusal, drive, inspect, rebuild,
};

use super::failures::moved_behind;
use crate::harness::disk::{Disk, Fate, Trimmed};
use crate::harness::image::{Image, block};
use crate::harness::ops::{random_op, work};
use crate::harness::oracle::Oracle;
use crate::harness::rig::{Op, Rig, fetch, open};
use crate::harness::setup::{OPTIONS, Setup, UUID};
use crate::harness::stamp::{BLOCK, read_stamp};

/// No root can be read any more.
fn without_roots(mut image: Image) -> Image {
    let places = match &image.zones {
        None => root_addresses(image.blocks()),
        Some(zones) => {
            let all = zones.blocks(2).chain(zones.blocks(3));
            all.filter(|at| Root::decode(&image.get(*at)[..], &UUID, *at).is_ok()).collect()
        }
    };
    for at in places {
        image.set(at, block(&[0x55; BLOCK]));
    }
    image
}

/// What no checkpoint survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    /// Nothing tells whether there were snapshots.
    Bodies,
    /// The last body tells that.
    Directories,
}

/// No checkpoint leads anywhere.
fn without_checkpoints(mut image: Image, damage: Damage) -> Image {
    for at in 0..image.blocks() {
        let bytes = &image.get(at)[..];
        let is_hit = match damage {
            Damage::Bodies => BodyBlock::decode(bytes, &UUID, at).is_ok(),
            Damage::Directories => DirectoryBlock::decode(bytes, &UUID, at).is_ok(),
        };
        if is_hit {
            image.flip(at, 5000);
        }
    }
    without_roots(image)
}

fn rebuilt(disk: &mut Disk, setup: &Setup) -> Rebuilt {
    let rebuilt = rebuild(disk, setup.file_blocks, setup.options);
    rebuilt.unwrap_or_else(|error| panic!("{error}, {setup:?}"))
}

/// A volume that lived through some power cuts, and what became of it then: closed, or cut off once more.
fn lived(seed: u64, snapshots: bool) -> (Setup, Image, Oracle, Rng) {
    let mut rng = Rng::new(seed);
    let setup = Setup::random(&mut rng);
    lived_as(setup, rng, seed, snapshots)
}

fn lived_on_zones(seed: u64, snapshots: bool) -> (Setup, Image, Oracle, Rng) {
    let mut rng = Rng::new(seed);
    let setup = Setup::random_zoned(&mut rng);
    lived_as(setup, rng, seed, snapshots)
}

fn lived_as(setup: Setup, mut rng: Rng, seed: u64, snapshots: bool) -> (Setup, Image, Oracle, Rng) {
    let mut rig = Rig::new(setup, seed);
    rig.disk.trimmed = [Trimmed::Old, Trimmed::Zeroes, Trimmed::Garbage][index64(rng.below(3))];
    for round in 0..4 {
        let within = [20, 300, 3000][index64(rng.below(3))];
        rig.fuse = Some(1 + rng.below(within));
        if snapshots {
            work(&mut rig, &mut rng, 300);
        } else {
            for _ in 0..300 {
                if !rig.run(random_op(&mut rng, rig.oracle.blocks())) {
                    break;
                }
                (0..rng.below(4)).for_each(|_| rig.step());
            }
        }
        if round < 3 {
            rig = rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}, {setup:?}"));
        }
    }
    if rng.below(3) == 0 {
        rig.fuse = None;
        rig.settle();
        rig.volume.close();
        rig.settle();
    }
    let image = rig.random_cut();
    (setup, image, rig.oracle, rng)
}

/// With a checkpoint in the log the volume is what it was, snapshots and all, and its life goes on.
#[test]
fn without_roots_it_is_what_it_was() {
    for_each_seed(("onefold-volume", "volume", "without_roots_it_is_what_it_was"), 60, |seed| {
        assert_is_what_it_was(seed, lived(seed, true));
    });
}

/// The same on zones.
#[test]
fn without_roots_zones_hold_what_they_did() {
    for_each_seed(("onefold-volume", "volume", "without_roots_zones"), 40, |seed| {
        assert_is_what_it_was(seed, lived_on_zones(seed, true));
    });
}

fn assert_is_what_it_was(seed: u64, lived: (Setup, Image, Oracle, Rng)) {
    let (setup, image, oracle, mut rng) = lived;
    let mut disk = Disk::new(without_roots(image));
    let done = rebuilt(&mut disk, &setup);
    assert_eq!(done.found, Found::Checkpoint, "{done:?}, {setup:?}");
    let mut rig = Rig::open(setup, disk, oracle, seed)
        .unwrap_or_else(|what| panic!("{what}, {done:?}, {setup:?}"));
    work(&mut rig, &mut rng, 100);
    rig.assert_counts();
    let rig = rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}, {setup:?}"));
    drop(rig);
}

/// What each block holds; `None` where it cannot be read.
pub(crate) fn contents(disk: &mut Disk, setup: &Setup) -> Vec<Option<u64>> {
    let (mut volume, _) = open(disk, setup).expect("what was made anew opens");
    (0..volume.logical_blocks()).map(|lba| content(&mut *volume, disk, lba)).collect()
}

/// What a block holds; `None` if it cannot be read.
pub(crate) fn content(volume: &mut dyn Engine, disk: &mut Disk, lba: u64) -> Option<u64> {
    let (mut plan, mut bytes) = (ReadPlan::default(), vec![0; BLOCK]);
    let range = Range { lba: Lba::new(lba), blocks: 1 };
    let mut read = Err(Refusal::Busy);
    while read == Err(Refusal::Busy) {
        read = volume.read(range, Some(&mut bytes), &mut plan);
        drive(volume, disk, Nanos::new(1));
    }
    read.ok()?;
    fetch(disk, &plan, &mut bytes);
    let damaged = !plan.complete(&mut bytes).is_empty();
    volume.end_read(&plan);
    let stamp = read_stamp(&bytes, lba);
    assert!(damaged || stamp.is_some(), "block {lba} holds what nobody wrote to it");
    stamp.filter(|_| !damaged)
}

pub(crate) fn is_uncertain(rebuilt: &Rebuilt, lba: u64) -> bool {
    let holds = |range: &Range| (range.lba.raw()..range.lba.raw() + range.blocks).contains(&lba);
    rebuilt.uncertain_ranges.iter().any(holds)
}

/// A volume from headers alone: each block has what the host wrote last, or is an error, or came back from a trim and is
/// counted as uncertain.
#[test]
fn headers_alone_tell_the_newest_version() {
    let (mut blocks, mut uncertain, mut lost) = (0, 0, 0);
    // A checkpoint before any page was swept has no directory, so it can be used (seed 236).
    let mut checkpoints = 0;
    for_each_seed(
        ("onefold-volume", "volume", "headers_alone_tell_the_newest_version"),
        60,
        |seed| {
            let snapshots = seed % 3 == 0;
            let (setup, image, oracle, _) = lived(seed, snapshots);
            let damage = if snapshots { Damage::Bodies } else { Damage::Directories };
            let mut disk = Disk::new(without_checkpoints(image, damage));
            let done = rebuilt(&mut disk, &setup);
            checkpoints += u64::from(done.found == Found::Checkpoint);
            assert!(snapshots || done.lost == 0, "{done:?}, {setup:?}");
            let inspection = inspect(&mut disk, setup.file_blocks, false).expect("it opens");
            assert!(inspection.findings.is_empty(), "{:?}", inspection.findings);
            let found = contents(&mut disk, &setup);
            // The backing may have lost what a trimmed block had: if it came back, it is an error (seed 27).
            let is_error =
                |(lba, found): (u64, &Option<u64>)| found.is_none() && !is_uncertain(&done, lba);
            let errors = u64_from((0..).zip(&found).filter(|one| is_error(*one)).count());
            assert_eq!(errors, done.lost, "{done:?}, {setup:?}");
            for (lba, found) in (0..).zip(found) {
                let Some(found) = found else { continue };
                let came_back = is_uncertain(&done, lba) && oracle.may_hold(lba, 0);
                assert!(
                    oracle.may_hold(lba, found) || came_back,
                    "block {lba} has operation {found}; {}, {done:?}, {setup:?}",
                    oracle.tell(lba)
                );
            }
            (blocks, uncertain) = (blocks + done.mapped, uncertain + done.uncertain);
            lost += done.lost;
        },
    );
    println!(
        "{blocks} blocks from headers, {uncertain} uncertain, {lost} lost, {checkpoints} checkpoints"
    );
    assert!(chosen_seed().is_some() || 50 * checkpoints <= budget(60), "{checkpoints} checkpoints");
}

/// What an opening left out stays where a batch that counts lies behind it. Later openings gave its number out again, and the log segment
/// with what the first of them wrote was given back: what it holds is uncertain.
#[test]
fn what_was_left_out_before_what_counts_is_uncertain() {
    let setup = Setup::of(64 * 134, 900, OPTIONS);
    let mut rig = (0..100).find_map(|seed| moved_behind(setup, seed)).expect("one of them");
    let disk = Disk::new(rig.disk.cut(&mut rig.rng, |_, _| Fate::Lost));
    let rig = Rig::open(setup, disk, rig.oracle, 1).expect("it opens");
    let mut rig = rig.close_and_reopen().expect("it opens");
    for lba in [200, 300, 400] {
        assert!(rig.run(Op::Write { lba, blocks: 1, fua: false }));
        assert!(rig.run(Op::Checkpoint) && rig.settle());
    }
    let image = rig.disk.cut(&mut rig.rng, |_, _| Fate::Lost);
    let mut disk = Disk::new(without_checkpoints(image, Damage::Bodies));
    let done = rebuilt(&mut disk, &setup);
    let found = contents(&mut disk, &setup);
    assert_ne!(found[3], Some(0), "it came back: the first opening left nothing else");
    assert!(is_uncertain(&done, 3) && !is_uncertain(&done, 400), "{done:?}");
}

/// The same on zones. What an opening left out is still there, so it may come back as well, and is counted as uncertain.
#[test]
fn headers_of_zones_tell_the_newest_version() {
    let mut headers = 0;
    for_each_seed(("onefold-volume", "volume", "headers_of_zones"), 40, |seed| {
        headers += u64::from(assert_zones_tell(seed) == Found::Headers);
    });
    assert!(chosen_seed().is_some() || 4 * headers > 3 * budget(40), "{headers} from headers");
}

/// A block that the device had trimmed was moved for a snapshot; the batch with the trim is missing.
#[test]
fn a_copy_for_a_snapshot_says_nothing_of_the_device() {
    assert_zones_tell(267);
}

fn assert_zones_tell(seed: u64) -> Found {
    let snapshots = seed.is_multiple_of(3);
    let (setup, image, oracle, _) = lived_on_zones(seed, snapshots);
    let damage = if snapshots { Damage::Bodies } else { Damage::Directories };
    let mut disk = Disk::new(without_checkpoints(image, damage));
    let done = rebuilt(&mut disk, &setup);
    let inspection = inspect(&mut disk, setup.file_blocks, false).expect("it opens");
    assert!(inspection.findings.is_empty(), "{:?}", inspection.findings);
    let found = contents(&mut disk, &setup);
    let errors = u64_from(found.iter().filter(|found| found.is_none()).count());
    assert_eq!(errors, done.lost, "{done:?}, {setup:?}");
    for (lba, found) in (0..).zip(found) {
        let Some(found) = found else { continue };
        assert!(
            oracle.may_hold(lba, found) || is_uncertain(&done, lba),
            "block {lba} has operation {found}; {}, {done:?}, {setup:?}",
            oracle.tell(lba)
        );
    }
    done.found
}

/// Damaged headers take their own blocks along: what is older is uncertain, and all else is right.
#[test]
fn damaged_headers_are_told() {
    let mut hidden = 0;
    for_each_seed(("onefold-volume", "volume", "damaged_headers_are_told"), 30, |seed| {
        let (setup, image, oracle, mut rng) = lived(seed, false);
        let mut image = without_checkpoints(image, Damage::Directories);
        let header = |at: u64| BatchHeader::decode(&image.get(at)[..], &UUID, at).ok();
        let headers: Vec<_> =
            (0..image.blocks()).filter_map(|at| Some((header(at)?.header, at))).collect();
        // Damage to what no header calls durable cannot be told from a power cut (docs/volume.md).
        let durable =
            headers.iter().map(|(header, _)| header.durable_seq).max().unwrap_or_default();
        let headers: Vec<_> = headers.iter().filter(|(header, _)| header.seq <= durable).collect();
        for _ in 0..=rng.below(3) {
            image.flip(headers[index64(rng.below(u64_from(headers.len())))].1, 900);
        }
        let mut disk = Disk::new(image);
        let done = rebuilt(&mut disk, &setup);
        hidden += done.hidden;
        for (lba, found) in (0..).zip(contents(&mut disk, &setup)) {
            // Zeroes: its only version was in the batch whose header is damaged.
            let right = found.is_none_or(|found| found == 0 || oracle.may_hold(lba, found));
            assert!(
                right || is_uncertain(&done, lba),
                "block {lba} has operation {found:?}; {}, {done:?}, {setup:?}",
                oracle.tell(lba)
            );
        }
    });
    assert!(hidden > 0, "no header was damaged that counts");
}

/// Power fails at any request of a rebuild: the next one comes to the same.
#[test]
fn a_rebuild_that_is_cut_off_begins_again() {
    for seed in 0..6 {
        let (setup, image, _, mut rng) = lived(seed, seed % 6 == 5);
        let image = match seed % 4 {
            0 => without_roots(image),
            1 => without_checkpoints(image, Damage::Bodies),
            _ => without_checkpoints(image, Damage::Directories),
        };
        assert_begins_again(&setup, &image, &mut rng, seed);
    }
}

/// The same on zones.
#[test]
fn a_rebuild_of_zones_that_is_cut_off_begins_again() {
    for seed in 0..5 {
        let (setup, image, _, mut rng) = lived_on_zones(seed, seed == 3);
        let image = match seed % 4 {
            0 => without_roots(image),
            1 => without_checkpoints(image, Damage::Bodies),
            _ => without_checkpoints(image, Damage::Directories),
        };
        assert_begins_again(&setup, &image, &mut rng, seed);
    }
}

/// Power fails at every request that comes after the first change, and in the attempt after it once more.
fn assert_begins_again(setup: &Setup, image: &Image, rng: &mut Rng, seed: u64) {
    let mut whole = Disk::new(image.clone());
    let first = rebuilt(&mut whole, setup);
    let (requests, unchanged) = (whole.requests, whole.unchanged.expect("it changes something"));
    let expected = contents(&mut whole, setup);
    for fuse in unchanged..requests {
        let mut image = image.clone();
        for fuse in [fuse, unchanged + rng.below(requests - unchanged)] {
            let mut disk = Disk::new(image);
            disk.fuse = Some(fuse);
            // It may be through but for what is cleared at the end.
            let _ = rebuild(&mut disk, setup.file_blocks, setup.options);
            // What came last may be durable where something before it is not.
            image =
                if rng.below(2) == 0 { disk.cut_without_one(rng) } else { disk.random_cut(rng) };
        }
        let mut disk = Disk::new(image);
        match rebuild(&mut disk, setup.file_blocks, setup.options) {
            Ok(again) => assert_eq!(again, first, "seed {seed} cut at {fuse}, {setup:?}"),
            // Its root was durable already.
            Err(MountError::Opens) => {}
            Err(error) => panic!("seed {seed} cut at {fuse} of {requests}: {error}"),
        }
        for (lba, found) in (0..).zip(contents(&mut disk, setup)) {
            let expected = expected[lba];
            assert_eq!(found, expected, "block {lba}, seed {seed} cut at {fuse}, {setup:?}");
        }
    }
}

/// Every log segment has headers of some use, so the new map can only go where dead versions lie.
#[test]
fn a_rebuild_without_free_log_segments_begins_again() {
    let options = onefold_volume::Options { trim: onefold_volume::Trim::Never, ..OPTIONS };
    let setup = Setup::of(64 * 134, 3000, options);
    for seed in 1..3 {
        let (mut rig, mut rng) = (Rig::new(setup, seed), Rng::new(seed));
        while rig.volume.stats().sent_total() < 2 * setup.backing_blocks {
            assert!(rig.run(random_op(&mut rng, rig.oracle.blocks())));
        }
        let image = without_checkpoints(rig.random_cut(), Damage::Directories);
        assert_begins_again(&setup, &image, &mut rng, seed);
    }
}

/// What opens is not touched, nor is what has no label or is of another mode.
#[test]
fn nothing_is_made_anew_without_need() {
    let (setup, image, _, _) = lived(1, false);
    let mut disk = Disk::new(image.clone());
    let refused = rebuild(&mut disk, setup.file_blocks, setup.options);
    assert!(matches!(refused, Err(MountError::Opens)), "{refused:?}");
    assert_eq!(disk.volatile(), 0);
    let mut image = without_roots(image);
    for at in onefold_format::volume::label_addresses(setup.backing_blocks) {
        image.flip(at, 900);
    }
    let mut disk = Disk::new(image);
    let refused = rebuild(&mut disk, setup.file_blocks, setup.options);
    assert!(matches!(refused, Err(MountError::Label(_))), "{refused:?}");
}

/// A block that the cleaner copied, and that the host overwrote before the copy was sent: the copy gets the higher number.
#[test]
fn a_copy_that_was_dead_when_it_was_sent_does_not_count() {
    let options = onefold_volume::Options { trim: onefold_volume::Trim::Never, ..OPTIONS };
    let setup = Setup::of(64 * 134, 900, options);
    let mut rig = Rig::new(setup, 3);
    let mut rng = Rng::new(3);
    for _ in 0..200 {
        assert!(rig.run(Op::Write { lba: rng.below(880), blocks: 20, fua: false }));
    }
    for _ in 0..60 {
        assert!(rig.run(Op::Clean));
        (0..rng.below(6)).for_each(|_| rig.step());
        assert!(rig.run(Op::Write { lba: rng.below(880), blocks: 20, fua: false }));
    }
    assert!(rig.settle() && rig.run(Op::Flush) && rig.settle());
    assert!(rig.volume.stats().cleaned_segments > 5, "{:?}", rig.volume.stats());
    let mut disk = Disk::new(without_checkpoints(rig.disk.view().clone(), Damage::Directories));
    let done = rebuilt(&mut disk, &setup);
    for (lba, found) in (0..).zip(contents(&mut disk, &setup)) {
        assert_eq!(found, Some(rig.oracle.now(lba)), "block {lba}, {done:?}");
    }
}
