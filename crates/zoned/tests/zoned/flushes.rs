//! Z6: which device is flushed when.

use onefold_zoned::{Action, Options, Request, Sent};

use crate::oracle::stamped;
use crate::rig::{Rig, SECOND, two_devices};
use crate::verify::verify;

fn rig(kernel_flush: bool) -> Rig {
    Rig::new(&two_devices(), Options { kernel_flush, ..Options::default() })
}

fn flushes(rig: &Rig) -> [u64; 2] {
    [0, 1].map(|device| rig.disks.0[device].counters.flushes)
}

/// Twenty times a write to each of two chunks, one of which lies on the zoned device, and a FLUSH. Measured on the kernel target:
/// 80 flushes of the device with the metadata, none of the other one (zoned.md, section 3).
fn twenty_fsyncs(kernel_flush: bool) -> [u64; 2] {
    let mut rig = rig(kernel_flush);
    rig.write_now(0, 1, 4);
    rig.advance(11 * SECOND);
    assert!(rig.is_sequential(0));
    rig.flush_now();
    let before = flushes(&rig);
    for round in 0..12 {
        rig.write_now(4 + round, 2, 1);
        rig.flush_now();
    }
    for round in 0..8 {
        rig.write_now(16 + round, 2, 1);
        rig.flush_now();
    }
    let after = flushes(&rig);
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn the_kernel_flushes_only_the_device_with_the_metadata() {
    assert_eq!(twenty_fsyncs(true), [80, 0]);
}

#[test]
fn every_device_with_unflushed_data_is_flushed_before_the_first_root_record() {
    assert_eq!(twenty_fsyncs(false), [80, 12]);
}

#[test]
fn the_kernel_does_not_flush_the_zoned_device_after_reclaim() {
    for (kernel_flush, expected) in [(true, 0), (false, 1)] {
        let mut rig = rig(kernel_flush);
        rig.write_now(0, 1, 16);
        rig.flush_now();
        rig.advance(11 * SECOND);
        assert_eq!(rig.volume.stats().reclaims(Action::RndData).completed, 1);
        assert_eq!(flushes(&rig)[1], expected);
    }
}

#[test]
fn a_flush_without_dirty_metadata_is_one_flush() {
    let mut rig = rig(false);
    rig.write_now(0, 1, 1);
    rig.flush_now();
    assert_eq!((flushes(&rig), rig.volume.generation()), ([4, 0], 2));
    rig.write_now(0, 2, 1);
    rig.flush_now();
    assert_eq!((flushes(&rig), rig.volume.generation()), ([5, 0], 2));
    assert_eq!(
        rig.sent(0, Sent::Map),
        6,
        "a block of the map, of validity and of checksums, twice"
    );
    assert_eq!(rig.sent(0, Sent::Label), 2);
}

#[test]
fn metadata_is_flushed_every_ten_seconds() {
    let mut rig = rig(false);
    rig.advance(5 * SECOND);
    rig.write_now(0, 1, 1);
    rig.advance(4 * SECOND);
    assert_eq!(rig.volume.generation(), 1);
    rig.advance(SECOND);
    assert!(rig.volume.generation() > 1);
    verify(&mut rig.disks.clone(), &rig.volume.geometry().clone()).unwrap();
}

#[test]
fn fua_makes_map_and_validity_durable() {
    let mut rig = rig(false);
    let data = stamped(5, 8, 2);
    let tag = rig.submit(Request::Write { lba: 8, blocks: 2, fua: true, data });
    rig.settle();
    assert_eq!((rig.result(tag), rig.volume.generation()), (Some(Ok(())), 2));
    let disks = rig.disks.cut(&mut onefold_units::Rng::new(0));
    let geometry = rig.volume.geometry().clone();
    let (mut rig, _) = Rig::mount(disks, &geometry, Options::default());
    assert_eq!(rig.read_now(7, 4), [0, 5, 5, 0]);
}

#[test]
fn the_kernel_writes_no_metadata_for_fua() {
    let mut rig = rig(true);
    let tag = rig.submit(Request::Write { lba: 8, blocks: 2, fua: true, data: stamped(5, 8, 2) });
    rig.settle();
    assert_eq!((rig.result(tag), rig.volume.generation()), (Some(Ok(())), 1));
}

#[test]
fn a_flush_waits_for_writes_under_way_and_holds_new_ones_back() {
    let mut rig = rig(false);
    let first = rig.write(0, 1, 1);
    let flush = rig.submit(Request::Flush);
    let second = rig.write(1, 2, 1);
    assert_eq!(rig.under_way(), 1);
    rig.complete(0);
    assert!(rig.result(first).is_some() && rig.result(second).is_none());
    assert!(rig.under_way.iter().all(|underway| underway.io.at < 4 * 16), "metadata only");
    rig.settle();
    assert_eq!((rig.result(flush), rig.result(second)), (Some(Ok(())), Some(Ok(()))));
}
