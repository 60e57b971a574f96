//! Z9, Z10: the journal zone set in sequential zones (zoned.md, section 5).

use std::ops::Range;

use onefold_testkit::for_each_seed;
use onefold_units::Rng;
use onefold_units::convert::narrow;
use onefold_zoned::{DeviceZones, JournalMode, Options, Request, Sent, Stream, ZoneKind};

use crate::oracle::stamped;
use crate::rig::{Rig, SECOND, two_devices};
use crate::verify::verify;

/// Four chunks of six cache zones: too much for half of the cache. Five zones of log and one of the header, of 24.
const JOURNAL: Range<u64> = 16..80;

pub(crate) fn options(journal: &Range<u64>, hot: u64) -> Options {
    Options {
        journal: JournalMode::Set,
        journal_ranges: vec![journal.clone()],
        journal_hot: std::iter::once(journal.start..journal.start + hot).collect(),
        ..Options::default()
    }
}

fn copied(rig: &Rig) -> u64 {
    rig.volume.stats().sent(Sent::JournalCopied)
}

/// The version that a set of metadata has on the regular device.
fn version(rig: &Rig) -> u32 {
    let mut root = vec![0; 4096];
    rig.disks.clone().0[0].read(0, &mut root);
    u32::from_le_bytes(root[4..8].try_into().unwrap())
}

/// Writes the log of a journal round and round, each block by itself.
fn laps(rig: &mut Rig, log: Range<u64>, ops: Range<u64>) {
    for op in ops {
        for block in log.clone() {
            rig.write_now(block, op, 1);
        }
    }
}

#[test]
fn a_journal_too_large_for_the_cache_is_appended_and_not_copied() {
    let mut rig = Rig::new(&two_devices(), options(&JOURNAL, 1));
    for lap in 1..8 {
        rig.write_now(JOURNAL.start, lap, 1);
        laps(&mut rig, 17..80, lap..lap + 1);
        rig.flush_now();
    }
    assert_eq!(rig.sent(1, Sent::JournalAppended), 7 * 64);
    assert_eq!((copied(&rig), rig.volume.stats().journal_outside), (0, 0));
    assert_eq!(rig.volume.appended_blocks(), 64);
    assert_eq!(rig.volume.free_zones(ZoneKind::Cache), 6, "no chunk of it needs a zone");
    assert!((1..5).all(|chunk| rig.data(chunk).is_none()));
    assert!(rig.volume.set_zones(Stream::Log) <= 5 && rig.volume.set_zones(Stream::Hot) == 1);
    assert_eq!(rig.read_now(15, 66), [vec![0], vec![7; 64], vec![0]].concat());
    let geometry = rig.volume.geometry().clone();
    rig.flush_now();
    verify(&mut rig.disks.clone(), &geometry).unwrap();
    assert_eq!(version(&rig), 0x8000_0002, "dm-zoned refuses that");
}

/// Z10: whatever the ring, its requests, the rate of its header and the load beside it.
#[test]
fn random_rings_are_never_copied() {
    let devices = [
        DeviceZones { conventional: 16, sequential: 0 },
        DeviceZones { conventional: 0, sequential: 60 },
    ];
    for_each_seed(("onefold-zoned", "zoned", "random_rings"), 60, |seed| {
        let mut rng = Rng::new(seed);
        let start = 16 * rng.below(4) + rng.below(16);
        let journal = start..start + 49 + rng.below(110);
        let mut rig = Rig::new(&devices, options(&journal, 1));
        // What is under way fits a zone.
        let (mut at, mut op, most) = (journal.start + 1, 0, 1 + rng.below(4));
        let (headers, depth) = (rng.below(12), 1 + rng.below(4));
        let zones = (journal.end - journal.start - 1).div_ceil(16) + 1;
        while op < 600 {
            op += 1;
            if rng.below(12) < headers {
                rig.write(journal.start, op, 1);
            }
            let blocks = (1 + rng.below(most)).min(journal.end - at);
            rig.write(at, op, narrow(blocks));
            at = if at + blocks == journal.end { journal.start + 1 } else { at + blocks };
            if rng.below(3) == 0 {
                rig.write(16 * (20 + rng.below(8)) + rng.below(16), op, 1);
            }
            if rng.below(8) == 0 {
                rig.submit(Request::Flush);
            }
            while rig.volume.requests_under_way() > depth {
                rig.complete(0);
            }
            assert!(rig.volume.set_zones(Stream::Log) <= zones + 1, "seed {seed}, step {op}");
        }
        rig.settle();
        assert_eq!((copied(&rig), rig.volume.stats().journal_outside), (0, 0), "seed {seed}");
        assert!(rig.volume.set_zones(Stream::Log) <= zones, "seed {seed}");
        assert!(rig.volume.set_zones(Stream::Hot) <= 1, "seed {seed}");
    });
}

