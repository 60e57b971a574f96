//! Zones that held the map go offline.

use onefold_format::volume::Codec;
use onefold_testkit::{chosen_seed, for_each_seed};
use onefold_units::convert::{low32, u64_from};
use onefold_units::{Nanos, Rng, ZoneState};
use onefold_volume::{Found, MountError, Options, Rebuilt, ZoneError, inspect, rebuild, settle};

use super::rebuild::{content, contents, is_uncertain};
use crate::harness::disk::{Disk, fail_zone};
use crate::harness::errors::assert_right_or_error;
use crate::harness::image::Image;
use crate::harness::ops::{random_op, work};
use crate::harness::oracle::Oracle;
use crate::harness::rig::{Op, Rig, open};
use crate::harness::setup::{OPTIONS, Setup};
use crate::harness::zones::ZoneSetup;

const ZONES: ZoneSetup = ZoneSetup { size: 128, capacity: 64, limit: Some(4), conventional: 0 };

/// Blocks that are exported, more than the log can hold: so many pages of the map that their images lie in several zones.
const BLOCKS: u64 = 40_000;

fn setup(give_up_zones: bool) -> Setup {
    let options = Options { checkpoint_blocks: 400, give_up_zones, ..OPTIONS };
    Setup::of(0, BLOCKS, options).on_zones(110, ZONES)
}

/// The same for one that compresses blocks, or does not.
fn setup_with(compress: Option<Codec>, give_up_zones: bool) -> Setup {
    Setup { compress, ..setup(give_up_zones) }
}

/// A volume after some work, cut off or closed, and what it is to hold.
fn lived(setup: Setup, seed: u64, rng: &mut Rng) -> (Image, Oracle) {
    let trims = seed.is_multiple_of(2);
    let mut rig = Rig::new(setup, seed);
    for life in 0..3 {
        for _ in 0..250 {
            let op = random_op(rng, BLOCKS);
            let without = !trims && matches!(op, Op::Trim { .. });
            assert!(without || rig.run(op));
            rig.step();
        }
        if seed.is_multiple_of(7) && life == 0 {
            work(&mut rig, rng, 60);
        }
        rig = match rng.below(3) {
            0 => rig.close_and_reopen().expect("it opens"),
            1 => rig.cut_and_reopen(0).expect("it opens"),
            _ => rig,
        };
    }
    if rng.below(2) == 0 {
        rig.settle();
        rig.volume.close();
        rig.settle();
    }
    (rig.random_cut(), rig.oracle)
}

/// Zones that hold blocks of checkpoints, by what the volume says of itself.
fn zones_of_the_map(setup: &Setup, image: &Image) -> Vec<u32> {
    let (volume, _) = open(&mut Disk::new(image.clone()), setup).expect("it opens");
    let log = volume.as_log().expect("a volume of mode log");
    let meta = log.segment_infos().filter(|info| info.stream == 3 && info.live > 0);
    meta.map(|info| info.segment.raw()).collect()
}

/// What a zone of the map took along is given up on demand, and what headers tell for sure is not lost. What is left is right, and the
/// volume goes on.
#[test]
fn pages_of_the_map_that_are_gone_are_given_up() {
    give_up("pages_of_the_map_that_are_gone_are_given_up", None);
}

/// The same where blocks are compressed, so that headers tell of parts of blocks.
#[test]
fn pages_of_the_map_of_packed_blocks_that_are_gone_are_given_up() {
    give_up("pages_of_the_map_of_packed_blocks_that_are_gone_are_given_up", Some(Codec::Lz4));
}

