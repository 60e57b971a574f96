//! What a reading finds. That real file systems look like this is shown by scripts/journals.py.

use onefold_journal::{Class, Confidence, Found, System};
use onefold_units::Lba;

use crate::images::{Disk, EXT4, Ext4, btrfs, f2fs_header, gpt, mbr_entry, xfs};

/// Class, first block, blocks.
fn ranges(found: &Found) -> Vec<(&'static str, u64, u64)> {
    found.ranges.iter().map(|r| (r.class.name(), r.first.raw(), r.blocks())).collect()
}

fn remarks(found: &Found) -> Vec<&'static str> {
    found.remarks.iter().map(|remark| remark.why).collect()
}

fn ext4(ext4: &Ext4) -> Disk {
    let mut disk = Disk::new(16384);
    ext4.make(&mut disk);
    disk
}

#[test]
fn an_empty_device_has_nothing_and_a_tiny_one_is_no_error() {
    for blocks in [0, 1, 2, 16, 17, 1 << 40] {
        let found = Disk::new(blocks).survey();
        assert_eq!((ranges(&found), remarks(&found)), (vec![], vec![]), "{blocks} blocks");
    }
}

#[test]
fn ext4_by_the_backup_of_its_inode() {
    let found = ext4(&EXT4).survey();
    assert_eq!(ranges(&found), [("jlog", 1001, 1023), ("jhot", 1000, 1)]);
    assert!(found.ranges.iter().all(|range| range.confidence == Confidence::High));
    assert_eq!(found.journals.len(), 1);
    // FS header, places of other headers, journal header.
    assert_eq!(found.read_from, [0, 1, 16, 1000]);
}

#[test]
fn the_fast_commit_area_is_hot() {
    let found = ext4(&Ext4 { fast: 24, ..EXT4 }).survey();
    assert_eq!(ranges(&found), [("jlog", 1001, 999), ("jhot", 1000, 1), ("jhot", 2000, 24)]);
    let mut early = ext4(&EXT4);
    // Before its first mount only the file system says so; 0 blocks means 256.
    early.le32(1024 + 0x5C, 0x404);
    assert_eq!(ranges(&early.survey())[2], ("jhot", 2024 - 256, 256));
}

#[test]
fn small_blocks_are_rounded_outwards() {
    let small = Ext4 { block_bytes: 1024, blocks: 65536, journal: (4097, 1022), ..EXT4 };
    let found = ext4(&small).survey();
    // Header: block 4097 of 1 KiB; log: 4098 to 5118.
    assert_eq!(ranges(&found), [("jlog", 1024, 256), ("jhot", 1024, 1)]);
}

#[test]
fn without_a_backup_the_inode_is_found() {
    let mut disk = ext4(&EXT4);
    disk.write(1024 + 0xFD, &[0]);
    disk.le32(4096 + 8, 300); // inode table of group 0
    let inode = 300 * 4096 + 7 * 256;
    disk.le32(inode + 4, 1024 * 4096);
    EXT4.extents(&mut disk, inode + 0x28);
    let found = disk.survey();
    assert_eq!(ranges(&found), [("jlog", 1001, 1023), ("jhot", 1000, 1)]);
    assert!(found.ranges[0].origin.why.contains("by its inode"));
}

#[test]
fn a_classic_map_is_followed_through_its_indirect_blocks() {
    let mut disk = ext4(&EXT4);
    let map = 1024 + 0x10C;
    for n in 0..12 {
        disk.le32(map + 4 * n, 1000 + n as u32);
    }
    disk.le32(map + 48, 1012); // the indirect block lies in the middle
    for n in 0..1012 {
        disk.le32(1012 * 4096 + 4 * n, 1013 + n as u32);
    }
    let found = disk.survey();
    assert_eq!(ranges(&found), [("jlog", 1001, 11), ("jlog", 1013, 1012), ("jhot", 1000, 1)]);
    let mut hole = disk.clone();
    hole.le32(1012 * 4096 + 400, 0);
    assert_eq!(ranges(&hole.survey()), []);
    let mut twice = disk;
    twice.le32(1012 * 4096 + 400, 1002);
    assert_eq!(ranges(&twice.survey()), []);
}

