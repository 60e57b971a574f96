//! Volumes on zones: random cuts, and zones that fail.

use onefold_testkit::{chosen_seed, for_each_seed};
use onefold_units::convert::{index64, low32};
use onefold_units::{Lba, Nanos, Rng, ZoneState};
use onefold_volume::{
    Engine, Geometry, Layout, MemberId, MountError, Options, ZoneError, drive, format, mount,
};

use super::random::random_run;
use crate::harness::disk::{Disk, fail_zone};
use crate::harness::errors::assert_right_or_error;
use crate::harness::image::{Image, block};
use crate::harness::ops::{random_op, work};
use crate::harness::oracle::Oracle;
use crate::harness::rig::{Op, Rig, open};
use crate::harness::setup::{OPTIONS, Setup};
use crate::harness::stamp::BLOCK;
use crate::harness::zones::ZoneSetup;

const ZONES: ZoneSetup = ZoneSetup { size: 128, capacity: 64, limit: Some(4), conventional: 0 };

fn setup() -> Setup {
    let options = Options { checkpoint_blocks: 400, ..OPTIONS };
    Setup::of(0, 1500, options).on_zones(70, ZONES)
}

/// A volume after some work without snapshots.
fn worked(setup: Setup, seed: u64, ops: u64) -> Rig {
    let mut rng = Rng::new(seed);
    let mut rig = Rig::new(setup, seed);
    for _ in 0..ops {
        assert!(rig.run(random_op(&mut rng, rig.oracle.blocks())));
        rig.step();
    }
    rig
}

fn refused<T>(result: Result<T, MountError>) -> ZoneError {
    match result {
        Err(MountError::Zones(error)) => error,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was not refused"),
    }
}

#[test]
fn random_cuts_on_zones() {
    for_each_seed(("onefold-volume", "volume", "random_cuts_on_zones"), 60, |seed| {
        let mut rng = Rng::new(seed);
        random_run(seed, Setup::random_zoned(&mut rng), rng);
    });
}

/// No zone is lost, whatever happened: the volume can be overwritten for ever.
#[test]
fn random_long_lives_on_zones() {
    for_each_seed(("onefold-volume", "volume", "random_long_lives_on_zones"), 100, |seed| {
        // They take long.
        if chosen_seed().is_none() && !seed.is_multiple_of(16) {
            return;
        }
        let mut rng = Rng::new(seed);
        let setup = Setup::random_zoned(&mut rng);
        let mut rig = Rig::new(setup, seed);
        for life in 0..5 {
            work(&mut rig, &mut rng, 1500);
            rig.assert_counts();
            rig = if life % 2 == 0 { rig.cut_and_reopen(0) } else { rig.close_and_reopen() }
                .unwrap_or_else(|what| panic!("{what}, {setup:?}"));
        }
    });
}

/// All that a volume on few zones exports can be written again and again; `more` is done once in 300 writes.
pub(crate) fn full_volume_lives_on(
    seed: u64,
    limit: u32,
    options: Options,
    more: impl Fn(&mut Rng, u64) -> Option<Op>,
) {
    let mut rng = Rng::new(seed);
    let usable = [11, 13, 16, 36][index64(rng.below(4))];
    let capacity = [64, 192][index64(rng.below(2))];
    let forced = [2, 10, 100][index64(rng.below(3))];
    let zones = ZoneSetup { size: 256, capacity, limit: Some(limit), conventional: 0 };
    let mut setup = Setup::of(0, 1, Options { batch_blocks: 256, ..options });
    setup = setup.on_zones(4 + usable, zones);
    let layout = Layout::new(Geometry::of(&setup.label())).expect("a layout");
    setup.logical_blocks = layout.logical_max();
    let mut rig = Rig::new(setup, seed);
    for _ in 0..2 {
        for n in 0..setup.logical_blocks {
            if let Some(op) = (n % 300 == 0).then(|| more(&mut rng, setup.logical_blocks)).flatten()
            {
                assert!(rig.run(op));
            }
            let blocks = 1 + rng.below(8).min(setup.logical_blocks - 1);
            let lba = rng.below(setup.logical_blocks - blocks + 1);
            assert!(rig.run(Op::Write { lba, blocks, fua: rng.below(forced) == 0 }));
            rig.step();
        }
        assert!(rig.settle());
        assert_eq!((rig.volume.frozen(), rig.oracle.failed), (None, 0));
        rig = rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}, {usable} zones"));
    }
    rig.assert_counts();
}

