//! Zones that go offline while a volume runs.

use std::collections::BTreeSet;

use onefold_testkit::{chosen_seed, for_each_seed};
use onefold_units::Rng;
use onefold_units::convert::{index64, low32, u64_from};
use onefold_volume::{
    Finding, Frozen, Inspection, IoFailed, MountError, Options, Refusal, SegmentInfo, ZoneError,
    inspect, rebuild,
};

use super::rebuild::{content, contents, is_uncertain};
use crate::harness::disk::Disk;
use crate::harness::ops::random_op;
use crate::harness::rig::{Op, Rig, open};
use crate::harness::setup::{OPTIONS, Setup};
use crate::harness::stamp::op_of;
use crate::harness::zones::ZoneSetup;

const ZONES: ZoneSetup = ZoneSetup { size: 128, capacity: 64, limit: Some(4), conventional: 0 };

/// A volume with so many pages of the map in memory.
fn setup(map_pages: usize, give_up_zones: bool) -> Setup {
    let options = Options { checkpoint_blocks: 400, map_pages, give_up_zones, ..OPTIONS };
    Setup::of(0, 6000, options).on_zones(180, ZONES)
}

/// Blocks whose last version lies in a zone.
fn blocks_in(rig: &Rig, zone: u32) -> impl Iterator<Item = u64> {
    let zones = rig.disk.view().zones.as_ref().expect("zones");
    let stamps = zones.blocks(zone).filter_map(|at| op_of(&rig.disk.get(at)[..]));
    stamps.filter(|(lba, op)| rig.oracle.now(*lba) == *op).map(|(lba, _)| lba)
}

/// Whether blocks of checkpoints that count lie in a zone.
fn has_map(rig: &Rig, zone: u32) -> bool {
    let log = rig.volume.as_log().expect("a volume of mode log");
    let mut infos = log.segment_infos().filter(|info| info.stream == 3 && info.live > 0);
    infos.any(|info| info.segment.raw() == zone)
}

/// A zone of the log, rather one that is written; whether it is.
fn some_zone(rig: &Rig, rng: &mut Rng) -> (u32, bool) {
    let log = rig.volume.as_log().expect("a volume of mode log");
    let stream = u8::try_from(rng.below(4)).expect("few");
    let infos = log.segment_infos().filter(|info| info.stream == stream);
    let zones = infos.map(|info| (info.segment.raw(), info.state));
    let mut zones: Vec<_> = zones.filter(|(_, state)| ["open", "closed"].contains(state)).collect();
    if rng.below(4) > 0 {
        zones.retain(|(_, state)| *state == "open");
    }
    let one = zones.get(index64(rng.below(u64_from(zones.len().max(1)))));
    let any = (4 + low32(rng.below(176)), false);
    one.map_or(any, |(zone, state)| (*zone, *state == "open"))
}

/// Random operations; what is lost may be refused. Gives the first refusal that ends all.
fn work(rig: &mut Rig, rng: &mut Rng, lost: &mut BTreeSet<u64>) -> Option<Refusal> {
    // A checkpoint comes meanwhile, or none.
    for _ in 0..[12, 120][index64(rng.below(2))] {
        let op = random_op(rng, rig.oracle.blocks());
        match rig.try_run(op) {
            Ok(_) => {}
            Err(Refusal::MediaError) => continue,
            Err(refusal) => return Some(refusal),
        }
        if let Op::Write { lba, blocks, .. } | Op::Trim { lba, blocks } = op {
            lost.retain(|lost| !(lba..lba + blocks).contains(lost));
        }
        rig.step();
    }
    None
}

/// Blocks that cannot be read, by what a check says.
fn told(inspection: &Inspection) -> u64 {
    let of = |finding: &Finding| match finding {
        Finding::Offline { blocks, .. } => *blocks,
        _ => 0,
    };
    inspection.lost + inspection.findings.iter().map(of).sum::<u64>()
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Cut,
    Closed,
    /// Power fails when nothing is under way any more.
    Rested,
}

/// A volume of which two zones went offline.
struct Lived {
    rig: Rig,
    end: End,
    /// Blocks whose last version may be lost.
    lost: BTreeSet<u64>,
    /// It opens without being asked: the zones were written after that, and no page that was not in memory lay there.
    sure: bool,
}

