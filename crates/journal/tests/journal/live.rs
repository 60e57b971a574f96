//! What the detector does while the host writes.

use onefold_journal::{Class, Setting};
use onefold_units::Lba;

use crate::images::{Disk, EXT4, Ext4, xfs};
use crate::rig::Rig;

fn ext4(ext4: &Ext4) -> Rig {
    let mut disk = Disk::new(16384);
    ext4.make(&mut disk);
    Rig::new(disk, Setting::Detect)
}

fn is_behind_tail(rig: &Rig, blocks: impl IntoIterator<Item = u64>) -> Vec<bool> {
    blocks.into_iter().map(|block| rig.detector.is_behind_tail(Lba::new(block))).collect()
}

#[test]
fn a_file_system_made_later_is_found() {
    let mut rig = Rig::new(Disk::new(16384), Setting::Detect);
    assert_eq!(rig.class(1500), None);
    let mut made = Disk::new(16384);
    EXT4.make(&mut made);
    for (lba, block) in made.kept {
        rig.write(lba * 4096, &block);
    }
    assert_eq!(rig.class(1500), None, "not before it settles");
    rig.wait(2);
    assert_eq!((rig.class(999), rig.class(1000)), (None, Some(Class::JournalHot)));
    assert_eq!((rig.class(1500), rig.class(2024)), (Some(Class::JournalLog), None));
    assert_eq!(rig.changes, 1);
}

#[test]
fn another_mkfs_and_a_moved_journal_replace_what_was_found() {
    let mut rig = ext4(&EXT4);
    Ext4 { journal: (3000, 1024), ..EXT4 }.make(&mut rig.disk);
    let header = rig.disk.read(Lba::new(0));
    rig.write(0, &header);
    rig.wait(2);
    assert_eq!((rig.class(1500), rig.class(3500)), (None, Some(Class::JournalLog)));
    rig.write(1024, &[0; 1024]);
    let mut made = Disk::new(16384);
    xfs(&mut made, 0);
    let header = made.read(Lba::new(0));
    rig.write(0, &header);
    rig.wait(2);
    assert_eq!((rig.class(3500), rig.class(8100)), (None, Some(Class::JournalLog)));
}

#[test]
fn a_device_that_is_trimmed_has_no_journal_any_more() {
    let mut rig = ext4(&EXT4);
    rig.detector.handle_trim(rig.now, 17 * 4096, 900 * 4096);
    rig.disk.kept.clear();
    rig.wait(2);
    assert_eq!(rig.class(1500), Some(Class::JournalLog), "nothing that was read is trimmed");
    rig.detector.handle_trim(rig.now, 0, 64 << 20);
    rig.wait(2);
    assert_eq!(rig.class(1500), None);
}

#[test]
fn a_write_to_a_block_of_the_map_is_noticed() {
    let mut disk = Disk::new(16384);
    EXT4.make(&mut disk);
    disk.write(1024 + 0xFD, &[0]);
    disk.le32(4096 + 8, 300);
    disk.le32(300 * 4096 + 7 * 256 + 4, 1024 * 4096);
    EXT4.extents(&mut disk, 300 * 4096 + 7 * 256 + 0x28);
    let mut rig = Rig::new(disk, Setting::Detect);
    assert_eq!(rig.class(1500), Some(Class::JournalLog));
    rig.write(300 * 4096, &[0; 4096]);
    rig.wait(2);
    assert_eq!(rig.class(1500), None);
}

#[test]
fn nothing_is_read_again_for_data_and_for_a_moving_tail() {
    let mut rig = ext4(&Ext4 { start: 1, ..EXT4 });
    let reads = rig.reads;
    for start in 2..200 {
        rig.write(4096 * (1000 + u64::from(start)), &[7; 4096]);
        let header = Ext4 { start, ..EXT4 }.journal_block();
        rig.write(EXT4.journal_header(), &header);
        rig.write(4096 * 5000, &[7; 8192]);
        rig.wait(1);
    }
    assert_eq!(rig.reads, reads);
    let tails: Vec<u64> = rig.detector.tails().map(Lba::raw).collect();
    assert_eq!(tails, [1000 + 199]);
    // A header that says something else is read.
    let mut other = Ext4 { start: 5, ..EXT4 }.journal_block();
    other[0x13] = 0xF0;
    rig.write(EXT4.journal_header(), &other);
    rig.wait(2);
    assert!(rig.reads > reads);
}

