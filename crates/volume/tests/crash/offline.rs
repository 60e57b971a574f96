//! Zones that go offline while a volume runs.

use std::collections::BTreeSet;

use onefold_testkit::{chosen_seed, for_each_seed};
use onefold_units::convert::{index64, low32, u64_from};
use onefold_units::{Lba, Rng};
use onefold_volume::{
    Finding, Frozen, Inspection, MemberId, MountError, Options, Refusal, ZoneError, inspect,
    rebuild,
};

use crate::disk::Disk;
use crate::random::random_op;
use crate::rebuild::{content, contents, is_uncertain};
use crate::rig::{Op, Rig, open};
use crate::setup::{OPTIONS, Setup};
use crate::zones::ZoneSetup;

const ZONES: ZoneSetup = ZoneSetup { size: 128, capacity: 64, limit: Some(4), conventional: 0 };

fn setup(give_up_zones: bool) -> Setup {
    let options = Options { checkpoint_blocks: 400, give_up_zones, ..OPTIONS };
    Setup::of(0, 6000, options).on_zones(180, ZONES)
}

/// Blocks that lie in a zone. All of the map is in memory.
fn blocks_in(rig: &mut Rig, zone: u32) -> BTreeSet<u64> {
    let blocks = rig.oracle.blocks();
    let log = rig.volume.as_log_mut().expect("a volume of mode log");
    let mut lies_there = |lba: &u64| {
        let found = log.look_up(&mut rig.disk, MemberId::DEVICE, Lba::new(*lba));
        let (at, _) = found.expect("the map is in memory");
        at.is_block() && at.raw() / ZONES.size == zone
    };
    (0..blocks).filter(|lba| lies_there(lba)).collect()
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
    /// The zones were written after that.
    noticed: bool,
}

fn lived(seed: u64) -> Lived {
    let mut rng = Rng::new(seed);
    let mut rig = Rig::new(setup(false), seed);
    let (mut lost, mut noticed) = (BTreeSet::new(), true);
    assert_eq!(work(&mut rig, &mut rng, &mut lost), None);
    for _ in 0..2 {
        let (zone, is_open) = some_zone(&rig, &mut rng);
        lost.extend(blocks_in(&mut rig, zone));
        let before = rig.volume.stats().retried_batches;
        rig.lose_zone(zone);
        assert_eq!(work(&mut rig, &mut rng, &mut lost), None, "{:?}", rig.volume.frozen());
        noticed &= is_open && rig.volume.stats().retried_batches > before;
    }
    let end = [End::Cut, End::Closed, End::Rested][index64(rng.below(3))];
    assert!(end == End::Cut || rig.settle());
    if end == End::Closed {
        rig.volume.close();
        assert!(rig.settle());
        assert_eq!(rig.volume.frozen(), Some(Frozen::Closed));
    }
    Lived { rig, end, lost, noticed }
}

/// The volume goes on without what was there, and everything else is as it was; a check tells what is lost. If the volume came to know of
/// the zones, it opens without being asked: all of its map is in memory.
#[test]
fn zones_go_offline_at_any_time() {
    // Opened; refused because of the last batches, of pages of the map, of more of the last checkpoint; blocks that were lost; sure to open.
    let mut counts = [0; 6];
    for_each_seed(("onefold-volume", "crash", "zones_go_offline_at_any_time"), 120, |seed| {
        let Lived { mut rig, end, lost, noticed } = lived(seed);
        let mut disk = Disk::new(rig.random_cut());
        let checked = inspect(&mut disk, setup(false).file_blocks, true);
        let refused = match open(&mut disk.clone(), &setup(false)) {
            Err(MountError::Zones(error)) => Some(error),
            Err(error) => panic!("{error}"),
            Ok(_) => None,
        };
        let sure = noticed && end != End::Cut;
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
        counts[4] += errors;
    });
    println!("{counts:?}");
    let some = [0, 1, 4, 5].iter().all(|at| counts[*at] > 0);
    assert!(chosen_seed().is_some() || some, "{counts:?}");
}

/// The zone that takes roots: nothing more can be made durable, so nothing is written any more, and all that there is can be read. It is
/// made anew from what is left.
#[test]
fn without_its_zone_of_roots_a_volume_is_read_only() {
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(setup(false), seed);
        assert_eq!(work(&mut rig, &mut rng, &mut BTreeSet::new()), None);
        let zones = rig.disk.view().zones.clone().expect("zones");
        let zone =
            [2, 3].into_iter().find(|zone| zones.state(*zone).is_active()).expect("one has room");
        rig.lose_zone(zone);
        let refused = (0..20).find_map(|_| work(&mut rig, &mut rng, &mut BTreeSet::new()));
        assert_eq!(
            (refused, rig.volume.frozen()),
            (Some(Refusal::ReadOnly), Some(Frozen::Checkpoint))
        );
        for lba in 0..rig.oracle.blocks() {
            let found = content(&mut *rig.volume, &mut rig.disk, lba);
            assert_eq!(found, Some(rig.oracle.now(lba)), "block {lba}, seed {seed}");
        }
        let mut disk = Disk::new(rig.random_cut());
        let error = open(&mut disk, &setup(false)).err().expect("no root");
        assert!(error.to_string().contains(&format!("zone {zone} is offline")), "{error}");
        let done = rebuild(&mut disk, setup(false).file_blocks, OPTIONS).expect("it is made anew");
        for (lba, found) in (0..).zip(contents(&mut disk, &setup(false))) {
            let may = found.is_some_and(|found| rig.oracle.may_hold(lba, found));
            assert!(
                may || is_uncertain(&done, lba),
                "block {lba} has {found:?}, {done:?}, seed {seed}"
            );
        }
    }
}