fn lived(seed: u64, map_pages: usize) -> Lived {
    let mut rng = Rng::new(seed);
    let mut rig = Rig::new(setup(map_pages, false), seed);
    let (mut lost, mut sure) = (BTreeSet::new(), true);
    assert_eq!(work(&mut rig, &mut rng, &mut lost), None);
    for _ in 0..2 {
        let (zone, is_open) = some_zone(&rig, &mut rng);
        lost.extend(blocks_in(&rig, zone));
        if map_pages != usize::MAX && has_map(&rig, zone) {
            lost.extend(0..rig.oracle.blocks());
            sure = false;
        }
        let before = rig.volume.stats().retried_batches;
        rig.lose_zone(zone);
        assert_eq!(work(&mut rig, &mut rng, &mut lost), None, "{:?}", rig.volume.frozen());
        sure &= is_open && rig.volume.stats().retried_batches > before;
    }
    let end = [End::Cut, End::Closed, End::Rested][index64(rng.below(3))];
    assert!(end == End::Cut || rig.settle());
    if end == End::Closed {
        rig.volume.close();
        assert!(rig.settle());
        assert_eq!(rig.volume.frozen(), Some(Frozen::Closed));
    }
    Lived { rig, end, lost, sure: sure && end != End::Cut }
}

/// All of the map is in memory: if the volume came to know of the zones, it opens without being asked.
#[test]
fn zones_go_offline_at_any_time() {
    go_offline("zones_go_offline_at_any_time", usize::MAX);
}

/// Pages of the map are read again and again, and some of them are gone.
#[test]
fn zones_go_offline_while_little_of_the_map_is_in_memory() {
    go_offline("zones_go_offline_while_little_of_the_map_is_in_memory", 4);
}

/// Pages of the map are gone, and more of them than may be in memory are there: what these know of a log segment counts when headers tell of
/// those, else a trimmed block comes back.
#[test]
fn what_is_given_up_is_known_by_all_of_the_map() {
    assert_goes_on(518, 4, &mut [0; 6]);
}

/// A checkpoint repeated what runs had of a page that was gone, and came to nothing because of another zone.
#[test]
fn a_checkpoint_is_begun_again_beside_a_page_that_is_gone() {
    assert_goes_on(320, 4, &mut [0; 6]);
}

fn go_offline(test: &'static str, map_pages: usize) {
    // Opened; refused because of the last batches, of pages of the map, of more of the last checkpoint; blocks that were lost; sure to open.
    let mut counts = [0; 6];
    for_each_seed(("onefold-volume", "volume", test), 120, |seed| {
        assert_goes_on(seed, map_pages, &mut counts);
    });
    println!("{counts:?}");
    let some = [0, 1, 4, 5].iter().all(|at| counts[*at] > 0);
    assert!(chosen_seed().is_some() || some, "{counts:?}");
}

/// The volume goes on without what was there, and everything else is as it was; a check tells what is lost.
fn assert_goes_on(seed: u64, map_pages: usize, counts: &mut [u64; 6]) {
    let Lived { mut rig, end, lost, sure } = lived(seed, map_pages);
    let mut disk = Disk::new(rig.random_cut());
    let setup = |give_up| setup(map_pages, give_up);
    let checked = inspect(&mut disk, setup(false).file_blocks, true);
    let refused = match open(&mut disk.clone(), &setup(false)) {
        Err(MountError::Zones(error)) => Some(error),
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    };
    assert!(refused.is_none() || !sure, "seed {seed}: {refused:?}");
    counts[5] += u64::from(sure);
    counts[match refused {
        None => 0,
        Some(ZoneError::Map { .. }) => 2,
        Some(ZoneError::Checkpoint { .. }) => 3,
        Some(_) => 1,
    }] += 1;
    let opened = open(&mut disk, &setup(refused.is_some()));
    let Ok((mut volume, recovery)) = opened else {
        // The checkpoint lay there as well, or batches that others say were durable.
        let why = opened.err().expect("it is refused");
        let known = matches!(
            why,
            MountError::Zones(ZoneError::Checkpoint { .. }) | MountError::Lost { .. }
        );
        assert!(known && refused.is_some(), "{why}");
        return;
    };
    let (state, mut errors) = (rig.oracle.state_at(recovery.seq), 0);
    for (lba, expected) in (0..).zip(state) {
        let found = content(&mut *volume, &mut disk, lba);
        assert_eq!(found.unwrap_or(expected), expected, "block {lba}");
        // A page that is gone takes its blocks along, and a version before the last one may have been there.
        let may = refused.is_some() || end != End::Closed || lost.contains(&lba);
        assert!(found.is_some() || may, "block {lba} is lost without need");
        errors += u64::from(found.is_none());
    }
    match checked {
        Ok(checked) => assert_eq!(told(&checked), errors, "{:?}", checked.findings),
        Err(error) => assert!(refused.is_some(), "{error}"),
    }
    if refused.is_some() {
        let checked = inspect(&mut disk, setup(false).file_blocks, false).expect("it is opened");
        assert_eq!(told(&checked), errors, "what was given up: {:?}", checked.findings);
    }
    counts[4] += errors;
}

/// Pages of the map in [`after_a_zone_of_the_map`].
const PAGES: u64 = 20;