/// However few zones there are: what a volume says to fit does.
#[test]
fn full_volumes_on_few_zones_live_on() {
    for_each_seed(("onefold-volume", "volume", "full_volumes_on_few_zones"), 24, |seed| {
        full_volume_lives_on(seed, 4, OPTIONS, |_, _| None);
    });
}

/// A zone that can only be read when the volume is opened loses nothing, is emptied, and nobody writes there.
#[test]
fn read_only_zones_are_evacuated() {
    for_each_seed(("onefold-volume", "volume", "read_only_zones_are_evacuated"), 60, |seed| {
        let mut rng = Rng::new(seed);
        let mut rig = worked(setup(), seed, 150);
        let mut image = rig.random_cut();
        let zones: Vec<u32> = (0..2).map(|_| low32(rng.below(70))).collect();
        // Of the zones with roots one has to take the next one.
        for zone in zones.iter().filter(|zone| ![2, 3].contains(*zone)) {
            fail_zone(&mut image, *zone, ZoneState::ReadOnly);
        }
        let mut rig = Rig::open(setup(), Disk::new(image), rig.oracle, seed)
            .unwrap_or_else(|what| panic!("{what}"));
        work(&mut rig, &mut rng, 600);
        for _ in 0..3 {
            assert!(rig.run(Op::Checkpoint) && rig.settle());
        }
        let log = rig.volume.as_log().expect("a volume of mode log");
        assert_eq!(log.stats().retried_batches, 0, "nobody writes there");
        for info in log.segment_infos().filter(|info| zones.contains(&info.segment.raw())) {
            let rests = info.state == "fixed" || info.stream == 3 || info.live == 0;
            assert!(rests, "{info:?} still has data");
        }
        rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}"));
    });
}

/// Zones fail while they are written: what was promised is there, and the volume goes on.
#[test]
fn zones_become_read_only_at_any_time() {
    for_each_seed(("onefold-volume", "volume", "zones_become_read_only_at_any_time"), 60, |seed| {
        let mut rng = Rng::new(seed);
        let mut rig = worked(setup(), seed, 60);
        for _ in 0..3 {
            let log = rig.volume.as_log().expect("a volume of mode log");
            let open: Vec<_> = log.segment_infos().filter(|info| info.state == "open").collect();
            if let Some(info) = open.get(usize::try_from(rng.below(4)).unwrap()) {
                rig.disk.fail_zone(info.segment.raw(), ZoneState::ReadOnly);
            }
            work(&mut rig, &mut rng, 100);
            assert!(rig.settle());
            assert_eq!(rig.volume.frozen(), None);
        }
        assert_eq!(rig.oracle.failed, 0);
        rig.cut_and_reopen(1).unwrap_or_else(|what| panic!("{what}"));
    });
}

