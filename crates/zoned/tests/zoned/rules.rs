//! Z3: the rules of zoned.md section 3, one by one.

use onefold_zoned::{
    Action, DeviceZones, Failure, Io, IoKind, Options, Request, Sent, WaitReason, ZoneKind,
};

use crate::rig::{MS, Rig, SECOND, formatted, one_device, two_devices};

/// The set-up of the paper with zones of 64 MiB, in smaller zones: 14 cache, 47 free, 16 reserved sequential zones.
fn fourteen() -> Rig {
    let devices = [
        DeviceZones { conventional: 16, sequential: 0 },
        DeviceZones { conventional: 0, sequential: 64 },
    ];
    Rig::with_zones(128, &devices, Options::default())
}

/// The same with zones of 128 MiB: 6 cache, 24 free, 7 reserved sequential zones.
fn six() -> Rig {
    six_with(Options::default())
}

fn six_with(options: Options) -> Rig {
    let devices = [
        DeviceZones { conventional: 8, sequential: 0 },
        DeviceZones { conventional: 0, sequential: 32 },
    ];
    Rig::with_zones(64, &devices, options)
}

fn rig() -> Rig {
    Rig::new(&two_devices(), Options::default())
}

fn started(rig: &Rig) -> u64 {
    Action::ALL.iter().map(|action| rig.volume.stats().reclaims(*action).started).sum()
}

#[test]
fn the_worked_examples_have_these_zones() {
    for (rig, expected) in [(fourteen(), (62, 14, 47, 16)), (six(), (31, 6, 24, 7))] {
        let volume = &rig.volume;
        let free = |kind| volume.free_zones(kind);
        let reserved = volume.free_reserved();
        let found =
            (volume.layout().chunks, free(ZoneKind::Cache), free(ZoneKind::Sequential), reserved);
        assert_eq!(found, expected);
    }
}

#[test]
fn unmapped_chunks_read_as_zeroes_and_discards_of_them_do_nothing() {
    let mut rig = rig();
    assert_eq!(rig.read_now(3, 20), [0; 20]);
    rig.discard_now(0, 32);
    assert_eq!(rig.disks.0[0].counters, crate::disk::Counters::default());
    assert_eq!(rig.data(0), None);
}

#[test]
fn requests_are_cut_at_the_ends_of_chunks() {
    let mut rig = rig();
    rig.write_now(10, 7, 30);
    assert_eq!((rig.data(0), rig.data(1), rig.data(2)), (Some(4), Some(5), Some(6)));
    assert_eq!(rig.sent(0, Sent::User), 30);
    assert_eq!(rig.read_now(9, 32), [vec![0], vec![7; 30], vec![0]].concat());
}

#[test]
fn requests_outside_are_refused() {
    let mut rig = rig();
    let end = rig.blocks();
    for (lba, blocks) in [(end, 1), (end - 1, 2), (u64::MAX, 1), (0, 0)] {
        let refused = rig.volume.submit(rig.now, 9, Request::Read { lba, blocks });
        assert!(refused.is_err(), "{lba} + {blocks}");
    }
    let request = Request::Write { lba: 0, blocks: 2, fua: false, data: vec![0; 4096] };
    assert!(rig.volume.submit(rig.now, 9, request).is_err());
}

#[test]
fn free_zones_are_taken_oldest_first_and_a_freed_one_is_the_last() {
    let mut rig = rig();
    rig.fill_chunks(0..2);
    assert_eq!((rig.data(0), rig.data(1)), (Some(4), Some(5)));
    rig.discard_now(0, 1);
    assert_eq!(rig.data(0), None, "a data zone of weight 0 is freed");
    rig.flush_now();
    rig.fill_chunks(2..4);
    assert_eq!((rig.data(2), rig.data(3)), (Some(6), Some(7)));
    let order: Vec<Option<u32>> = (4..7)
        .map(|chunk| {
            rig.write_now(rig.at(chunk, 0), 9, 1);
            rig.data(chunk.try_into().unwrap())
        })
        .collect();
    assert_eq!(order, [Some(8), Some(9), Some(4)]);
}

