//! Whatever a device holds, a reading ends, takes few reads, and stays on the device; and no live block of a log is said to
//! be dead.

use onefold_journal::{Setting, Table};
use onefold_units::Lba;
use proptest::prelude::*;

use crate::images::{Disk, EXT4, Ext4, btrfs, f2fs_header, gpt, mbr_entry, xfs};
use crate::rig::Rig;

/// Disks that are worth breaking.
fn seed(kind: u8) -> Disk {
    let mut disk = Disk::new(65536);
    match kind % 7 {
        0 => EXT4.make(&mut disk),
        1 => {
            EXT4.make(&mut disk);
            disk.write(1024 + 0xFD, &[0]);
            disk.le32(4096 + 8, 300);
            disk.le32(300 * 4096 + 7 * 256 + 4, 1024 * 4096);
            EXT4.extents(&mut disk, 300 * 4096 + 7 * 256 + 0x28);
        }
        2 => {
            EXT4.make(&mut disk);
            for n in 0..15 {
                disk.le32(1024 + 0x10C + 4 * n, 1000 + n as u32);
            }
        }
        3 => xfs(&mut disk, 0),
        4 => f2fs_header(&mut disk, 1024),
        5 => btrfs(&mut disk, 0),
        _ => {
            gpt(&mut disk, &[(2048, 131_071), (139_267, 270_338)]);
            mbr_entry(&mut disk, 0, 1, 0x05, 140_000, 1000);
            Ext4 { at: 1 << 20, ..EXT4 }.make(&mut disk);
        }
    }
    disk
}

/// A place near something that a reading looks at.
fn place() -> impl Strategy<Value = u64> {
    let bases =
        [0, 446, 512, 1024, 1024 + 0x10C, 4096, 65536, 300 * 4096 + 7 * 256, 1000 * 4096, 1 << 20];
    (prop::sample::select(bases.to_vec()), 0..600_u64).prop_map(|(base, offset)| base + offset)
}

/// What hostile fields hold: small numbers, large ones, and blocks of the device.
fn word() -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(0),
        Just(u32::MAX),
        0..70_000_u32,
        any::<u32>(),
        Just(0xF30A),
        Just(0x0001_F30A)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_reading_of_anything_ends_and_stays_on_the_device(
        kind: u8,
        words in prop::collection::vec((place(), word(), any::<bool>()), 0..12),
    ) {
        let mut disk = seed(kind);
        for (at, word, big) in words {
            disk.write(at, &if big { word.to_be_bytes() } else { word.to_le_bytes() });
        }
        let found = disk.survey();
        for range in &found.ranges {
            prop_assert!(range.first < range.end && range.end.raw() <= disk.blocks, "{}", range);
        }
        let table = Table::new(&found.ranges);
        let mut last = 0;
        for (first, end, class) in table.iter() {
            prop_assert!(last <= first.raw() && first < end);
            prop_assert_eq!(table.span(first).class, Some(class));
            last = end.raw();
        }
        // The detector takes the same disk.
        let mut rig = Rig::new(disk, Setting::Detect);
        rig.write(1000 * 4096, &[0xC0, 0x3B, 0x39, 0x98, 0, 0, 0, 4]);
        rig.wait(100);
    }

    #[test]
    fn the_table_says_what_the_surest_range_says(
        given in prop::collection::vec((0..60_u64, 1..20_u64, 0..3_usize, 0..4_usize), 0..12),
    ) {
        use onefold_journal::{Class, Confidence, Origin, Range, System};
        let classes = [Class::MetaHot, Class::JournalLog, Class::JournalHot];
        let confidences = [Confidence::Low, Confidence::Medium, Confidence::High, Confidence::User];
        let ranges: Vec<Range> = given.iter().map(|(first, blocks, class, confidence)| Range {
            first: Lba::new(*first),
            end: Lba::new(first + blocks),
            class: classes[*class],
            confidence: confidences[*confidence],
            origin: Origin { system: System::Unknown, at: 0, why: "" },
        }).collect();
        let table = Table::new(&ranges);
        let surest = |lba| {
            let here = ranges.iter().filter(|range| range.contains(lba));
            here.max_by_key(|range| (range.confidence, range.class)).map(|range| range.class)
        };
        for block in 0..90 {
            let span = table.span(Lba::new(block));
            prop_assert_eq!(span.class, surest(Lba::new(block)));
            prop_assert!(span.end.raw() > block);
            for same in block..span.end.raw().min(90) {
                prop_assert_eq!(surest(Lba::new(same)), span.class);
            }
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// The model keeps the live blocks of a ring: written since the tail passed them last.
    #[test]
    fn no_live_block_is_behind_the_tail(
        steps in prop::collection::vec((1..300_u64, 0..4_u8, any::<bool>()), 1..60),
        in_use: bool,
    ) {
        let log = 1023_u64;
        let start = u32::from(in_use);
        let mut disk = Disk::new(16384);
        Ext4 { start, ..EXT4 }.make(&mut disk);
        let mut rig = Rig::new(disk, Setting::Detect);
        // Positions that do not wrap; after an attach in use all of the ring may be live.
        let (mut tail, mut head) = (0_u64, if in_use { log } else { 0 });
        let mut is_empty = !in_use;
        for (count, share, header_first) in steps {
            let room = log - (head - tail);
            let blocks = count.min(room);
            let header = |tail: u64| Ext4 { start: (tail % log) as u32 + 1, ..EXT4 }.journal_block();
            if is_empty && header_first {
                rig.write(EXT4.journal_header(), &header(tail));
            }
            for n in head..head + blocks {
                rig.traffic((1001 + n % log) * 4096, 4096, None, false);
            }
            head += blocks;
            tail += (head - tail) * u64::from(share) / 3;
            if tail == head && share == 3 && count % 2 == 0 {
                let block = Ext4 { start: 0, ..EXT4 }.journal_block();
                rig.write(EXT4.journal_header(), &block);
                is_empty = true;
            } else {
                rig.write(EXT4.journal_header(), &header(tail));
                is_empty = false;
            }
            for live in tail..head {
                let lba = Lba::new(1001 + live % log);
                prop_assert!(!rig.detector.is_behind_tail(lba), "position {live} of {tail}..{head}");
            }
        }
    }
}
