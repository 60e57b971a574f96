//! A backing that fails for a while, and heals (`crate::harness::endurance`).

use onefold_testkit::for_each_seed;
use onefold_units::{Nanos, Rng};
use onefold_volume::{Faulty, Frozen, Io, IoFailed, IoKind, Refusal, SCRUB_PAUSE, Volume};

use crate::harness::disk::Fate;
use crate::harness::endurance::{endure, history, recover};
use crate::harness::ops::resize_to;
use crate::harness::rig::{Op, Rig};
use crate::harness::setup::{OPTIONS, Setup};
use crate::harness::weather::Weather;
use crate::harness::zones::ZoneSetup;

#[test]
fn errors_that_come_and_go() {
    for_each_seed(("onefold-volume", "volume", "errors_that_come_and_go"), 60, |seed| {
        let mut rng = Rng::new(seed);
        let setup = Setup::random(&mut rng);
        history(seed, setup, rng);
    });
}

#[test]
fn errors_that_come_and_go_on_zones() {
    for_each_seed(("onefold-volume", "volume", "errors_that_come_and_go_on_zones"), 40, |seed| {
        let mut rng = Rng::new(seed);
        let setup = Setup::random_zoned(&mut rng);
        history(seed, setup, rng);
    });
}

/// Histories that a campaign found, and that no other test would: a busy loop while pages cannot be
/// read, a deadline that came late, a zone of a label that stayed active, room that did not come
/// back, a page of the map that a write needed and that left memory under it, a zone that stayed
/// retired behind a scrub.
#[test]
fn histories_that_failed_once() {
    for seed in [4, 12_986, 63_183, 323_717] {
        let mut rng = Rng::new(seed);
        let setup = Setup::random(&mut rng);
        history(seed, setup, rng);
    }
    for seed in [4, 8, 10_004, 50_763, 100_622, 208_035, 234_204, 251] {
        let mut rng = Rng::new(seed);
        let setup = Setup::random_zoned(&mut rng);
        history(seed, setup, rng);
    }
}

/// No zone is begun before the zone of a label is finished: where it cannot be, who waits for that
/// is told, and the volume goes on when it can.
#[test]
fn a_label_whose_zone_cannot_be_finished() {
    let zones = ZoneSetup { size: 128, capacity: 64, limit: Some(4), conventional: 0 };
    let setup = Setup::of(0, 900, OPTIONS).on_zones(50, zones);
    let is_label = |io: Io| io.kind == IoKind::Finish && io.at.raw() < 2 * zones.size;
    let resize = |fails: u64, again: u32| {
        let mut rig = Rig::new(setup, 1);
        rig.oracle.extend(1000);
        (rig.fail, rig.fail_again) = (Some((fails, Fate::Lost)), again);
        assert!(rig.run(Op::Resize(resize_to(1000))));
        rig
    };
    let finish = (1..100).find(|fails| {
        let mut rig = resize(*fails, 0);
        assert!(rig.settle());
        is_label(rig.failed.expect("a request of the resize"))
    });
    let mut rig = resize(finish.unwrap_or_default(), 200);
    while rig.failed.is_none() {
        rig.step();
    }
    assert_eq!(rig.try_run(Op::Write { lba: 0, blocks: 1, fua: false }), Ok(true));
    let (mut stalls, mut stalled) = (0, None);
    while rig.resizing {
        rig.step();
        let before = std::mem::replace(&mut stalled, rig.volume.stalled());
        stalls += u32::from(before.is_none() && stalled.is_some());
    }
    assert_eq!((stalls, rig.oracle.waiting(), rig.oracle.failed), (1, vec![], 1));
    recover(rig, &mut Rng::new(1));
}

/// A log segment in which writes fail again and again is retired, and used again behind a scrub.
#[test]
fn a_log_segment_that_is_retired() {
    let mut rig = Rig::new(Setup::of(9000, 3000, OPTIONS), 1);
    rig.weather = Weather { writes: 1000, place: Some((1920, 1984)), ..Weather::CALM };
    let faulty = |rig: &Rig| rig.volume.as_log().map(Volume::faulty).unwrap_or_default();
    // Writes the same blocks again until it is so.
    let until = |rig: &mut Rig, is_so: fn(Faulty) -> bool| {
        let rounds = (0..1000).find(|_| {
            let op = Op::Write { lba: 0, blocks: 60, fua: false };
            assert!(rig.run(op) && rig.run(Op::Checkpoint) && rig.settle());
            is_so(faulty(rig))
        });
        assert!(rounds.is_some(), "{:?}", faulty(rig));
    };
    until(&mut rig, |faulty| faulty.retired == 1);
    rig.weather = Weather::CALM;
    assert!(rig.volume.as_log_mut().is_some_and(|of| of.start_scrub(Nanos::ZERO).is_ok()));
    rig.pass(SCRUB_PAUSE);
    assert_eq!((faulty(&rig).segments(), faulty(&rig).strikes), (0, 2));
    // What is filled without a failure loses its strikes.
    until(&mut rig, |faulty| faulty.strikes < 2);
    rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}"));
}

/// Zones that cannot be reset are free later: a volume that lacks them is not full.
#[test]
fn zones_that_cannot_be_reset() {
    let zones = ZoneSetup { size: 64, capacity: 64, limit: Some(4), conventional: 4 };
    let mut rig = Rig::new(Setup::of(0, 900, OPTIONS).on_zones(47, zones), 1);
    rig.weather = Weather { others: 1000, ..Weather::CALM };
    let op = Op::Write { lba: 0, blocks: 60, fua: false };
    let refusal = (0..200).find_map(|_| rig.try_run(op).err());
    assert_eq!(refusal, Some(Refusal::Backing(IoFailed::Error)));
    recover(rig, &mut Rng::new(1));
}

/// A backing that fails for longer than anybody waits, and one that never heals: each request is
/// answered, and reads of what is there go on.
#[test]
fn a_backing_that_is_down() {
    for_each_seed(("onefold-volume", "volume", "a_backing_that_is_down"), 30, |seed| {
        let mut rng = Rng::new(seed);
        let setup = Setup::random(&mut rng);
        let mut rig = Rig::new(setup, seed);
        assert!(rig.run(Op::Write { lba: 0, blocks: 60, fua: false }) && rig.run(Op::Flush));
        assert!(rig.settle());
        endure(&mut rig, &mut rng, Weather { reads: 0, ..Weather::DOWN }, false);
        rig.pass(Nanos::new(3_600_000_000_000));
        assert!(rig.oracle.waiting().is_empty());
        if rig.volume.stalled().is_some() {
            let write = rig.try_run(Op::Write { lba: 0, blocks: 1, fua: false });
            assert_eq!(write, Err(Refusal::Backing(IoFailed::Error)));
            assert_eq!(rig.try_run(Op::Flush), Err(Refusal::Backing(IoFailed::Error)));
        }
        assert_eq!(rig.try_run(Op::Read { lba: 0, blocks: 60 }), Ok(true));
        assert_ne!(rig.volume.frozen(), Some(Frozen::Writes));
        rig = recover(rig, &mut rng);
        rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}, {setup:?}"));
    });
}