/// Invariant 4: what the stored map points to is neither reset nor used for anything else.
#[test]
fn a_zone_that_was_given_back_is_not_used_before_metadata_says_so() {
    let mut rig = rig();
    rig.fill_chunks(0..1);
    rig.flush_now();
    rig.discard_now(0, 1);
    assert_eq!(rig.volume.free_zones(ZoneKind::Cache), 5);
    rig.flush_now();
    assert_eq!(rig.volume.free_zones(ZoneKind::Cache), 6);
    let mut rig = Rig::new(&two_devices(), Options { kernel_flush: true, ..Options::default() });
    rig.fill_chunks(0..1);
    rig.discard_now(0, 1);
    assert_eq!(rig.volume.free_zones(ZoneKind::Cache), 6, "the kernel uses it at once");
}

#[test]
fn with_14_cache_zones_reclaim_starts_when_4_are_free() {
    let mut rig = fourteen();
    rig.fill_chunks(0..10);
    assert_eq!((rig.volume.free_zones(ZoneKind::Cache), started(&rig)), (4, 0));
    rig.fill_chunks(10..11);
    assert_eq!(started(&rig), 2, "28 % were free when a zone was asked for, and after one reclaim");
    let moved: Vec<u32> = (0..11).filter(|chunk| rig.is_sequential(*chunk)).collect();
    assert_eq!(moved, [0, 1], "the least recently used ones go first");
}

#[test]
fn with_6_cache_zones_reclaim_starts_when_1_is_free() {
    let mut rig = six();
    rig.fill_chunks(0..5);
    assert_eq!((rig.volume.free_zones(ZoneKind::Cache), started(&rig)), (1, 0));
    rig.fill_chunks(5..6);
    assert!(started(&rig) > 0, "one zone is as good as none");
}

#[test]
fn one_free_zone_is_as_good_as_none() {
    let devices = [
        DeviceZones { conventional: 5, sequential: 0 },
        DeviceZones { conventional: 0, sequential: 12 },
    ];
    let mut rig = Rig::with_zones(64, &devices, Options::default());
    rig.fill_chunks(0..2);
    assert_eq!((rig.volume.free_zones(ZoneKind::Cache), started(&rig)), (1, 0));
    rig.fill_chunks(2..3);
    assert!(started(&rig) > 0, "although it is a third of them");
}

#[test]
fn thirty_percent_is_little_enough() {
    let devices = [
        DeviceZones { conventional: 12, sequential: 0 },
        DeviceZones { conventional: 0, sequential: 48 },
    ];
    let mut rig = Rig::with_zones(64, &devices, Options::default());
    rig.fill_chunks(0..7);
    assert_eq!((rig.volume.free_zones(ZoneKind::Cache), started(&rig)), (3, 0));
    rig.fill_chunks(7..8);
    assert!(started(&rig) > 0);
}

#[test]
fn every_request_makes_its_zone_the_most_recently_used() {
    let mut rig = fourteen();
    rig.fill_chunks(0..10);
    rig.read_now(0, 1);
    rig.discard_now(rig.at(1, 5), 1);
    rig.write_now(rig.at(2, 9), 50, 1);
    rig.fill_chunks(10..11);
    assert!(rig.is_sequential(3));
    assert!((0..3).all(|chunk| !rig.is_sequential(chunk)));
}

#[test]
fn a_device_is_idle_after_ten_seconds_without_requests_to_its_own_data_zones() {
    let mut rig = rig();
    for _ in 0..9 {
        rig.write_now(0, 1, 1);
        rig.advance(SECOND);
    }
    rig.advance(999 * MS);
    assert_eq!(started(&rig), 0);
    rig.write_now(0, 2, 1);
    rig.advance(2 * MS);
    assert!(rig.is_sequential(0), "traffic to cache zones leaves the zoned device idle");
    rig.read_now(0, 1);
    rig.write_now(rig.at(1, 0), 3, 1);
    for _ in 0..15 {
        rig.read_now(0, 1);
        rig.advance(SECOND);
    }
    assert!(!rig.is_sequential(1), "a data zone on the device was used");
    rig.advance(20 * SECOND);
    assert!(rig.is_sequential(1));
    assert_eq!(rig.read_now(0, 1), [2]);
}