fn give_up(test: &'static str, compress: Option<Codec>) {
    let setup = |give_up_zones| setup_with(compress, give_up_zones);
    let (mut asked, mut lost) = (0, 0);
    // Without trims and with all data, headers tell everything.
    let (mut whole, mut told) = (0, 0);
    for_each_seed(("onefold-volume", "volume", test), 60, |seed| {
        let mut rng = Rng::new(seed);
        let (mut image, oracle) = lived(setup(false), seed, &mut rng);
        let zones = zones_of_the_map(&setup(false), &image);
        let zone = zones[usize::try_from(rng.below(u64_from(zones.len()))).expect("few")];
        fail_zone(&mut image, zone, ZoneState::Offline);
        if seed.is_multiple_of(5) {
            // What it held may be what headers would tell.
            fail_zone(&mut image, 4 + low32(rng.below(106)), ZoneState::Offline);
        }
        let mut disk = Disk::new(image.clone());
        let refused = match open(&mut disk, &setup(false)) {
            Err(MountError::Zones(error)) if error.can_be_given_up() => error,
            Err(MountError::Zones(ZoneError::Checkpoint { .. })) | Ok(_) => return,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(disk.volatile(), 0, "nothing was changed");
        let checked = inspect(&mut disk, setup(false).file_blocks, false);
        assert!(matches!(checked, Err(MountError::Zones(_))), "{checked:?}");
        let (mut volume, recovery) = match open(&mut disk, &setup(true)) {
            // The body lay there as well, or what came after it.
            Err(MountError::Zones(ZoneError::Checkpoint { .. }) | MountError::Lost { .. }) => {
                return;
            }
            opened => opened.unwrap_or_else(|error| panic!("{error}")),
        };
        asked += u64::from(matches!(refused, ZoneError::Map { .. }));
        let state = oracle.state_at(recovery.seq);
        let errors = assert_right_or_error(&mut *volume, &mut disk, &state);
        lost += errors.pages;
        if matches!(refused, ZoneError::Map { .. }) && seed % 2 > 0 && seed % 5 > 0 && seed % 7 > 0
        {
            told += 1;
            whole += u64::from(errors.pages == 0);
        }
        let log = volume.as_log().expect("a volume of mode log");
        let wrong = log.recount();
        assert!(wrong.as_ref().is_none_or(Vec::is_empty), "{wrong:?}");
        super::zoned::assert_lives_on(&mut *volume, &mut disk);
        drop(volume);
        // From now on it opens as it is.
        let opened = open(&mut disk, &setup(false));
        assert!(opened.is_ok(), "{:?}", opened.err());
    });
    println!("{asked} asked, {whole} of {told} told by headers, {lost} blocks lost");
    let some = asked > 0 && lost > 0 && whole > 0;
    assert!(chosen_seed().is_some() || some, "{asked} {lost} {whole} of {told}");
}

/// What `check --repair` does where zones took pages of the map along: the last batch that counts. `None` if power failed before its
/// end.
fn repaired(disk: &mut Disk) -> Option<u64> {
    let (mut volume, recovery) = open(disk, &setup(true)).ok()?;
    volume.close();
    settle(&mut *volume, disk, Nanos::new(1)).then_some(recovery.seq)
}

/// What blocks hold when a volume is opened, after a repair where it asks for one; `None` for errors.
fn mended(disk: &mut Disk) -> Vec<Option<u64>> {
    let before = disk.volatile();
    let opened = match open(disk, &setup(false)) {
        Err(MountError::Zones(error)) if error.can_be_given_up() => {
            assert_eq!(disk.volatile(), before, "a refusal changes nothing");
            open(disk, &setup(true))
        }
        opened => opened,
    };
    let (mut volume, _) = opened.unwrap_or_else(|error| panic!("{error}"));
    let found = (0..volume.logical_blocks()).map(|lba| content(&mut *volume, disk, lba)).collect();
    let wrong = volume.as_log().expect("a volume of mode log").recount();
    assert!(wrong.as_ref().is_none_or(Vec::is_empty), "{wrong:?}");
    found
}

/// Power fails at every request of a repair from its first change on, and at one of the attempt after that: what the first one would have
/// kept is kept, and nothing comes back. Gives the cuts, and how many of them were followed by another one.
fn cut_repairs(seed: u64) -> (u64, u64) {
    let mut rng = Rng::new(seed);
    let (mut cuts, mut again) = (0, 0);
    let (image, oracle) = lived(setup(false), seed, &mut rng);
    for zone in zones_of_the_map(&setup(false), &image) {
        let mut image = image.clone();
        fail_zone(&mut image, zone, ZoneState::Offline);
        let mut disk = Disk::new(image.clone());
        let refused = open(&mut disk, &setup(false)).err();
        if !matches!(refused, Some(MountError::Zones(ZoneError::Map { .. }))) {
            continue;
        }
        (disk.requests, disk.unchanged) = (0, None);
        let Some(seq) = repaired(&mut disk) else { continue };
        let (first, end) = (disk.unchanged.expect("it changes something"), disk.requests);
        let (state, kept) = (oracle.state_at(seq), mended(&mut disk));
        for fuse in first..end {
            let mut disk = Disk::new(image.clone());
            disk.fuse = Some(fuse);
            assert!(repaired(&mut disk).is_none(), "power failed at {fuse} of {end}");
            let mut disk = Disk::new(disk.random_cut(&mut rng));
            if rng.below(2) == 0 {
                disk.fuse = Some(rng.below(end));
                again += u64::from(repaired(&mut disk).is_none());
                disk = Disk::new(disk.random_cut(&mut rng));
            }
            cuts += 1;
            for (lba, found) in (0..).zip(mended(&mut disk)) {
                let (kept, is) = (kept[lba], state[lba]);
                assert!(
                    found.map_or_else(|| kept.is_none(), |found| found == is),
                    "block {lba} is {found:?}, was {kept:?} without a cut and is to be {is}: \
                     zone {zone}, cut at {fuse} of {first}..{end}"
                );
            }
        }
    }
    (cuts, again)
}

#[test]
fn a_repair_that_is_cut_off_begins_again() {
    let (mut cuts, mut again) = (0, 0);
    for_each_seed(("onefold-volume", "volume", "a_repair_that_is_cut_off"), 6, |seed| {
        let (more, once_more) = cut_repairs(seed);
        (cuts, again) = (cuts + more, again + once_more);
    });
    println!("{cuts} cuts, {again} of them once more");
    assert!(chosen_seed().is_some() || again > 0);
}

/// Batches came behind the last root: the first attempt had made the counts exact with them, and the next one took from these again what
/// they had replaced.
#[test]
fn a_repair_that_begins_again_counts_what_recovery_found_once() {
    let (cuts, _) = cut_repairs(37);
    assert!(cuts > 0);
}

/// Blocks were trimmed, and the batch that says so is gone: their old versions do not come back with what headers tell.
#[test]
fn what_was_trimmed_does_not_come_back() {
    let mut rig = Rig::new(setup(false), 1);
    let write =
        |rig: &mut Rig, lba, blocks| assert!(rig.run(Op::Write { lba, blocks, fua: false }));
    for lba in (0..1000).step_by(50) {
        write(&mut rig, lba, 50);
    }
    // The trims lie among what is written over later, many times as much as the log has.
    for n in 0..1000 {
        write(&mut rig, 20_000 + n % 7 * 20, 20);
        if (10..100).contains(&n) {
            assert!(rig.run(Op::Trim { lba: n * 9, blocks: 1 }));
        }
    }
    let mut rig = rig.close_and_reopen().expect("it opens");
    assert!(rig.settle());
    rig.volume.close();
    assert!(rig.settle());
    let (image, mut given_up) = (rig.disk.view().clone(), 0);
    for zone in zones_of_the_map(&setup(false), &image) {
        let mut image = image.clone();
        fail_zone(&mut image, zone, ZoneState::Offline);
        let mut disk = Disk::new(image);
        let opened = open(&mut disk, &setup(true));
        if let Ok((mut volume, recovery)) = opened {
            let state = rig.oracle.state_at(recovery.seq);
            given_up += assert_right_or_error(&mut *volume, &mut disk, &state).pages;
        }
    }
    assert!(given_up > 100, "{given_up} blocks were given up");
}

/// Without its last checkpoint a volume is made anew: right, or uncertain, or an error.
#[test]
fn checkpoints_that_are_gone_are_made_anew() {
    let (mut checkpoints, mut headers) = (0, 0);
    for_each_seed(("onefold-volume", "volume", "checkpoints_that_are_gone"), 80, |seed| {
        let mut rng = Rng::new(seed);
        let (mut image, oracle) = lived(setup(false), seed, &mut rng);
        let mut zones = zones_of_the_map(&setup(false), &image);
        if seed.is_multiple_of(2) {
            // The one with the last checkpoint, or not.
            zones = vec![zones[usize::try_from(rng.below(u64_from(zones.len()))).expect("few")]];
        }
        for zone in zones {
            fail_zone(&mut image, zone, ZoneState::Offline);
        }
        let mut disk = Disk::new(image);
        let opened = open(&mut disk, &setup(false));
        if !matches!(
            opened,
            Err(MountError::Zones(ZoneError::Checkpoint { .. } | ZoneError::Map { .. }))
        ) {
            return;
        }
        let rebuilt = rebuild(&mut disk, setup(false).file_blocks, OPTIONS);
        let done: Rebuilt = rebuilt.unwrap_or_else(|error| panic!("{error}"));
        checkpoints += u64::from(done.found == Found::Checkpoint);
        headers += u64::from(done.found == Found::Headers);
        // Of an older checkpoint, batches may have gone to a zone that is offline.
        for (lba, found) in (0..).zip(contents(&mut disk, &setup(true))) {
            let Some(found) = found else { continue };
            assert!(
                oracle.may_hold(lba, found) || is_uncertain(&done, lba),
                "block {lba} has operation {found}; {}, {done:?}",
                oracle.tell(lba)
            );
        }
    });
    println!("{checkpoints} from checkpoints, {headers} from headers");
    assert!(chosen_seed().is_some() || checkpoints > 0 && headers > 0);
}
