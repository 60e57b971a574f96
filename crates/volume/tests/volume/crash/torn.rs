//! Zones of a device that answers errors although it carried out what it was asked for, or a part of it: no such error costs a zone.

use onefold_units::{Nanos, Rng};
use onefold_volume::{IoKind, Options, Volume};

use crate::harness::disk::{Disk, Fate};
use crate::harness::ops::random_op;
use crate::harness::rig::{Op, Order, Rig};
use crate::harness::setup::{OPTIONS, Setup};
use crate::harness::zones::ZoneSetup;

/// Longer than a zone is left alone that could not be reset or finished.
const HEALED: Nanos = Nanos::new(150_000_000_000);

fn setup() -> Setup {
    let zones = ZoneSetup { size: 64, capacity: 64, limit: Some(4), conventional: 0 };
    let options = Options { checkpoint_blocks: 100, ..OPTIONS };
    Setup::of(0, 900, options).on_zones(40, zones)
}

fn log(rig: &Rig) -> &Volume {
    rig.volume.as_log().expect("a volume of mode log")
}

/// Some work in which one request fails, or none.
fn work(fail: Option<(u64, Fate)>, garbles: bool) -> Rig {
    let mut rng = Rng::new(5);
    let mut rig = Rig::new(setup(), 5);
    rig.order = Order::InTurn;
    (rig.fail, rig.disk.garbles) = (fail, garbles);
    for _ in 0..60 {
        // A flush that fails is final.
        if rig.volume.frozen().is_some() {
            return rig;
        }
        let op = random_op(&mut rng, rig.oracle.blocks());
        assert!(rig.try_run(op).is_ok() || rig.volume.frozen().is_some(), "{op:?}");
        rig.step();
    }
    assert!(rig.run(Op::Checkpoint) && rig.settle());
    rig.pass(HEALED);
    rig
}

/// A zone that took a part of a write, or all of it, before the answer was an error refused the same write for ever, and was emptied for
/// it: each such write took a zone, until hardly one was left.
#[test]
fn writes_that_zones_took_in_part_cost_no_zone() {
    let whole = work(None, false);
    let (requests, finishes) = (whole.requests, whole.volume.stats().zone_finishes);
    let (mut resumed, mut roots) = (0, 0);
    for request in 0..requests {
        for fate in [Fate::Lost, Fate::Torn, Fate::Whole] {
            let mut rig = work(Some((request, fate)), false);
            let Some(failed) = rig.failed.filter(|io| io.kind == IoKind::Write) else { continue };
            let stats = rig.volume.stats();
            let what = format!("{failed:?} {fate:?}");
            assert_eq!((stats.retried_batches, rig.oracle.failed), (0, 0), "{what}");
            assert_eq!((log(&rig).faulty().strikes, rig.volume.frozen()), (0, None), "{what}");
            assert!(stats.zone_finishes <= finishes, "{what}: a zone was left");
            let carried_out = fate == Fate::Whole || fate == Fate::Torn && failed.blocks > 1;
            assert_eq!(stats.resumed_writes, u64::from(carried_out), "{what}");
            resumed += stats.resumed_writes;
            roots += u64::from([2, 3].contains(&(failed.at.raw() / 64)) && carried_out);
            rig.assert_counts();
            rig.cut_and_reopen(0).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }
    assert!(resumed > 100 && roots > 3, "{resumed} writes, {roots} of roots");
}

/// A write pointer that moved over blocks that hold something else: they do not count, and the batch goes to another zone.
#[test]
fn what_a_zone_holds_of_a_write_is_compared() {
    let mut moved = 0;
    for request in 0..work(None, false).requests {
        let rig = work(Some((request, Fate::Whole)), true);
        let Some(failed) = rig.failed.filter(|io| io.kind == IoKind::Write) else { continue };
        let stats = rig.volume.stats();
        assert_eq!((stats.resumed_writes, rig.oracle.failed), (0, 0), "{failed:?}");
        moved += stats.retried_batches;
        rig.cut_and_reopen(0).unwrap_or_else(|error| panic!("{failed:?}: {error}"));
    }
    assert!(moved > 50, "{moved} batches");
}

/// A zone that an opening could not reset was left alone until the next one, and one that it could not finish stayed active.
#[test]
fn errors_of_an_opening_cost_no_zone() {
    let mut rig = work(None, false);
    assert!(rig.run(Op::Write { lba: 0, blocks: 20, fua: false }) && rig.run(Op::Flush));
    assert!(rig.settle());
    let free = log(&rig).segment_infos().filter(|info| info.state == "free");
    let free: Vec<u64> = free.map(|info| u64::from(info.segment.raw())).collect();
    let mut image = rig.random_cut();
    // As if their resets had been lost.
    for zone in &free[..3] {
        image.zones.as_mut().expect("zones").advance(zone * 64, 5);
    }
    let oracle = rig.oracle;
    let open = |fails| {
        let mut disk = Disk::new(image.clone());
        disk.fails = fails;
        let mut rig = Rig::open(setup(), disk, oracle.clone(), 3)?;
        rig.pass(HEALED);
        assert!(rig.run(Op::Checkpoint) && rig.settle());
        rig.pass(HEALED);
        Ok::<_, String>(rig)
    };
    let whole = open(None).expect("it opens");
    let mut errors = 0;
    for request in 0..whole.opening {
        // What it cannot do without, it says.
        let Ok(rig) = open(Some(request)) else { continue };
        assert_eq!(log(&rig).free_segments(), log(&whole).free_segments(), "request {request}");
        errors += 1;
    }
    assert!(errors > 0);
}