#[test]
fn holes_up_to_the_last_valid_block_are_written_with_zeroes() {
    let mut rig = rig();
    rig.write_now(3, 1, 2);
    rig.write_now(9, 2, 1);
    rig.advance(11 * SECOND);
    assert_eq!((rig.sent(1, Sent::ZeroFill), rig.sent(1, Sent::RndData)), (7, 3));
    assert_eq!(rig.disks.0[1].written(11 - 1), 10, "after nine reserved zones");
    assert_eq!(rig.read_now(0, 11), [0, 0, 0, 1, 1, 0, 0, 0, 0, 2, 0]);
    let reclaims = rig.volume.stats().reclaims(Action::RndData);
    assert_eq!((reclaims.started, reclaims.completed, reclaims.started_weight), (1, 1, 3));
}

/// A chunk whose first four blocks lie in a sequential zone.
fn sequential_chunk(options: Options) -> Rig {
    let mut rig = Rig::new(&two_devices(), options);
    rig.write_now(0, 1, 4);
    rig.advance(11 * SECOND);
    assert!(rig.is_sequential(0));
    rig
}

#[test]
fn a_write_at_the_write_pointer_goes_to_the_sequential_zone() {
    let mut rig = sequential_chunk(Options::default());
    rig.write_now(4, 2, 3);
    assert_eq!((rig.buffer(0), rig.sent(1, Sent::User)), (None, 3));
    rig.write_now(8, 3, 1);
    assert_eq!(rig.buffer(0), Some(5), "any other one goes to a buffer zone");
    rig.write_now(2, 4, 1);
    assert_eq!(rig.read_now(0, 10), [1, 1, 4, 1, 2, 2, 2, 0, 3, 0]);
    rig.write_now(7, 5, 3);
    assert_eq!(rig.read_now(6, 5), [2, 5, 5, 5, 0], "it replaces what the buffer had");
    rig.discard_now(2, 1);
    assert_eq!(rig.buffer(0), None, "a buffer of weight 0 is freed at once");
}

#[test]
fn a_buffer_behind_the_write_pointer_is_appended() {
    let mut rig = sequential_chunk(Options::default());
    rig.write_now(6, 2, 1);
    rig.write_now(9, 3, 2);
    rig.advance(21 * SECOND);
    assert_eq!((rig.sent(1, Sent::Buf), rig.sent(1, Sent::ZeroFill)), (3, 4));
    assert_eq!((rig.is_sequential(0), rig.buffer(0)), (true, None));
    assert_eq!(rig.read_now(0, 12), [1, 1, 1, 1, 0, 0, 2, 0, 0, 3, 3, 0]);
}

#[test]
fn a_sequential_zone_moves_into_a_buffer_that_overwrites_it() {
    let mut rig = sequential_chunk(Options::default());
    let old = rig.data(0);
    rig.write_now(1, 2, 1);
    rig.write_now(9, 3, 1);
    rig.fill_chunks(1..2);
    rig.advance(12 * SECOND);
    let moved = rig.volume.stats().reclaims(Action::SeqData);
    assert_eq!((moved.completed, rig.sent(0, Sent::SeqData)), (1, 3));
    assert_eq!(rig.volume.stats().devices[1].resets, 1);
    assert_ne!(rig.data(0), old);
    assert_eq!(rig.read_now(0, 10), [1, 2, 1, 1, 0, 0, 0, 0, 0, 3]);
}

/// Begins the reclaim of chunk 0 and stops at the first write of its valid blocks.
fn reclaiming(writes: &[(u64, u32)]) -> Rig {
    let mut rig = rig();
    for (op, (lba, blocks)) in (1..).zip(writes) {
        rig.write_now(*lba, op, *blocks);
    }
    rig.run_idle();
    rig.run_until(|io| io.kind == IoKind::Read);
    rig
}

