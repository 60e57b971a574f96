//! A backing that fails for a while, and heals: any number of requests, singly, in bursts or all of them, beside power cuts, snapshots,
//! resizes and scrubs.
//!
//! - **Safety**: a block reads as what was written, or is an error; what is durable stays durable.
//! - **Liveness**: each request is answered in bounded time. When the backing is whole again writes succeed, and the room comes back.

use onefold_format::volume::VolumeMode;
use onefold_testkit::for_each_seed;
use onefold_units::convert::index64;
use onefold_units::{Nanos, Rng};
use onefold_volume::{Faulty, Frozen, Io, IoFailed, IoKind, Refusal, Resize, SCRUB_PAUSE, Volume};

use crate::disk::Fate;
use crate::random::random_op;
use crate::resize::resize_to;
use crate::rig::{Op, Rig};
use crate::setup::{OPTIONS, Setup};
use crate::weather::Weather;
use crate::zones::ZoneSetup;

/// How long a request may wait on a backing that fails.
const ANSWERED: Nanos = Nanos::new(10_000_000_000);

/// The same in the papers' modes, where requests wait for one table after the other.
const ANSWERED_SLOWLY: Nanos = Nanos::new(200_000_000_000);

/// How long after the backing healed the volume takes writes again: what fails may be tried for a minute before something else is.
const RECOVERED: Nanos = Nanos::new(200_000_000_000);

/// How long after the backing healed the volume is as if nothing had been: longer than a log segment that could not be cleaned is left alone.
const HEALED: Nanos = Nanos::new(150_000_000_000);

/// What the host does next. While its size changes it uses what it had before and has after.
fn operation(rng: &mut Rng, rig: &Rig, usable: &mut u64, snapshots: bool) -> Op {
    if !rig.resizing {
        *usable = rig.blocks();
    }
    match rng.below(60) {
        0 if snapshots => Op::Snapshot,
        1 if snapshots => Op::Delete,
        2 if !rig.resizing => {
            // Half of it stays at least.
            let most = rig.oracle.blocks();
            let blocks = most - rng.below(2) * rng.below(most / 2);
            *usable = blocks.min(*usable);
            Op::Resize(resize_to(blocks))
        }
        _ => random_op(rng, *usable),
    }
}

/// Begins a pass of the scrub, or ends one.
fn scrub(rig: &mut Rig, rng: &mut Rng) {
    let Some(volume) = rig.volume.as_log_mut() else { return };
    match rng.below(80) {
        0 => volume.stop_scrub(),
        1 | 2 => volume.start_scrub(SCRUB_PAUSE).unwrap_or(()),
        _ => {}
    }
}

/// Uses the volume while the backing fails. What it refuses it has a reason for.
fn endure(rig: &mut Rig, rng: &mut Rng, weather: Weather, snapshots: bool) {
    rig.weather = weather;
    // A size may be under way from before.
    let mut usable = if rig.resizing { rig.oracle.blocks() / 2 } else { rig.blocks() };
    for _ in 0..rng.below(60) {
        scrub(rig, rng);
        let op = operation(rng, rig, &mut usable, snapshots);
        if let Op::Resize(Resize::Logical { blocks: end, .. }) = op
            && end < rig.blocks()
            && rig.try_run(Op::Trim { lba: end, blocks: rig.blocks() - end }) != Ok(true)
        {
            continue;
        }
        match rig.try_run(op) {
            Ok(taken) if !taken => return,
            Ok(_) | Err(Refusal::MediaError) => {}
            Err(Refusal::Backing(why)) => {
                // The cleaner may be what could not read, or room may be where writes failed.
                let faulty = rig.volume.as_log().map(Volume::faulty).unwrap_or_default();
                let short = weather.reads > 0 || faulty.failed > 0;
                assert!(rig.volume.stalled() == Some(why) || short, "{op:?}");
            }
            // Snapshots take what space there is.
            Err(Refusal::NoSpace) if rig.volume.as_log().is_some_and(Volume::can_fill) => {}
            Err(Refusal::ReadOnly) => {
                let frozen = rig.volume.frozen();
                assert!(frozen.is_some(), "{op:?} is refused");
                return;
            }
            Err(refusal) => panic!("{op:?} is refused: {refusal:?}, {weather:?}, {:?}", rig.setup),
        }
        for _ in 0..rng.below(4) {
            rig.step();
        }
    }
    rig.pass(if rig.volume.as_log().is_some() { ANSWERED } else { ANSWERED_SLOWLY });
    let waiting = rig.oracle.waiting();
    let frozen = rig.volume.frozen();
    assert!(
        waiting.is_empty() || !rig.has_power(),
        "requests {waiting:?} are not answered, {frozen:?}, {weather:?}, {:?}",
        rig.setup
    );
}

