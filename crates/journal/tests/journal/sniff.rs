//! Journals that are told by what is written, and how.

use onefold_journal::{Class, Confidence, Setting};

use crate::images::{Disk, EXT4, Ext4};
use crate::rig::Rig;

const BLOCKS: u64 = 1 << 20;
/// First block of the log of a jbd2 journal of 4,096 blocks.
const LOG: u64 = 100_001;
const LOG_BLOCKS: u64 = 4095;

fn jbd2_block(kind: u32, sequence: u32) -> [u8; 4096] {
    let mut block = [0; 4096];
    for (at, value) in [(0, 0xC03B_3998), (4, kind), (8, sequence)] {
        block[at..at + 4].copy_from_slice(&u32::to_be_bytes(value));
    }
    block
}

/// Writes transactions of 100 blocks into a ring from transaction `first` on.
fn transactions(rig: &mut Rig, first: u32, count: u32) {
    for sequence in first..first + count {
        let begin = u64::from(sequence) * 100;
        let at = |n: u64| (LOG + (begin + n) % LOG_BLOCKS) * 4096;
        rig.traffic(at(0), 4096, Some(&jbd2_block(1, sequence)), false);
        for n in 1..99 {
            rig.traffic(at(n), 4096, Some(&[9; 4096]), false);
        }
        rig.traffic(at(99), 4096, Some(&jbd2_block(2, sequence)), false);
        // Data elsewhere.
        rig.traffic(4096 * u64::from(sequence * 37 % 90_000), 4096, Some(&[3; 4096]), false);
    }
}

#[test]
fn a_ring_of_jbd2_blocks_is_proposed() {
    let mut rig = Rig::new(Disk::new(BLOCKS), Setting::Detect);
    transactions(&mut rig, 0, 40);
    assert!(rig.detector.ranges().is_empty(), "a ring has come round");
    transactions(&mut rig, 40, 60);
    let ranges = rig.detector.ranges();
    assert_eq!(ranges.len(), 1);
    assert_eq!((ranges[0].class, ranges[0].confidence), (Class::JournalLog, Confidence::Medium));
    assert!(ranges[0].first.raw() >= LOG && ranges[0].first.raw() < LOG + 100);
    assert!(ranges[0].end.raw() <= LOG + LOG_BLOCKS && ranges[0].blocks() > LOG_BLOCKS - 200);
}

#[test]
fn two_journals_side_by_side_are_told_by_their_numbers() {
    let mut rig = Rig::new(Disk::new(BLOCKS), Setting::Detect);
    for n in 0..4000_u32 {
        for (first, sequence) in [(LOG, n), (LOG + 10_000, 1_000_000 + n)] {
            let at = (first + u64::from(n) % 500) * 4096;
            rig.traffic(at, 4096, Some(&jbd2_block(2, sequence)), false);
        }
    }
    let mut found: Vec<_> =
        rig.detector.ranges().iter().map(|range| (range.first.raw(), range.blocks())).collect();
    found.sort_unstable();
    assert_eq!(found, [(LOG, 500), (LOG + 10_000, 500)]);
}

#[test]
fn a_journal_header_measures_the_ring() {
    let mut rig = Rig::new(Disk::new(BLOCKS), Setting::Detect);
    let journal = Ext4 { journal: (100_000, 4096), fast: 0, start: 1, ..EXT4 };
    rig.traffic((LOG - 1) * 4096, 4096, Some(&journal.journal_block()), false);
    transactions(&mut rig, 0, 100);
    assert_eq!((rig.class(LOG - 2), rig.class(LOG - 1)), (None, Some(Class::JournalHot)));
    assert_eq!(rig.class(LOG), Some(Class::JournalLog));
    assert_eq!(rig.class(LOG + LOG_BLOCKS - 1), Some(Class::JournalLog));
    assert_eq!(rig.class(LOG + LOG_BLOCKS), None);
}

#[test]
fn a_journal_that_is_copied_and_blocks_anywhere_are_none() {
    let mut rig = Rig::new(Disk::new(BLOCKS), Setting::Detect);
    for sequence in 0..2000_u32 {
        // Copied from start to end: a ring that never comes round.
        rig.traffic(
            (1000 + u64::from(sequence)) * 4096,
            4096,
            Some(&jbd2_block(1, sequence)),
            false,
        );
        // Anywhere, with numbers in order.
        let at = u64::from(sequence).wrapping_mul(7_919_113) % (BLOCKS / 2) + BLOCKS / 2;
        rig.traffic(at * 4096, 4096, Some(&jbd2_block(1, 1_000_000 + sequence)), false);
    }
    assert!(rig.detector.ranges().is_empty(), "{:?}", rig.detector.ranges());
}