#[test]
fn reclaim_is_aborted_between_runs_and_all_of_it_is_lost() {
    let mut rig = reclaiming(&[(4, 2), (9, 1)]);
    let tag = rig.write(0, 9, 1);
    rig.settle();
    assert_eq!(rig.result(tag), Some(Ok(())));
    let reclaims = rig.volume.stats().reclaims(Action::RndData);
    assert_eq!((reclaims.started, reclaims.aborted), (2, 1), "the worker begins again at once");
    let aborted = [Sent::AbortedValid, Sent::AbortedZero].map(|cause| rig.sent(1, cause));
    assert_eq!(aborted, [2, 4]);
    assert_eq!([Sent::RndData, Sent::ZeroFill].map(|cause| rig.sent(1, cause)), [4, 6]);
    assert_eq!(rig.volume.stats().devices[1].resets, 1, "the target is freed");
    assert_eq!(rig.volume.stats().waits(WaitReason::Reclaim).count, 1);
    assert_eq!(rig.read_now(0, 10), [9, 0, 0, 0, 1, 1, 0, 0, 0, 2]);
}

/// The highest chunk is the first that waits; all of them ask again each second.
/// The order in which writes to chunks are answered that wait for zones.
fn served(mut rig: Rig, chunks: &[u64]) -> Vec<u64> {
    let waiting: Vec<_> =
        chunks.iter().map(|chunk| (*chunk, rig.write(rig.at(*chunk, 0), 1, 1))).collect();
    let mut served = Vec::new();
    while served.len() < waiting.len() {
        for _ in 0..rig.under_way().min(3) {
            rig.complete(0);
        }
        if rig.volume.poll_timeout().is_some() {
            rig.tick();
        }
        let is_new =
            |(chunk, tag): &&(u64, u64)| rig.result(*tag).is_some() && !served.contains(chunk);
        served.extend(waiting.iter().filter(is_new).map(|(chunk, _)| *chunk).collect::<Vec<_>>());
    }
    assert!(rig.volume.stats().waits(WaitReason::FreeZone).count > 10);
    served
}

#[test]
fn a_zone_that_becomes_free_goes_to_who_waits_longest() {
    let chunks: Vec<u64> = (10..22).rev().collect();
    assert_eq!(served(six(), &chunks), chunks);
    // Where a zone is free as soon as it is unmapped, those are asked in the order in which they fell asleep again.
    let options = Options { kernel_flush: true, ..Options::default() };
    assert_eq!(served(six_with(options), &chunks), chunks);
}

#[test]
fn reads_wait_for_reclaim_too_and_a_run_to_the_end_is_not_aborted() {
    let mut rig = reclaiming(&[(3, 13)]);
    let tag = rig.submit(Request::Read { lba: 3, blocks: 1 });
    assert_eq!(rig.result(tag), None);
    for _ in 0..3 {
        rig.tick();
        assert_eq!(rig.result(tag), None);
    }
    let waits = rig.volume.stats().waits(WaitReason::Reclaim);
    assert_eq!((waits.count, waits.ns), (3, 3 * SECOND), "a second each, then again");
    rig.settle();
    let reclaims = rig.volume.stats().reclaims(Action::RndData);
    assert_eq!((reclaims.completed, reclaims.aborted), (1, 0));
    assert_eq!(rig.result(tag), Some(Ok(())));
}

#[test]
fn a_single_run_before_the_end_is_aborted_after_it() {
    let mut rig = reclaiming(&[(0, 5)]);
    rig.submit(Request::Read { lba: 3, blocks: 1 });
    rig.settle();
    assert_eq!(rig.volume.stats().reclaims(Action::RndData).aborted, 1);
    assert_eq!(rig.sent(1, Sent::AbortedValid), 5);
}