/// The backing is whole: everything succeeds, and nothing is missing after a while.
fn recover(mut rig: Rig, rng: &mut Rng) -> Rig {
    rig.weather = Weather::CALM;
    rig.pass(RECOVERED);
    assert_eq!(
        (rig.volume.stalled(), rig.volume.frozen()),
        (None, None),
        "{} {:?}",
        rig.tell(),
        rig.setup
    );
    assert!(!rig.resizing, "{} {:?}", rig.tell(), rig.setup);
    let failed = rig.oracle.failed;
    for _ in 0..40 {
        assert!(rig.run(random_op(rng, rig.blocks())));
    }
    assert!(rig.run(Op::Flush) && rig.settle());
    assert_eq!(rig.oracle.failed, failed, "a request failed on a whole backing");
    rig
}

fn assert_whole(mut rig: Rig, snapshots: bool) -> Rig {
    let blocks = rig.blocks();
    for _ in 0..2 {
        for lba in (0..blocks).step_by(100) {
            assert!(rig.run(Op::Write { lba, blocks: 100.min(blocks - lba), fua: false }));
        }
        assert!(rig.run(Op::Checkpoint) && rig.settle());
        rig.pass(HEALED);
    }
    // What was emptied since is given back by the next one.
    assert!(rig.run(Op::Checkpoint) && rig.settle());
    if snapshots {
        // Where the map of a snapshot could not be read, what it shared counts as live until all of the map can be.
        let wrong = rig.miscounts().unwrap_or_default();
        assert!(wrong.iter().all(|of| of.found <= of.counted), "{wrong:?}, {:?}", rig.setup);
        rig.pass(HEALED);
        let wrong = rig.miscounts().unwrap_or_default();
        assert!(wrong.is_empty(), "{wrong:?}, {:?}", rig.setup);
        return rig;
    }
    if let Some(volume) = rig.volume.as_log_mut() {
        volume.stop_scrub();
        rig.pass(SCRUB_PAUSE);
        rig.volume.as_log_mut().map(|volume| volume.start_scrub(Nanos::ZERO));
        rig.pass(HEALED);
        let faulty = rig.volume.as_log().map(Volume::faulty).unwrap_or_default();
        assert_eq!(faulty.segments(), 0, "{faulty:?}, {:?}", rig.setup);
    }
    rig.assert_counts();
    rig
}

fn history(seed: u64, setup: Setup, mut rng: Rng) {
    let snapshots = rng.below(2) == 0;
    // Of some histories openings are cut as well.
    let cuts = if seed % 4 == 1 { 2 } else { 0 };
    let mut rig = Rig::new(setup, seed);
    let blocks = rig.oracle.blocks() * (1 + rng.below(2)) / 2;
    for lba in (0..blocks).step_by(100) {
        assert!(rig.run(Op::Write { lba, blocks: 100.min(blocks - lba), fua: false }));
    }
    for _ in 0..2 + rng.below(3) {
        for _ in 0..=rng.below(3) {
            let weather = Weather::random(&mut rng);
            endure(&mut rig, &mut rng, weather, snapshots);
        }
        let frozen = rig.volume.frozen();
        if frozen.is_none() && rng.below(2) == 0 {
            rig = recover(rig, &mut rng);
        }
        if frozen.is_some() || rng.below(2) == 0 {
            rig = rig.cut_and_reopen(cuts).unwrap_or_else(|what| panic!("{what}, {setup:?}"));
        }
    }
    if rig.volume.frozen().is_none() {
        rig = recover(rig, &mut rng);
        rig = assert_whole(rig, snapshots);
    }
    rig.cut_and_reopen(cuts).unwrap_or_else(|what| panic!("{what}, {setup:?}"));
}

#[test]
fn errors_that_come_and_go() {
    for_each_seed(("onefold-volume", "crash", "errors_that_come_and_go"), 60, |seed| {
        let mut rng = Rng::new(seed);
        let setup = Setup::random(&mut rng);
        history(seed, setup, rng);
    });
}

#[test]
fn errors_that_come_and_go_on_zones() {
    for_each_seed(("onefold-volume", "crash", "errors_that_come_and_go_on_zones"), 40, |seed| {
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

/// No zone is begun before the zone of a label is finished: where it cannot be, who waits for that is told, and the volume goes on when it can.
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

#[test]
fn errors_that_come_and_go_in_the_modes_of_the_papers() {
    let test = "errors_that_come_and_go_in_the_modes_of_the_papers";
    for_each_seed(("onefold-volume", "crash", test), 30, |seed| {
        let mut rng = Rng::new(seed);
        let mode = [VolumeMode::Sung, VolumeMode::Han][index64(seed % 2)];
        let setup = Setup::random_faithful(mode, &mut rng);
        history(seed, setup, rng);
    });
}

/// A backing that fails for longer than anybody waits, and one that never heals: each request is answered, and reads of what is
/// there go on.
#[test]
fn a_backing_that_is_down() {
    for_each_seed(("onefold-volume", "crash", "a_backing_that_is_down"), 30, |seed| {
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