/// What is broken, where and how, and what must be found then: nothing.
#[test]
fn any_inconsistency_of_ext4_means_no_range() {
    let header = EXT4.header();
    let journal = EXT4.journal_header();
    let map = header + 0x10C;
    let broken: &[(&str, u64, &[u8])] = &[
        ("magic", header + 0x38, &[0]),
        ("block size", header + 0x18, &[7]),
        ("larger than the device", header + 4, &[1, 64]),
        ("first data block", header + 0x14, &[1]),
        ("no journal", header + 0x5C, &[0]),
        ("journal elsewhere", header + 0xE0, &[0]),
        ("size of the journal", header + 0x14E, &[0xFF]),
        ("extents outside", map + 20, &[0, 60]),
        ("unwritten extent", map + 17, &[0x80 | 4]),
        ("an extent of nothing", map + 16, &[0, 0]),
        ("hole", map + 12, &[1]),
        ("depth", map + 6, &[1]),
        ("more entries than fit", map + 2, &[5]),
        ("entries beyond the inode", map + 4, &[5]),
        ("journal magic", journal, &[0]),
        ("journal block kind", journal + 7, &[1]),
        ("journal block size", journal + 0xE, &[8]),
        ("journal longer than its file", journal + 0x10, &[0, 0, 5, 0]),
        ("journal without a log", journal + 0x17, &[0]),
        ("tail outside of the log", journal + 0x1C, &[0, 0, 4, 0]),
    ];
    for (what, at, bytes) in broken {
        let mut disk = ext4(&EXT4);
        disk.write(*at, bytes);
        assert_eq!(ranges(&disk.survey()), [], "{what}");
    }
}

/// A length above 32,768 says that an extent is not written; here there is room for one of that length.
#[test]
fn an_extent_that_is_not_written_means_no_range() {
    let mut disk = Disk::new(65536);
    let large = Ext4 { blocks: 65536, ..EXT4 };
    large.make(&mut disk);
    assert_eq!(disk.survey().ranges.len(), 2);
    disk.le16(1024 + 0x10C + 16, 32768 + 1024);
    assert_eq!(ranges(&disk.survey()), []);
}

/// Nodes of an extent tree from depth 4 down to 1, each entry of which leads to the one node below. Blocks of the file grow
/// by `step` from entry to entry and by `deeper` from node to node.
fn tangled(disk: &mut Disk, step: u32, deeper: u32) {
    let root = 1024 + 0x10C;
    let node = |disk: &mut Disk, at: u64, entries: u16, depth: u16, child: u32| {
        for (offset, value) in [(0, 0xF30A), (2, entries), (4, entries), (6, depth)] {
            disk.le16(at + offset, value);
        }
        for n in 0..u32::from(entries) {
            let begin = n * step + u32::from(5 - depth) * deeper;
            disk.le32(at + 12 + 12 * u64::from(n), begin);
            disk.le32(at + 16 + 12 * u64::from(n), child);
            disk.le32(at + 20 + 12 * u64::from(n), 0);
        }
    };
    node(disk, root, 4, 5, 504);
    for depth in 1..5_u16 {
        node(disk, u64::from(500 + depth) * 4096, 340, depth, 500 + u32::from(depth) - 1);
    }
}

/// Without the rule that bounds it, this would visit 4 x 340^4 nodes.
#[test]
fn a_tree_whose_entries_all_lead_to_one_node_ends() {
    for (step, deeper) in [(0, 0), (1, 0), (1, 1000)] {
        let mut disk = ext4(&EXT4);
        tangled(&mut disk, step, deeper);
        assert_eq!(ranges(&disk.survey()), []);
    }
}