/// What was in a zone that is offline is an error, and everything else is what it was. A zone that may have had what came after the
/// last checkpoint is not given up without being asked.
#[test]
fn offline_zones_lose_their_blocks_and_nothing_else() {
    let (mut lost, mut refusals, mut needed) = (0, 0, 0);
    for_each_seed(("onefold-volume", "volume", "offline_zones"), 90, |seed| {
        let mut rng = Rng::new(seed);
        let mut rig = worked(setup(), seed, 150);
        let image = rig.random_cut();
        let zone = 4 + low32(rng.below(66));
        let mut whole = Disk::new(image.clone());
        let (_, recovery) = open(&mut whole, &setup()).expect("it opens");
        let mut damaged = image;
        fail_zone(&mut damaged, zone, ZoneState::Offline);
        let mut disk = Disk::new(damaged.clone());
        let opened = match open(&mut disk, &setup()) {
            Err(MountError::Zones(
                ZoneError::Offline { zone: found } | ZoneError::Map { zone: found },
            )) => {
                assert_eq!(found.raw(), zone);
                refusals += 1;
                let mut setup = setup();
                setup.options.give_up_zones = true;
                disk = Disk::new(damaged);
                open(&mut disk, &setup)
            }
            opened => opened,
        };
        match opened {
            Ok((mut volume, found)) => {
                let state = rig.oracle.state_at(found.seq);
                assert!(found.seq <= recovery.seq);
                lost += assert_right_or_error(&mut *volume, &mut disk, &state).blocks;
                assert_lives_on(&mut *volume, &mut disk);
            }
            // What a checkpoint or durable batches were made of.
            Err(MountError::Zones(ZoneError::Checkpoint { zone: found, .. })) => {
                assert_eq!(found.raw(), zone);
                needed += 1;
            }
            Err(MountError::Lost { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    });
    let all = lost > 0 && refusals > 0 && needed > 0;
    assert!(chosen_seed().is_some() || all, "{lost} {refusals} {needed}");
}

/// What is lost can be written again.
pub(crate) fn assert_lives_on(volume: &mut dyn Engine, disk: &mut Disk) {
    for lba in 0..200 {
        let range = onefold_volume::Range { lba: Lba::new(lba), blocks: 1 };
        let data = crate::harness::stamp::stamped(1 << 40, lba, 1);
        while volume.write(lba, range, Some(&data), false).is_err() {
            drive(volume, disk, Nanos::new(1));
        }
    }
    drive(volume, disk, Nanos::new(1 << 40));
    assert_eq!(volume.frozen(), None);
}

/// A durable image of a closed volume, its content, and a zone of which live data would be missed.
fn closed() -> (Image, Oracle, u32) {
    let mut rig = worked(setup(), 1, 200).close_and_reopen().expect("it opens");
    assert!(rig.settle());
    let mut rig = rig.close_and_reopen().expect("it opens");
    let log = rig.volume.as_log_mut().expect("a volume of mode log");
    let lba = (0..1500).map(Lba::new).find_map(|lba| {
        let (at, _) = log.look_up(&mut rig.disk, MemberId::DEVICE, lba)?;
        at.is_block().then(|| at.raw() / ZONES.size)
    });
    rig.volume.close();
    assert!(rig.settle());
    (rig.disk.view().clone(), rig.oracle, lba.expect("a mapped block"))
}

/// Nothing else is to be cleaned, and nobody writes.
#[test]
fn a_zone_that_can_only_be_read_is_emptied_at_rest() {
    let (mut image, oracle, zone) = closed();
    fail_zone(&mut image, zone, ZoneState::ReadOnly);
    let mut rig = Rig::open(setup(), Disk::new(image), oracle, 1).expect("it opens");
    (0..3000).for_each(|_| rig.step());
    let log = rig.volume.as_log().expect("a volume of mode log");
    let live = log.segment_infos().find(|info| info.segment.raw() == zone).map(|info| info.live);
    assert_eq!(live, Some(0));
    rig.cut_and_reopen(0).expect("it opens again");
}

/// A zone that somebody reset is told, and given up only by who wants that.
#[test]
fn a_zone_that_was_reset_by_somebody_else_is_told() {
    let (mut image, oracle, zone) = closed();
    let zones = image.zones.as_mut().expect("zones");
    zones.reset(zone);
    for at in zones.blocks(zone) {
        image.set(at, block(&[0; BLOCK]));
    }
    let mut disk = Disk::new(image);
    let error = refused(open(&mut disk, &setup()));
    assert!(matches!(error, ZoneError::WritePointer { found: 0, .. }), "{error}");
    assert!(error.to_string().contains("--repair"), "{error}");
    assert_eq!(disk.volatile(), 0, "nothing was changed");

    let mut setup = setup();
    setup.options.give_up_zones = true;
    let (mut volume, _) = open(&mut disk, &setup).expect("it opens");
    let state = oracle.state_at(u64::MAX);
    let errors = assert_right_or_error(&mut *volume, &mut disk, &state);
    assert!(errors.blocks > 0 && errors.pages == 0, "{errors:?}");
    assert_lives_on(&mut *volume, &mut disk);
}

/// A zone that the last checkpoint left open, and that holds less than it says.
#[test]
fn a_write_pointer_that_fell_behind_a_checkpoint_is_told() {
    let mut rig = worked(setup(), 1, 200);
    assert!(rig.settle() && rig.run(Op::Checkpoint) && rig.settle());
    let mut image = rig.disk.view().clone();
    let zones = image.zones.as_mut().expect("zones");
    // Of data: behind what the checkpoint says of that of the map lies the checkpoint itself.
    let log = rig.volume.as_log().expect("a volume of mode log");
    let mut open_zones = log.segment_infos().filter(|info| info.state == "open" && info.stream < 3);
    let zone = open_zones.find(|info| zones.state(info.segment.raw()).is_active());
    zones.fall_back(zone.expect("a zone that is written").segment.raw());
    let error = refused(open(&mut Disk::new(image.clone()), &setup()));
    assert!(matches!(error, ZoneError::WritePointer { found: 1.., .. }), "{error}");
    let mut setup = setup();
    setup.options.give_up_zones = true;
    assert!(open(&mut Disk::new(image), &setup).is_ok());
}

/// Labels have two copies, and zones with roots begin with one.
#[test]
fn a_volume_opens_without_its_zones_of_labels() {
    let (mut image, oracle, _) = closed();
    fail_zone(&mut image, 0, ZoneState::Offline);
    fail_zone(&mut image, 1, ZoneState::Offline);
    let rig = Rig::open(setup(), Disk::new(image), oracle, 1);
    assert!(rig.is_ok(), "{:?}", rig.err());
}

/// A zone with room for roots has the newest one; behind a full one there may be newer ones.
#[test]
fn roots_are_found_in_the_zone_that_has_room() {
    let (image, oracle, _) = closed();
    let states = [2, 3].map(|zone| image.zones.as_ref().expect("zones").state(zone));
    let used = [2, 3].into_iter().zip(states).find(|(_, state)| state.is_active());
    let (used, _) = used.expect("one of them has room");
    let other = 5 - used;
    let mut without = image.clone();
    fail_zone(&mut without, other, ZoneState::Offline);
    assert!(Rig::open(setup(), Disk::new(without), oracle.clone(), 1).is_ok());
    let mut without = image.clone();
    fail_zone(&mut without, used, ZoneState::Offline);
    assert!(Rig::open(setup(), Disk::new(without), oracle.clone(), 1).is_err());
    // It can only be read: the other one takes the next root.
    let mut without = image;
    fail_zone(&mut without, used, ZoneState::ReadOnly);
    let rig = Rig::open(setup(), Disk::new(without), oracle, 1).expect("it opens");
    rig.cut_and_reopen(2).expect("it opens again");
}

/// Zones that a volume cannot work with are refused, in words.
#[test]
fn zones_that_cannot_work_are_refused() {
    let fresh = |zones: ZoneSetup| {
        let mut image = Image::new(70 * u64::from(zones.size));
        image.zones = Some(crate::harness::zones::Zones::new(zones, image.blocks()));
        Disk::new(image)
    };
    let label = setup().label();
    let limit = ZoneSetup { limit: Some(3), ..ZONES };
    let error = refused(format(&mut fresh(limit), &label));
    assert_eq!(error, ZoneError::Limit { found: 3, min: 4 });
    let error = refused(format(&mut fresh(ZoneSetup { capacity: 65, ..ZONES }), &label));
    assert!(matches!(error, ZoneError::Capacity { found: 65, expected: 64, .. }));
    let error = refused(format(&mut fresh(ZoneSetup { size: 64, ..ZONES }), &label));
    assert_eq!(error, ZoneError::Size { found: 64, expected: 128 });
    let error = refused(format(&mut fresh(ZoneSetup { conventional: 3, ..ZONES }), &label));
    assert_eq!(error, ZoneError::RootZones);
    let error = refused(format(&mut Disk::new(Image::new(70 * 128)), &label));
    assert_eq!(error, ZoneError::Size { found: 0, expected: 128 });
    let mut disk = fresh(ZONES);
    disk.fail_zone(3, ZoneState::ReadOnly);
    assert!(matches!(refused(format(&mut disk, &label)), ZoneError::Fixed { .. }));

    let mut disk = setup().format();
    let options = setup().remapped().options;
    let opened = mount(&mut disk, setup().backing_blocks, options);
    assert!(matches!(opened, Err(MountError::Options(onefold_volume::OptionsError::RemapZones))));
}