fn xfs_record(cycle: u32, position: u64, len: u32) -> Vec<u8> {
    let mut record = vec![0_u8; 512 + len as usize];
    let block = (position / 512) as u32;
    let fields =
        [(0, 0xFEED_BABE), (4, cycle), (8, 2), (12, len), (16, cycle), (20, block), (24, cycle)];
    for (at, value) in fields {
        record[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }
    record
}

#[test]
fn records_of_xfs_name_their_ring() {
    let mut rig = Rig::new(Disk::new(BLOCKS), Setting::Detect);
    // The log begins off a block of 4 KiB, as behind a label of LVM it may.
    let base = 50_000 * 4096 + 1536;
    for lap in 1..3 {
        for n in 0..60_u64 {
            let record = xfs_record(lap, n * 32_768, 32_256);
            rig.traffic(base + n * 32_768, 32_768, Some(&record), false);
        }
    }
    let ranges = rig.detector.ranges();
    assert_eq!(ranges.len(), 1);
    assert_eq!((ranges[0].first.raw(), ranges[0].blocks()), (50_000, 60 * 8 + 1));
    assert_eq!(ranges[0].confidence, Confidence::Medium);
}

#[test]
fn a_proposal_that_nothing_confirms_goes() {
    let mut rig = Rig::new(Disk::new(BLOCKS), Setting::Detect);
    transactions(&mut rig, 0, 100);
    assert_eq!(rig.detector.ranges().len(), 1);
    rig.wait(600);
    assert_eq!(rig.detector.ranges().len(), 1, "nothing was written at all");
    for n in 0..300 {
        rig.traffic(n * (4 << 20), 4 << 20, None, false);
    }
    rig.wait(61);
    assert!(rig.detector.ranges().is_empty());
}

#[test]
fn a_ring_of_forced_writes_is_proposed_with_little_confidence() {
    let mut rig = Rig::new(Disk::new(BLOCKS), Setting::Detect);
    for lap in 0..4_u64 {
        for n in 0..512_u64 {
            rig.traffic((70_000 + n) * 4096, 4096, None, n % 8 == 7);
            rig.traffic(n * lap * 4096 * 97 % (1 << 28), 4096, None, n % 3 == 0);
        }
    }
    let ranges = rig.detector.ranges();
    assert_eq!(ranges.len(), 1, "{ranges:?}");
    assert_eq!((ranges[0].confidence, ranges[0].class), (Confidence::Low, Class::JournalLog));
    assert!(ranges[0].first.raw() >= 70_000 && ranges[0].end.raw() <= 70_512);
    assert!(ranges[0].blocks() > 450);
}

#[test]
fn flushes_around_a_write_force_it() {
    let mut rig = Rig::new(Disk::new(BLOCKS), Setting::Detect);
    for lap in 0..4_u64 {
        for n in 0..64_u64 {
            rig.traffic((70_000 + n * 8) * 4096, 7 * 4096, None, false);
            rig.traffic((n * 97 + lap) * 4096, 4096, None, false);
            rig.detector.handle_flush(rig.now);
            rig.traffic((70_000 + n * 8 + 7) * 4096, 4096, None, false);
            rig.detector.handle_flush(rig.now);
            // The journal header, now and then.
            if n % 16 == 9 {
                rig.traffic(69_999 * 4096, 4096, None, false);
                rig.detector.handle_flush(rig.now);
            }
        }
        assert_eq!(rig.detector.ranges().is_empty(), lap < 2, "lap {lap}");
    }
    let range = rig.detector.ranges()[0];
    assert_eq!((range.confidence, range.class), (Confidence::Low, Class::JournalLog));
    assert!(range.first.raw() >= 69_999 && range.end.raw() <= 70_512 && range.blocks() > 450);
}

#[test]
fn writes_between_flushes_that_are_not_alone_are_not_forced() {
    let mut rig = Rig::new(Disk::new(BLOCKS), Setting::Detect);
    for _ in 0..4_u64 {
        for n in 0..64_u64 {
            rig.traffic((70_000 + n * 8) * 4096, 4 * 4096, None, false);
            rig.traffic((70_000 + n * 8 + 4) * 4096, 4 * 4096, None, false);
            rig.detector.handle_flush(rig.now);
        }
    }
    assert!(rig.detector.ranges().is_empty(), "{:?}", rig.detector.ranges());
}

/// Once from start to end, and then always back before the end is reached: no ring.
#[test]
fn laps_that_leave_out_much_do_not_count() {
    let mut rig = Rig::new(Disk::new(BLOCKS), Setting::Detect);
    for lap in 0..10 {
        for n in 0..if lap == 0 { 512 } else { 300_u64 } {
            rig.traffic((70_000 + n) * 4096, 4096, None, n % 8 == 0);
        }
    }
    assert!(rig.detector.ranges().is_empty(), "{:?}", rig.detector.ranges());
}

#[test]
fn forced_writes_anywhere_are_no_ring() {
    let mut rig = Rig::new(Disk::new(BLOCKS), Setting::Detect);
    let mut random = onefold_units::Rng::new(1);
    for _ in 0..20_000 {
        rig.traffic(random.below(4096) * 4096, 4096, None, true);
    }
    assert!(rig.detector.ranges().is_empty(), "{:?}", rig.detector.ranges());
}

#[test]
fn what_was_read_is_not_sniffed_again() {
    let mut disk = Disk::new(16384);
    EXT4.make(&mut disk);
    let mut rig = Rig::new(disk, Setting::Detect);
    let before = rig.detector.ranges().to_vec();
    for lap in 0..4_u32 {
        for n in 0..1023_u64 {
            let block = jbd2_block(1, lap * 1023 + n as u32);
            rig.traffic((1001 + n) * 4096, 4096, Some(&block), true);
        }
    }
    assert_eq!(rig.detector.ranges(), before);
}