/// A journal of 1,049,612 blocks in a classic map with 1,026 blocks of its own. That no more than 1,024 are asked for is
/// asserted by the disk.
#[test]
fn a_map_of_too_many_blocks_is_given_up() {
    let mut disk = Disk::new(1 << 22);
    Ext4 { blocks: 1 << 22, ..EXT4 }.make(&mut disk);
    let map = 1024 + 0x10C;
    let pointers = |disk: &mut Disk, at: u64, count: u32, first: u32, step: u32| {
        for n in 0..count {
            disk.le32(at + 4 * u64::from(n), first + n * step);
        }
    };
    pointers(&mut disk, map, 12, 1000, 1);
    disk.le32(map + 48, 950);
    disk.le32(map + 52, 900);
    disk.le64(map + 60, 1); // 4 GiB and a half, high word first
    disk.le32(map + 64, 12 << 20);
    pointers(&mut disk, 950 * 4096, 1024, 1012, 1);
    pointers(&mut disk, 900 * 4096, 1024, 10_000, 7);
    let found = disk.survey();
    assert_eq!(ranges(&found), []);
    assert!(!found.remarks.is_empty());
}

/// The root leads to a leaf of 256 extents.
#[test]
fn an_extent_tree_is_followed() {
    let mut disk = ext4(&EXT4);
    let (root, leaf) = (1024 + 0x10C, 700 * 4096);
    for (at, depth, entries) in [(root, 1, 1), (leaf, 0, 256)] {
        for (offset, value) in
            [(0, 0xF30A), (2, entries), (4, if depth == 1 { 4 } else { 340 }), (6, depth)]
        {
            disk.le16(at + offset, value);
        }
    }
    disk.write(root + 12, &[0; 12]);
    disk.le32(root + 16, 700);
    for n in 0..256_u32 {
        let at = leaf + 12 + 12 * u64::from(n);
        disk.le32(at, n * 4);
        disk.le16(at + 4, 4);
        disk.le32(at + 8, 1000 + n * 5);
    }
    let found = disk.survey();
    assert_eq!(found.ranges.len(), 257, "256 pieces and the header");
    assert_eq!(found.ranges[255].first, Lba::new(1000 + 255 * 5));
    // The index does not say where the leaf begins.
    disk.le32(root + 12, 4);
    assert_eq!(ranges(&disk.survey()), []);
}

#[test]
fn an_unreadable_block_means_no_range() {
    let disk = ext4(&EXT4);
    let mut survey = onefold_journal::Survey::new(disk.blocks);
    while let Some(lba) = survey.ask() {
        survey.supply(lba, (lba != Lba::new(1000)).then_some(&disk.read(lba)));
    }
    let found = survey.finish().unwrap();
    assert_eq!(ranges(&found), []);
    assert!(!found.remarks.is_empty());
}

#[test]
fn an_external_journal_counts_from_the_start_of_its_device() {
    let mut disk = Disk::new(16384);
    disk.le16(1024 + 0x38, 0xEF53);
    disk.le32(1024 + 0x04, 16384);
    disk.le32(1024 + 0x18, 2);
    disk.le32(1024 + 0x60, 8);
    let mut block = Ext4 { journal: (1, 16384), start: 5, ..EXT4 }.journal_block();
    block[0x17] = 2;
    disk.write(4096, &block);
    assert_eq!(ranges(&disk.survey()), [("jlog", 2, 16382), ("jhot", 1, 1)]);
}

#[test]
fn xfs_has_a_log_in_a_group_or_elsewhere() {
    let mut disk = Disk::new(16384);
    xfs(&mut disk, 0);
    let first = 4 * 2000 + 10;
    assert_eq!(ranges(&disk.survey()), [("jlog", first, 512)]);
    let broken: &[(&str, u64, &[u8])] = &[
        ("being made", 126, &[1]),
        ("block size", 6, &[0x11]),
        ("larger than the device", 13, &[0xFF]),
        ("in a group that is not there", 54, &[0x40]),
        ("across the end of its group", 54, &[0x27]),
        ("groups that do not fit", 124, &[10]),
        ("a shift beyond numbers", 124, &[200]),
        ("no log", 98, &[0]),
    ];
    for (what, at, bytes) in broken {
        let mut disk = disk.clone();
        disk.write(*at, bytes);
        assert_eq!(ranges(&disk.survey()), [], "{what}");
    }
    disk.write(48, &[0; 8]);
    let found = disk.survey();
    assert_eq!((ranges(&found), remarks(&found)), (vec![], vec!["its log is on another device"]));
}