#[test]
fn appending_a_buffer_is_not_aborted() {
    let mut rig = sequential_chunk(Options::default());
    rig.write_now(6, 2, 1);
    rig.write_now(9, 3, 1);
    rig.run_idle();
    rig.run_until(|io| io.kind == IoKind::Read && io.device == 0);
    let tag = rig.write(0, 9, 1);
    rig.settle();
    assert_eq!(rig.result(tag), Some(Ok(())));
    let reclaims = rig.volume.stats().reclaims(Action::Buf);
    assert_eq!((reclaims.completed, reclaims.aborted), (1, 0));
}

#[test]
fn a_reclaim_does_not_commit_while_metadata_is_flushed() {
    let mut rig = reclaiming(&[(0, 16)]);
    rig.submit(Request::Flush);
    let is_copy = |io: &Io| io.at >= 64 || io.device == 1;
    assert!(rig.under_way.iter().any(|underway| !is_copy(&underway.io)), "a flush is under way");
    rig.complete_all(is_copy);
    assert!(!rig.is_sequential(0));
    rig.settle();
    assert!(rig.is_sequential(0));
}

#[test]
fn copying_takes_three_quarters_of_the_time_unless_it_is_urgent() {
    for (chunks, rest) in [(11, 1), (13, 0)] {
        let mut rig = fourteen();
        for chunk in 0..10 {
            rig.write_now(rig.at(chunk, 0), 1, 1);
            rig.write_now(rig.at(chunk, 2), 1, 1);
        }
        for chunk in 10..chunks {
            rig.write(rig.at(chunk, 0), 1, 1);
        }
        if rest == 0 {
            // The first copy began with 28 % free; the next one finds 7 %.
            rig.run_until(|io| io.kind == IoKind::Flush);
        }
        rig.run_until(|io| io.kind == IoKind::Read);
        rig.now += onefold_units::Nanos::new(3 * MS);
        rig.complete(0);
        rig.run_until(|io| io.kind == IoKind::Write && io.device == 1);
        rig.complete(0);
        let due = rig.volume.poll_timeout().unwrap();
        let rests = due.saturating_sub(rig.now).get() == MS;
        assert_eq!(rests, rest == 1, "{due:?} at {:?}", rig.now);
    }
}

/// The share is that of dm-kcopyd, which does not write the zeroes.
#[test]
fn zeroes_are_written_without_a_rest() {
    let mut rig = fourteen();
    for chunk in 0..10 {
        rig.write_now(rig.at(chunk, 2), 1, 1);
    }
    rig.write(rig.at(10, 0), 1, 1);
    let is_copy = |io: &Io| io.kind == IoKind::Write && io.device == 1;
    rig.run_until(is_copy);
    assert_eq!(rig.under_way[0].io.blocks, 2, "the hole before the block");
    rig.now += onefold_units::Nanos::new(3 * MS);
    rig.complete(0);
    assert!(rig.under_way.iter().any(|underway| underway.io.kind == IoKind::Read), "no rest");
}

/// The volume opened again, and a minute later: everything that can be reclaimed is.
fn idle_after_opening(mut rig: Rig) -> Rig {
    rig.flush_now();
    let geometry = rig.volume.geometry().clone();
    let (mut rig, _) = Rig::mount(rig.disks, &geometry, Options::default());
    rig.advance(60 * SECOND);
    rig
}

/// As measured on the kernel target: a worker looks again after ten seconds only if it looked and found nothing to do.
#[test]
fn after_a_reclaim_only_an_allocation_makes_the_worker_look_again() {
    let mut rig = rig();
    rig.fill_chunks(0..6);
    let begun = started(&rig);
    assert!(begun > 0);
    rig.advance(60 * SECOND);
    assert_eq!(started(&rig), begun, "idle, and nobody looks");
    rig.fill_chunks(6..7);
    rig.advance(SECOND);
    assert!((0..7).all(|chunk| rig.is_sequential(chunk)));
}

#[test]
fn without_a_cache_random_zones_take_new_data() {
    let mut rig = Rig::new(&one_device(), Options::default());
    rig.fill_chunks(0..8);
    assert!(started(&rig) > 0);
    let mut rig = idle_after_opening(rig);
    assert!((0..8).all(|chunk| rig.is_sequential(chunk)));
    assert_eq!(rig.volume.free_zones(ZoneKind::Random), 4);
    for chunk in 0..8 {
        assert_eq!(rig.read_now(rig.at(chunk, 0), 2), [1 + chunk, 0]);
    }
}