#[test]
fn what_is_behind_the_tail_is_known_lap_by_lap() {
    let mut rig = ext4(&EXT4);
    // Empty: nothing in it is needed.
    assert_eq!(
        is_behind_tail(&rig, [999, 1000, 1001, 2023, 2024]),
        [false, false, true, true, false]
    );
    let tail = |rig: &mut Rig, start| {
        rig.write(EXT4.journal_header(), &Ext4 { start, ..EXT4 }.journal_block());
    };
    tail(&mut rig, 1);
    rig.write(1001 * 4096, &vec![7; 10 * 4096]);
    assert_eq!(is_behind_tail(&rig, [1001, 1010, 1011, 2023]), [false, false, true, true]);
    tail(&mut rig, 6);
    assert_eq!(
        is_behind_tail(&rig, [1001, 1005, 1006, 1010, 1011]),
        [true, true, false, false, true]
    );
    // Around the end of the ring.
    tail(&mut rig, 1020);
    rig.write(2020 * 4096, &[7; 4 * 4096]);
    rig.write(1001 * 4096, &[7; 2 * 4096]);
    assert_eq!(
        is_behind_tail(&rig, [2019, 2020, 2023, 1001, 1002, 1003]),
        [true, false, false, false, false, true]
    );
}

#[test]
fn xfs_names_its_tail_in_every_record() {
    let mut disk = Disk::new(16384);
    xfs(&mut disk, 0);
    let mut rig = Rig::new(disk, Setting::Detect);
    let log = 8010;
    assert_eq!(is_behind_tail(&rig, [log, log + 100]), [false, false], "not known yet");
    let mut record = vec![0_u8; 4096];
    for (at, value) in
        [(0, 0xFEED_BABE), (4, 3), (8, 2), (12, 3584), (16, 3), (20, 800), (24, 3), (28, 80)]
    {
        record[at..at + 4].copy_from_slice(&u32::to_be_bytes(value));
    }
    rig.write((log + 100) * 4096, &record);
    let tails: Vec<u64> = rig.detector.tails().map(Lba::raw).collect();
    assert_eq!(tails, [log + 10]);
}

#[test]
fn a_journal_that_is_not_in_use_is_data_until_it_is_used_again() {
    let mut rig = ext4(&EXT4);
    rig.wait(59);
    assert_eq!(rig.class(1500), Some(Class::JournalLog));
    rig.wait(2);
    assert_eq!((rig.class(1500), rig.class(1000)), (None, None));
    rig.write(EXT4.journal_header(), &Ext4 { start: 3, ..EXT4 }.journal_block());
    assert_eq!(rig.class(1500), Some(Class::JournalLog));
    // In use, it stays one however quiet it is.
    rig.wait(600);
    assert_eq!(rig.class(1500), Some(Class::JournalLog));
}

#[test]
fn a_write_while_it_reads_makes_it_read_again() {
    let mut disk = Disk::new(16384);
    EXT4.make(&mut disk);
    let mut detector =
        onefold_journal::Detector::new(16384, Setting::Detect, onefold_units::Nanos::ZERO);
    let mut held = Vec::new();
    while let Some(onefold_journal::Output::Read(lba)) = detector.poll_output() {
        held.push((lba, disk.read(lba)));
    }
    let mut rig = Rig { disk, detector, now: onefold_units::Nanos::ZERO, reads: 0, changes: 0 };
    // The file system goes away after its header was read and before the answer comes.
    rig.write(0, &[0; 4096]);
    for (lba, block) in held {
        rig.detector.handle_read(rig.now, lba, Some(&block));
    }
    rig.run();
    assert_eq!(rig.class(1500), Some(Class::JournalLog));
    rig.wait(2);
    assert_eq!(rig.class(1500), None);
}

#[test]
fn the_user_decides() {
    let mut disk = Disk::new(16384);
    EXT4.make(&mut disk);
    let mut off = Rig::new(disk.clone(), Setting::parse("off").unwrap());
    off.write(0, &[0; 4096]);
    off.wait(100);
    assert_eq!((off.class(1500), off.reads, off.detector.poll_timeout()), (None, 0, None));
    let given = Rig::new(disk, Setting::parse("8MiB-12MiB,60MiB-1TiB").unwrap());
    assert_eq!(given.reads, 0);
    assert_eq!(
        (given.class(1500), given.class(2047), given.class(3071)),
        (None, None, Some(Class::JournalLog))
    );
    assert_eq!((given.class(2048), given.class(3072)), (Some(Class::JournalLog), None));
    assert_eq!(given.detector.ranges()[1].end, Lba::new(16384), "cut at the end of the device");
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for text in ["", "on", "1-", "-1", "1", "a-b", "1 Ki-2KiB", "1-2,", "0-99999999999TiB", "1-2-3"]
    {
        let error = Setting::parse(text).unwrap_err().to_string();
        assert!(error.contains("expected `auto`, `off`"), "{text:?}: {error}");
    }
    assert!(Setting::parse("4KiB-4096").unwrap_err().to_string().contains("is empty"));
    let many = vec!["1-2"; 65].join(",");
    assert!(Setting::parse(&many).unwrap_err().to_string().contains("at most 64"));
}