/// One half of the ring is fifteen times as fast as the other for a while: what is late does not move, as its turn will come.
#[test]
fn a_ring_out_of_step_is_not_copied() {
    let mut rig = Rig::new(&two_devices(), options(&(16..48), 0));
    laps(&mut rig, 16..48, 1..2);
    for late in 16..19 {
        rig.write_now(late, 2, 1);
        laps(&mut rig, 33..48, 2..3);
    }
    assert!(rig.volume.set_zones(Stream::Log) > 3, "more than the ring needs");
    laps(&mut rig, 19..33, 2..3);
    laps(&mut rig, 16..48, 3..5);
    assert_eq!((copied(&rig), rig.volume.stats().journal_outside), (0, 0));
    assert!(rig.volume.set_zones(Stream::Log) <= 3);
}

/// A block of the log that no lap comes to keeps its zone until the stream is at its limit; then it moves to the head.
#[test]
fn what_is_left_behind_moves_to_the_head() {
    let mut rig = Rig::new(&two_devices(), options(&JOURNAL, 1));
    rig.write_now(20, 1, 1);
    laps(&mut rig, 21..80, 2..6);
    assert!(copied(&rig) > 0 && copied(&rig) <= 4, "{}", copied(&rig));
    assert!(rig.volume.set_zones(Stream::Log) <= 5);
    assert_eq!(rig.volume.stats().devices[1].read_for_copying, copied(&rig));
    assert_eq!(rig.read_now(19, 3), [0, 1, 5]);
}

/// 50 zones: twelve of the set are less than a quarter, thirteen are more.
#[test]
fn the_set_takes_at_most_a_quarter_of_all_zones() {
    let devices = [
        DeviceZones { conventional: 20, sequential: 0 },
        DeviceZones { conventional: 0, sequential: 30 },
    ];
    for (blocks, appended) in [(10 * 16 + 1, true), (11 * 16 + 1, false)] {
        let mut rig = Rig::new(&devices, options(&(16..16 + blocks), 1));
        rig.write_now(40, 1, 4);
        assert_eq!(rig.volume.appended_blocks() > 0, appended, "{blocks}");
    }
}

/// An external journal: all of the device is one.
#[test]
fn a_journal_as_large_as_the_volume_is_left_where_it_is() {
    let mut rig = Rig::new(&two_devices(), Options::default());
    let all = 0..rig.blocks();
    rig = Rig::new(&two_devices(), options(&all, 1));
    rig.write_now(0, 1, 16);
    rig.write_now(16, 1, 16);
    rig.flush_now();
    assert_eq!((rig.volume.journal_zones(), version(&rig)), (0, 2), "more than 25 % of all zones");
    assert_eq!(rig.volume.stats().journal_outside, 32);
}

#[test]
fn the_block_map_is_found_again_when_the_volume_is_opened() {
    let mut rig = Rig::new(&two_devices(), options(&JOURNAL, 1));
    laps(&mut rig, 16..80, 1..3);
    rig.flush_now();
    laps(&mut rig, 16..30, 3..4);
    rig.flush_now();
    let geometry = rig.volume.geometry().clone();
    let disks = rig.disks.cut(&mut Rng::new(1));
    let (mut rig, recovery) = Rig::mount(disks, &geometry, options(&JOURNAL, 1));
    assert_eq!(recovery.lost_blocks, 0);
    let expected = [vec![3; 14], vec![2; 50]].concat();
    assert_eq!(rig.read_now(16, 64), expected);
    laps(&mut rig, 30..80, 4..5);
    laps(&mut rig, 16..80, 5..7);
    assert!(rig.volume.set_zones(Stream::Log) <= 5);
    assert_eq!(rig.read_now(16, 64), [6; 64]);
    rig.flush_now();
    verify(&mut rig.disks, &geometry).unwrap();
}

/// Opened without the mode, a volume gives everything back to its chunks, and is one of dm-zoned's format again.
#[test]
fn without_the_mode_the_blocks_go_back_and_the_format_is_the_kernels() {
    for mode in [JournalMode::Off, JournalMode::One] {
        let mut rig = Rig::new(&two_devices(), options(&JOURNAL, 1));
        laps(&mut rig, 16..80, 1..2);
        rig.flush_now();
        assert_eq!(version(&rig), 0x8000_0002);
        let geometry = rig.volume.geometry().clone();
        let other = Options { journal: mode, ..options(&JOURNAL, 1) };
        let (mut rig, _) = Rig::mount(rig.disks, &geometry, other);
        assert_eq!(rig.read_now(16, 64), [1; 64]);
        rig.advance(SECOND);
        rig.flush_now();
        assert_eq!((rig.volume.appended_blocks(), version(&rig)), (0, 2));
        assert_eq!(rig.volume.stats().sent(Sent::JournalReturned), 64);
        assert_eq!(rig.volume.stats().journal_demotions, 1);
        assert_eq!(rig.read_now(16, 64), [1; 64]);
        verify(&mut rig.disks, &geometry).unwrap();
    }
}