#[test]
fn f2fs_by_either_header() {
    let areas = [("meta_hot", 512, 1024), ("meta_hot", 1536, 1024), ("meta_hot", 2560, 1024)];
    let mut disk = Disk::new(16384);
    f2fs_header(&mut disk, 1024);
    f2fs_header(&mut disk, 5120);
    assert_eq!(ranges(&disk.survey()), areas);
    disk.le32(1024 + 80, 1537);
    assert_eq!(ranges(&disk.survey()), areas, "the copy counts");
    disk.le32(5120 + 80, 1537);
    assert_eq!(ranges(&disk.survey()), []);
}

#[test]
fn btrfs_has_headers_that_lie_on_the_device() {
    let mut disk = Disk::new(32768);
    btrfs(&mut disk, 0);
    let found = disk.survey();
    assert_eq!(ranges(&found), [("meta_hot", 16, 1), ("meta_hot", 16384, 1)]);
    assert_eq!(found.remarks.len(), 1, "log trees move");
    disk.le64(65536 + 48, 1 << 20);
    assert_eq!(ranges(&disk.survey()), []);
}

#[test]
fn partitions_of_a_gpt() {
    let mut disk = Disk::new(65536);
    gpt(&mut disk, &[(2048, 2048 + 131_071), (139_264 + 3, 139_264 + 131_074)]);
    Ext4 { at: 1 << 20, ..EXT4 }.make(&mut disk);
    xfs(&mut disk, (139_264 + 3) * 512);
    let found = disk.survey();
    assert_eq!(
        ranges(&found),
        // The second does not begin on a whole block.
        [("jlog", 1257, 1023), ("jhot", 1256, 1), ("jlog", 17408 + 8010, 513)]
    );
    assert_eq!(found.ranges[0].origin.at, 1 << 20);
    let mut torn = disk.clone();
    torn.write(1024 + 32, &[1]);
    assert_eq!(remarks(&torn.survey()), ["the checksum of its entries is wrong"]);
    let mut torn = disk;
    torn.write(512 + 40, &[1]);
    assert_eq!(remarks(&torn.survey()), ["the checksum of its header is wrong"]);
}

#[test]
fn partitions_of_an_mbr_and_a_chain_that_bites_its_tail() {
    let mut disk = Disk::new(65536);
    mbr_entry(&mut disk, 0, 0, 0x83, 2048, 131_072);
    mbr_entry(&mut disk, 0, 1, 0x05, 140_000, 300_000);
    let link = 140_000 * 512;
    mbr_entry(&mut disk, link, 0, 0x83, 2048, 131_072);
    mbr_entry(&mut disk, link, 1, 0x05, 140_000, 1000);
    let second = (140_000 + 140_000) * 512;
    mbr_entry(&mut disk, second, 1, 0x05, 0, 1000); // back to the first link
    Ext4 { at: 1 << 20, ..EXT4 }.make(&mut disk);
    xfs(&mut disk, link + (1 << 20));
    let found = disk.survey();
    let classes: Vec<_> = ranges(&found).into_iter().map(|range| range.0).collect();
    assert_eq!(classes, ["jlog", "jhot", "jlog"]);
    assert_eq!(found.ranges[2].origin.at, link + (1 << 20));
}

#[test]
fn what_hides_its_content_is_named() {
    for (at, magic) in
        [(512, &b"LABELONE"[..]), (0, b"LUKS\xBA\xBE"), (4096, b"\xFC\x4E\x2B\xA9\x01")]
    {
        let mut disk = Disk::new(16384);
        disk.write(at, magic);
        disk.write(at + 24, b"LVM2 001");
        let found = disk.survey();
        assert_eq!(found.remarks.len(), 1);
        assert_eq!(found.remarks[0].system, System::Hidden);
    }
}

#[test]
fn of_two_file_systems_in_one_place_neither_is_sure() {
    let mut disk = ext4(&EXT4);
    xfs(&mut disk, 0);
    let found = disk.survey();
    assert_eq!(found.ranges.len(), 3);
    assert!(found.ranges.iter().all(|range| range.confidence == Confidence::Medium));
    assert!(found.ranges.iter().any(|range| range.class == Class::JournalHot));
}