#[test]
fn without_a_reserved_zone_the_oldest_buffered_sequential_zone_is_taken() {
    let mut rig = Rig::new(&one_device(), Options::default());
    rig.fill_chunks(0..8);
    let rig = idle_after_opening(rig);
    assert_eq!(rig.volume.free_reserved(), 4, "five zones are not reserved, chunks have eight");
    let (mut disks, geometry) = (rig.disks.clone(), rig.volume.geometry().clone());
    disks.0[0].offline.extend(3..7);
    let (mut rig, _) = Rig::mount(disks, &geometry, Options::default());
    assert_eq!(rig.volume.free_reserved(), 0);
    // The oldest zone in the list of random ones, which has nowhere to go.
    rig.write_now(rig.at(8, 0), 9, 1);
    for chunk in 0..3 {
        rig.write_now(rig.at(chunk, 0), 40 + chunk, 1);
    }
    rig.advance(60 * SECOND);
    let moved = rig.volume.stats().reclaims(Action::SeqData).completed;
    assert!(moved >= 3, "{moved} moved");
    for chunk in 0..3 {
        assert_eq!(rig.read_now(rig.at(chunk, 0), 1), [40 + chunk]);
    }
}

/// Z11: every chunk is written, again and again, with a volume that is as full as it can be.
#[test]
fn a_full_volume_makes_progress() {
    for devices in [two_devices(), one_device()] {
        let mut rig = Rig::new(&devices, Options { copy_blocks: 4, ..Options::default() });
        let chunks = rig.blocks() / 16;
        for round in 0..6 {
            for chunk in 0..chunks {
                let tag = rig.write(rig.at(chunk, 3 * round % 16), 1 + round, 1);
                for _ in 0..100 {
                    rig.settle();
                    if rig.result(tag).is_some() {
                        break;
                    }
                    rig.tick();
                }
                assert_eq!(rig.result(tag), Some(Ok(())), "chunk {chunk} in round {round}");
            }
        }
        for chunk in 0..chunks {
            assert_eq!(rig.read_now(rig.at(chunk, 15), 1), [6]);
        }
    }
}

/// Z11: where nothing can be freed the host is told, and does not wait for ever.
#[test]
fn without_a_zone_for_reclaim_writes_end_with_no_space() {
    let (mut disks, geometry) = formatted(16, &two_devices());
    disks.0[1].offline.extend(1..14);
    let (mut rig, _) = Rig::mount(disks, &geometry, Options::default());
    rig.fill_chunks(0..6);
    let tag = rig.write(rig.at(6, 0), 9, 1);
    rig.advance(3 * SECOND);
    assert_eq!(rig.result(tag), Some(Err(Failure::NoSpace)));
    assert_eq!(rig.read_now(rig.at(5, 0), 1), [6]);
    rig.discard_now(0, 16);
    let tag = rig.write(rig.at(6, 0), 9, 1);
    rig.settle();
    assert_eq!(rig.result(tag), Some(Ok(())), "a zone that is given back helps at once");
}

#[test]
fn restart_fills_the_lists_in_the_order_of_zones_and_chunks() {
    let mut rig = rig();
    rig.fill_chunks(0..3);
    rig.write_now(0, 7, 1);
    rig.discard_now(rig.at(1, 0), 1);
    rig.flush_now();
    let geometry = rig.volume.geometry().clone();
    let (mut rig, recovery) = Rig::mount(rig.disks, &geometry, Options::default());
    assert_eq!(recovery, onefold_zoned::Recovery::default());
    rig.fill_chunks(3..4);
    assert_eq!(rig.data(3), Some(5), "the free list begins with the first zone again");
    rig.run_idle();
    rig.run_until(|io| io.kind == IoKind::Read);
    rig.settle();
    assert!(rig.is_sequential(0), "and the LRU list with the first chunk");
}