/// A volume with blocks in each page of its map takes so many checkpoints. Then the zone that takes them goes offline, and the next one, or
/// that of closing, comes to know of it. `None` if that took another zone.
fn after_a_zone_of_the_map(map_pages: usize, closes: bool, checkpoints: u64) -> Option<Rig> {
    let setup = Setup { logical_blocks: PAGES * 1024, ..setup(map_pages, false) };
    let mut rig = Rig::new(setup, checkpoints);
    for page in 0..PAGES {
        assert!(rig.run(Op::Write { lba: page * 1024 + 7, blocks: 1, fua: false }));
    }
    for _ in 0..checkpoints {
        assert!(rig.run(Op::Checkpoint) && rig.settle());
    }
    let log = rig.volume.as_log().expect("a volume of mode log");
    let is_open = |info: &SegmentInfo| info.stream == 3 && info.state == "open" && info.live > 0;
    let zone = log.segment_infos().find(is_open)?.segment.raw();
    rig.lose_zone(zone);
    assert!(rig.run(Op::Write { lba: 7, blocks: 1, fua: false }));
    if closes {
        rig.volume.close();
    } else {
        assert!(rig.run(Op::Checkpoint));
    }
    assert!(rig.settle());
    (rig.volume.stats().retried_batches > 0).then_some(rig)
}

/// What the map has in a zone that fails is written anew at once, though it does not change, also while the volume is closed. What was not in
/// memory can be given up.
#[test]
fn the_map_moves_out_of_a_zone_that_fails() {
    let mut moved = 0;
    let all = [(usize::MAX, false), (usize::MAX, true), (4, false), (4, true)];
    for ((map_pages, closes), checkpoints) in
        all.into_iter().flat_map(|one| (1..12).map(move |n| (one, n)))
    {
        let Some(mut rig) = after_a_zone_of_the_map(map_pages, closes, checkpoints) else {
            continue;
        };
        let mut disk = Disk::new(rig.random_cut());
        let in_memory = map_pages == usize::MAX;
        let mut volume = match open(&mut disk, &rig.setup) {
            Ok((volume, _)) => volume,
            // What a run had of pages that were not in memory, or their images.
            Err(MountError::Zones(ZoneError::Checkpoint { .. })) if !in_memory => continue,
            Err(MountError::Zones(ZoneError::Map { .. })) if !in_memory => {
                let options = Options { give_up_zones: true, ..rig.setup.options };
                open(&mut disk, &Setup { options, ..rig.setup }).expect("that is given up").0
            }
            Err(error) => panic!("{error}"),
        };
        let mut errors = 0;
        for lba in 0..rig.oracle.blocks() {
            let found = content(&mut *volume, &mut disk, lba);
            let expected = rig.oracle.now(lba);
            assert_eq!(found.unwrap_or(expected), expected, "block {lba}");
            errors += u64::from(found.is_none());
        }
        let checked = inspect(&mut disk, rig.setup.file_blocks, false).expect("it opens");
        assert_eq!(told(&checked), errors, "{:?}", checked.findings);
        assert!(errors == 0 || !in_memory, "{errors} blocks are lost without need");
        moved += u64::from(in_memory);
    }
    assert!(moved > 10, "{moved} volumes moved their maps");
}

/// The zones that take roots: when the last one with room is full nothing more can be made durable, so changes are refused, and all that there
/// is can be read. A root is made anew from what is left.
#[test]
fn without_its_zone_of_roots_a_volume_is_read_only() {
    let setup = || setup(usize::MAX, false);
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(setup(), seed);
        assert_eq!(work(&mut rig, &mut rng, &mut BTreeSet::new()), None);
        let zones = rig.disk.view().zones.clone().expect("zones");
        let zone =
            [2, 3].into_iter().find(|zone| zones.state(*zone).is_active()).expect("one has room");
        rig.lose_zone(zone);
        // The other one takes roots until it is full.
        let refused = (0..400).find_map(|_| work(&mut rig, &mut rng, &mut BTreeSet::new()));
        let down = Refusal::Backing(IoFailed::Error);
        assert_eq!((refused, rig.volume.frozen()), (Some(down), None));
        for lba in 0..rig.oracle.blocks() {
            let found = content(&mut *rig.volume, &mut rig.disk, lba);
            assert_eq!(found, Some(rig.oracle.now(lba)), "block {lba}, seed {seed}");
        }
        let mut disk = Disk::new(rig.random_cut());
        let error = open(&mut disk, &setup()).err().expect("no root");
        assert!(error.to_string().contains(&format!("zone {zone} is offline")), "{error}");
        let done = rebuild(&mut disk, setup().file_blocks, OPTIONS).expect("it is made anew");
        for (lba, found) in (0..).zip(contents(&mut disk, &setup())) {
            let may = found.is_some_and(|found| rig.oracle.may_hold(lba, found));
            assert!(
                may || is_uncertain(&done, lba),
                "block {lba} has {found:?}, {done:?}, seed {seed}"
            );
        }
    }
}