/// The detector reads the device first: until then, and for a minute, nothing is given up.
#[test]
fn a_set_waits_for_its_journal_to_be_found() {
    let mut rig = Rig::new(&two_devices(), options(&JOURNAL, 1));
    laps(&mut rig, 16..80, 1..2);
    rig.flush_now();
    let geometry = rig.volume.geometry().clone();
    let unknown = Options { journal: JournalMode::Set, ..Options::default() };
    let (mut rig, _) = Rig::mount(rig.disks, &geometry, unknown);
    rig.advance(59 * SECOND);
    assert_eq!(rig.volume.appended_blocks(), 64);
    rig.volume.set_journal(rig.now, vec![JOURNAL], std::iter::once(16..17).collect());
    rig.advance(60 * SECOND);
    assert_eq!((rig.volume.appended_blocks(), rig.volume.stats().journal_demotions), (64, 0));
    let unknown = Options { journal: JournalMode::Set, ..Options::default() };
    let (mut rig, _) = Rig::mount(rig.disks, &geometry, unknown);
    rig.advance(61 * SECOND);
    assert_eq!((rig.volume.appended_blocks(), rig.volume.stats().journal_demotions), (0, 1));
    assert_eq!(rig.read_now(16, 64), [1; 64]);
}

/// A new mkfs puts the journal elsewhere: what it has left goes back, what it keeps stays.
#[test]
fn a_journal_that_moves_leaves_its_blocks_behind() {
    let mut rig = Rig::new(&two_devices(), options(&JOURNAL, 1));
    laps(&mut rig, 16..80, 1..2);
    rig.set_journal(Some(40..100));
    rig.settle();
    assert_eq!(rig.volume.appended_blocks(), 40);
    assert_eq!(rig.volume.stats().journal_demotions, 1);
    laps(&mut rig, 40..100, 2..4);
    assert_eq!(rig.read_now(16, 84), [vec![1; 24], vec![3; 60]].concat());
    rig.set_journal(None);
    rig.advance(2 * SECOND);
    rig.flush_now();
    assert_eq!((rig.volume.appended_blocks(), rig.volume.journal_zones()), (0, 0));
    assert_eq!(rig.read_now(16, 84), [vec![1; 24], vec![3; 60]].concat());
    assert_eq!(version(&rig), 2);
}

/// The host overwrites a block while it is on its way back to its chunk: the newer one counts.
#[test]
fn a_block_that_goes_back_is_not_put_over_a_newer_one() {
    let mut rig = Rig::new(&two_devices(), options(&JOURNAL, 1));
    laps(&mut rig, 16..80, 1..2);
    rig.volume.set_journal(rig.now, Vec::new(), Vec::new());
    rig.collect();
    assert!(rig.under_way() > 0, "blocks are read");
    let tag = rig.write(16, 2, 64);
    rig.settle();
    rig.advance(3 * SECOND);
    assert_eq!(rig.result(tag), Some(Ok(())));
    assert_eq!(rig.read_now(16, 64), [2; 64]);
}

#[test]
fn what_is_discarded_in_the_set_reads_as_zeroes() {
    let mut rig = Rig::new(&two_devices(), options(&JOURNAL, 1));
    laps(&mut rig, 16..80, 1..2);
    rig.discard_now(20, 30);
    assert_eq!(rig.read_now(16, 64), [vec![1; 4], vec![0; 30], vec![1; 30]].concat());
    assert_eq!(rig.volume.appended_blocks(), 34);
    assert_eq!(rig.volume.mapped(0, 176), (false, 16));
    assert_eq!(rig.volume.mapped(16, 176), (true, 16));
    assert_eq!(rig.volume.mapped(32, 176), (false, 16), "nothing is left of that chunk");
}

/// A zone that takes no more writes: the write goes to the next one, and what the old one has can be read.
#[test]
fn a_zone_out_of_service_takes_nothing_away() {
    let mut rig = Rig::new(&two_devices(), options(&JOURNAL, 1));
    laps(&mut rig, 17..24, 1..2);
    let zone = rig.head(Stream::Log);
    rig.bad.insert(zone, crate::rig::Bad::Written);
    let data = stamped(2, 17, 20);
    let tag = rig.submit(Request::Write { lba: 17, blocks: 20, fua: false, data });
    rig.wait(tag);
    assert_eq!(rig.result(tag), Some(Ok(())));
    assert_ne!(rig.head(Stream::Log), zone);
    assert_eq!(rig.read_now(16, 22), [vec![0], vec![2; 20], vec![0]].concat());
}

/// Every chunk has data, and the journal has zones that are meant for reclaim: it still comes to an end with each request.
#[test]
fn a_full_volume_goes_on_beside_an_appended_journal() {
    let mut rig = Rig::new(&two_devices(), options(&JOURNAL, 1));
    for chunk in 0..11 {
        let tag = rig.write(rig.at(chunk, 0), 1, 16);
        rig.advance(20 * SECOND);
        assert_eq!(rig.result(tag), Some(Ok(())));
    }
    let mut rng = Rng::new(5);
    let mut newest = vec![1; 176];
    for op in 2..300 {
        let block = rng.below(176);
        let tag = rig.write(block, op, 1);
        newest[usize::try_from(block).unwrap()] = op;
        rig.advance(3 * SECOND);
        assert_eq!(rig.result(tag), Some(Ok(())), "{op}");
    }
    assert_eq!(rig.read_now(0, 176), newest);
    assert!(rig.sent(1, Sent::JournalAppended) > 0);
}
