//! A backing that fails for a while, and heals: any number of requests, singly, in bursts or all of
//! them, beside power cuts, snapshots, resizes and scrubs.
//!
//! - **Safety**: a block reads as what was written, or is an error; what is durable stays durable.
//! - **Liveness**: each request is answered in bounded time. When the backing is whole again writes
//!   succeed, and the room comes back.

use onefold_units::{Nanos, Rng};
use onefold_volume::{Refusal, Resize, SCRUB_PAUSE, Volume};

use super::ops::{random_op, resize_to};
use super::rig::{Op, Rig};
use super::setup::Setup;
use super::weather::Weather;

/// How long a request may wait on a backing that fails.
const ANSWERED: Nanos = Nanos::new(10_000_000_000);

/// The same in the papers' modes, where requests wait for one table after the other.
const ANSWERED_SLOWLY: Nanos = Nanos::new(200_000_000_000);

/// How long after the backing healed the volume takes writes again: what fails may be tried for a
/// minute before something else is.
const RECOVERED: Nanos = Nanos::new(200_000_000_000);

/// How long after the backing healed the volume is as if nothing had been: longer than a log
/// segment that could not be cleaned is left alone.
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
pub(crate) fn endure(rig: &mut Rig, rng: &mut Rng, weather: Weather, snapshots: bool) {
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
pub(crate) fn recover(mut rig: Rig, rng: &mut Rng) -> Rig {
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

pub(crate) fn assert_whole(mut rig: Rig, snapshots: bool) -> Rig {
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
        // Where the map of a snapshot could not be read, what it shared counts as live until all of
        // the map can be.
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

/// A history of a volume on a backing that fails and heals, with power cuts.
pub(crate) fn history(seed: u64, setup: Setup, mut rng: Rng) {
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
