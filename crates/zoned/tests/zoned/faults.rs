//! Zones that go out of service while the volume is used (invariant 6 of the volume).

use onefold_units::ZoneId;
use onefold_zoned::{Failure, IoFailed, IoKind, Options, Request};

use crate::rig::{Bad, Rig, SECOND, ZONE, two_devices};
use crate::verify::verify;

/// Chunk 0 lies in a sequential zone that is written up to block 4, and that goes out of service.
fn ailing(bad: Bad) -> Rig {
    let mut rig = Rig::new(&two_devices(), Options::default());
    rig.write_now(0, 1, 4);
    rig.advance(30 * SECOND);
    assert!(rig.is_sequential(0));
    let zone = ZoneId::new(rig.data(0).unwrap());
    rig.bad.insert(zone, bad);
    rig
}

/// Writes to the zone are sent until they count as failed.
fn refuse(rig: &mut Rig) {
    for _ in 0..20 {
        rig.complete_all(|io| io.device == 1 && io.kind == IoKind::Write);
        if rig.volume.stats().failed_zones > 0 {
            return;
        }
        rig.tick();
    }
    panic!("it is never given up");
}

#[test]
fn a_write_that_its_zone_refuses_goes_to_the_cache_and_the_rest_follows() {
    let mut rig = ailing(Bad::Written);
    let zone = rig.data(0);
    // Two writes at the write pointer, one after the other: both are on their way when the first one fails.
    let tags = [rig.write(4, 2, 2), rig.write(6, 3, 1)];
    rig.complete_all(|io| io.device == 1 && io.kind == IoKind::Write);
    refuse(&mut rig);
    // From now on it would take a reset and everything after it.
    rig.bad.insert(ZoneId::new(zone.unwrap()), Bad::Recovered);
    rig.settle();
    for tag in tags {
        assert_eq!(rig.result(tag), Some(Ok(())));
    }
    assert_eq!(rig.read_now(0, 8), [1, 1, 1, 1, 2, 2, 3, 0]);
    rig.advance(SECOND);
    assert!(!rig.is_sequential(0), "its data was evacuated");
    assert_eq!(rig.buffer(0), None);
    assert!(!rig.volume.is_frozen());
    assert_eq!((rig.volume.stats().failed_zones, rig.volume.zones_out_of_service()), (1, 0));
    rig.flush_now();
    // It is reset and used again, by the last of those whose turn it is.
    rig.advance(SECOND);
    for chunk in 1..11_u32 {
        rig.write_now(rig.at(chunk.into(), 0), 4 + u64::from(chunk), 1);
        rig.advance(30 * SECOND);
    }
    assert!((1..11).any(|chunk| rig.data(chunk) == zone), "it takes data again");
    assert_eq!(rig.read_now(0, 7), [1, 1, 1, 1, 2, 2, 3]);
}

/// While the write waits for a buffer zone, metadata is flushed, and power fails: a volume whose metadata has what its zones do not
/// have would not open.
#[test]
fn what_a_zone_refused_does_not_count_there() {
    let mut rig = ailing(Bad::Written);
    for chunk in 1..rig.blocks() / u64::from(ZONE) {
        rig.write(rig.at(chunk, 0), chunk, 1);
    }
    let refused = rig.write(4, 2, 1);
    refuse(&mut rig);
    assert_eq!(rig.volume.stats().failed_zones, 1);
    let flush = rig.submit(Request::Flush);
    // What is read is what reclaim would copy to free a zone.
    rig.complete_all(|io| io.kind != IoKind::Read);
    assert_eq!((rig.result(flush), rig.result(refused)), (Some(Ok(())), None));
    let geometry = rig.volume.geometry().clone();
    let (mut rig, _) = Rig::mount(rig.disks, &geometry, Options::default());
    assert_eq!(rig.read_now(0, 6), [1, 1, 1, 1, 0, 0]);
}

#[test]
fn what_an_offline_zone_held_is_an_error_until_it_is_written_again() {
    let mut rig = ailing(Bad::Read);
    rig.write_now(u64::from(ZONE), 7, 2);
    rig.write_now(4, 2, 1);
    let tag = rig.submit(Request::Read { lba: 0, blocks: 1 });
    rig.wait(tag);
    assert_eq!(rig.result(tag), Some(Err(Failure::Device(IoFailed::Error))));
    assert_eq!(rig.read_now(4, 2), [2, 0], "what was written since can be read");
    assert_eq!(rig.read_now(u64::from(ZONE), 2), [7, 7], "another chunk has nothing to do with it");
    rig.advance(60 * SECOND);
    assert_eq!(rig.volume.zones_out_of_service(), 1, "what cannot be read cannot be moved");
    rig.write_now(0, 3, 3);
    rig.discard_now(3, 1);
    rig.advance(60 * SECOND);
    assert_eq!(rig.read_now(0, 5), [3, 3, 3, 0, 2]);
    assert_eq!(rig.volume.zones_out_of_service(), 0, "nothing in it counts any more");
    assert!(!rig.volume.is_frozen());
}

/// A target of a copy that fails is not used, and the copy goes to another zone.
#[test]
fn a_reclaim_whose_target_fails_takes_another_one() {
    let mut rig = Rig::new(&two_devices(), Options::default());
    let first = ZoneId::new(20);
    rig.write_now(0, 1, 4);
    rig.bad.extend((0..5).map(|zone| (ZoneId::new(first.raw() + zone), Bad::Written)));
    rig.advance(120 * SECOND);
    assert!(rig.is_sequential(0));
    assert!(rig.data(0).is_some_and(|zone| !rig.bad.contains_key(&ZoneId::new(zone))));
    assert!(rig.volume.stats().failed_zones > 0, "it came to that");
    assert_eq!(rig.read_now(0, 5), [1, 1, 1, 1, 0]);
    rig.flush_now();
    let geometry = rig.volume.geometry().clone();
    verify(&mut rig.disks, &geometry).unwrap();
}

/// One error of a device costs nothing: the request is sent again.
#[test]
fn a_write_that_fails_once_is_sent_again() {
    let mut rig = Rig::new(&two_devices(), Options::default());
    rig.write_now(0, 1, 1);
    let zone = ZoneId::new(rig.data(0).unwrap());
    rig.bad.insert(zone, Bad::Read);
    let (write, read) = (rig.write(1, 2, 1), rig.submit(Request::Read { lba: 0, blocks: 1 }));
    rig.settle();
    rig.bad.insert(zone, Bad::Recovered);
    for tag in [write, read] {
        rig.wait(tag);
        assert_eq!(rig.result(tag), Some(Ok(())));
    }
    assert_eq!(rig.read_now(0, 2), [1, 2]);
}
