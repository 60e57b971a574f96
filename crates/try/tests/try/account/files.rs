//! Whose bytes they are, on a real ext4.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use onefold_trace::{Record, TraceOp};
use onefold_try::account::files::{Layout, Tally};
use onefold_try::account::{Look, Owner, Owners, Snapshot};
use onefold_units::convert::u64_from;

const DISK: u64 = 64 << 20;

/// A file system in a file, mounted while it lives.
struct Mounted {
    dir: tempfile::TempDir,
}

impl Mounted {
    /// `None` where nothing can be mounted, which is said.
    fn new(mkfs: &[&str], bytes: u64) -> Option<Self> {
        let mounted = Self { dir: tempfile::tempdir().unwrap() };
        let (image, mount) = (mounted.image(), mounted.path(""));
        File::create(&image).unwrap().set_len(bytes).unwrap();
        fs::create_dir(&mount).unwrap();
        let made = Command::new(mkfs[0]).args(&mkfs[1..]).arg(&image).output();
        if !made.is_ok_and(|made| made.status.success()) {
            eprintln!("skipped: no {}", mkfs[0]);
            return None;
        }
        fs::copy(&image, mounted.dir.path().join("base.img")).unwrap();
        let done = Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&mount).output();
        if !done.is_ok_and(|done| done.status.success()) {
            eprintln!("skipped: nothing can be mounted here (root and loop devices)");
            return None;
        }
        Some(mounted)
    }

    fn image(&self) -> PathBuf {
        self.dir.path().join("disk.img")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("mount").join(name)
    }

    fn sync(&self) {
        rustix::fs::syncfs(File::open(self.path("")).unwrap()).unwrap();
    }

    fn layout(&self) -> Layout {
        Layout::of_image(&self.dir.path().join("base.img")).unwrap()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ended = Command::new("umount").arg(self.path("")).output();
    }
}

/// Bytes of the disk in blocks of 4 KiB that are all of one letter.
fn blocks_of(image: &Path, letter: u8) -> Vec<u64> {
    let bytes = fs::read(image).unwrap();
    let is_all = |block: &[u8]| block.iter().all(|byte| *byte == letter);
    let found = bytes.chunks(4096).enumerate().filter(|(_, block)| is_all(block));
    found.map(|(at, _)| u64_from(at) * 4096).collect()
}

fn write(path: &Path, letter: u8, blocks: usize) {
    fs::write(path, vec![letter; blocks * 4096]).unwrap();
}

#[test]
fn the_data_of_files_is_where_a_look_says() {
    let Some(disk) = Mounted::new(&["mkfs.ext4", "-q", "-b", "4096"], DISK) else { return };
    fs::create_dir(disk.path("sub")).unwrap();
    write(&disk.path("sub/a.db"), b'a', 300);
    write(&disk.path("b.log"), b'b', 40);
    disk.sync();
    let first = Snapshot::take(&disk.path("")).unwrap();
    fs::rename(disk.path("b.log"), disk.path("c.log")).unwrap();
    fs::remove_file(disk.path("sub/a.db")).unwrap();
    disk.sync();
    let second = Snapshot::take(&disk.path("")).unwrap();
    let looks = vec![Look { at: 10, snapshot: first }, Look { at: 20, snapshot: second }];
    let owners = Owners::new(disk.layout(), looks);
    for (letter, count, before, between) in
        [(b'a', 300, Some("`sub/a.db`"), None), (b'b', 40, Some("`b.log`"), Some("`c.log`"))]
    {
        let blocks = blocks_of(&disk.image(), letter);
        assert_eq!(blocks.len(), count, "the blocks are on the disk");
        for at in blocks {
            assert_eq!(owners.name_of(5, at..at + 4096).as_deref(), before, "{at}");
            assert_eq!(owners.name_of(15, at..at + 4096).as_deref(), between, "{at}");
        }
    }
}

/// `dumpe2fs` says where tables lie; all of them are metadata, and nothing else but the journal is fixed.
#[test]
fn the_tables_of_ext4_are_where_its_own_tool_says() {
    for options in [
        &["-b", "4096"][..],
        &["-b", "1024"],
        &["-b", "4096", "-O", "^64bit,^flex_bg"],
        &["-b", "1024", "-O", "sparse_super2,^resize_inode", "-G", "4"],
        &["-b", "2048", "-O", "^has_journal,^sparse_super,^resize_inode"],
    ] {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("disk.img");
        File::create(&image).unwrap().set_len(DISK).unwrap();
        let Ok(made) = Command::new("mkfs.ext4").arg("-q").args(options).arg(&image).output()
        else {
            eprintln!("skipped: no mkfs.ext4");
            return;
        };
        assert!(made.status.success(), "{options:?}");
        let dumped = Command::new("dumpe2fs").arg(&image).output().unwrap();
        let text = String::from_utf8_lossy(&dumped.stdout).into_owned();
        let told = told_by_dumpe2fs(&text);
        let layout = Layout::of_image(&image).unwrap();
        assert_eq!(layout.systems, ["ext4"], "{options:?}");
        let owners = Owners::new(layout, Vec::new());
        let mut metadata = 0;
        for at in (0..DISK).step_by(1024) {
            let (owner, _) = owners.of(0, at..at + 1024).next().unwrap();
            let is_told = told.iter().any(|range| range.contains(&at));
            let has_journal = owner == Owner::Journal;
            // The journal header may lie where no table is.
            assert!(
                has_journal || is_told == (owner == Owner::Metadata),
                "{options:?} byte {at}: {owner:?}"
            );
            metadata += u64::from(owner == Owner::Metadata);
        }
        assert!(metadata > 20, "{options:?}");
    }
}

/// Byte ranges of superblocks, descriptors, bitmaps and inode tables.
fn told_by_dumpe2fs(text: &str) -> Vec<std::ops::Range<u64>> {
    let block: u64 = text
        .lines()
        .find_map(|line| line.strip_prefix("Block size:"))
        .and_then(|size| size.trim().parse().ok())
        .unwrap();
    let words = [
        "superblock at",
        "Group descriptors at",
        "Reserved GDT blocks at",
        "bitmap at",
        "Inode table at",
    ];
    let mut ranges = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("  ")) {
        for part in line.split(", ") {
            let Some(word) = words.iter().find(|word| part.contains(**word)) else { continue };
            let rest = part.split(word).nth(1).unwrap().trim();
            let numbers = rest.split([' ', '(']).next().unwrap();
            let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
            let (first, last): (u64, u64) = (first.parse().unwrap(), last.parse().unwrap());
            ranges.push(first * block..(last + 1) * block);
        }
    }
    assert!(!ranges.is_empty(), "{text}");
    ranges
}

#[test]
fn requests_are_added_up_by_owner() {
    let Some(disk) = Mounted::new(&["mkfs.ext4", "-q", "-b", "4096"], DISK) else { return };
    write(&disk.path("data"), b'd', 64);
    disk.sync();
    let look = Look { at: 100, snapshot: Snapshot::take(&disk.path("")).unwrap() };
    let owners = Owners::new(disk.layout(), vec![look]);
    let mut tally = Tally::new(&owners);
    let mut all = 0;
    for at in (0..DISK).step_by(1 << 20) {
        tally.add(1, &Record::new(0, TraceOp::Write, at, 1 << 20));
        all += 1 << 20;
    }
    tally.add(2, &Record::new(0, TraceOp::Flush, 0, 0));
    let sum = tally.finish();
    assert_eq!(sum.by.parts().map(|(_, bytes)| bytes).iter().sum::<u64>(), all);
    assert_eq!((sum.write_bytes, sum.flush_requests), (all, 1));
    assert_eq!(sum.by.data, 64 * 4096);
    assert_eq!(sum.files.len(), 1);
    assert_eq!((sum.files[0].path.as_str(), sum.files[0].write_bytes), ("data", 64 * 4096));
    assert!(sum.by.journal >= 4 << 20, "a journal of 4 MiB at least: {}", sum.by.journal);
    assert!(sum.by.metadata > 0 && sum.by.unknown > 0);
}

/// A look must not change what it looks at: no times of access, and no data that is written early.
#[test]
fn a_look_writes_nothing() {
    let Some(disk) = Mounted::new(&["mkfs.ext4", "-q", "-b", "4096"], DISK) else { return };
    fs::create_dir(disk.path("sub")).unwrap();
    write(&disk.path("sub/old"), b'o', 4);
    disk.sync();
    let times = |name: &str| fs::metadata(disk.path(name)).unwrap().accessed().unwrap();
    let before = (times("sub"), times("sub/old"));
    write(&disk.path("new"), b'n', 4);
    Snapshot::take(&disk.path("")).unwrap();
    assert_eq!((times("sub"), times("sub/old")), before);
    assert_eq!(blocks_of(&disk.image(), b'n'), [0; 0], "not written by the look");
    let mut first = [0; 4096];
    File::open(disk.path("new")).unwrap().read_exact_at(&mut first, 0).unwrap();
    assert_eq!(first, [b'n'; 4096]);
}

#[test]
fn the_groups_of_xfs_begin_with_tables() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("disk.img");
    File::create(&image).unwrap().set_len(512 << 20).unwrap();
    let made = Command::new("mkfs.xfs").args(["-q", "-d", "agcount=4"]).arg(&image).output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: no mkfs.xfs");
        return;
    }
    let layout = Layout::of_image(&image).unwrap();
    assert_eq!(layout.systems, ["xfs"]);
    let owners = Owners::new(layout, Vec::new());
    let file = File::open(&image).unwrap();
    let mut found = 0;
    for at in (0..512_u64 << 20).step_by(4096) {
        let mut magic = [0; 4];
        file.read_exact_at(&mut magic, at).unwrap();
        if magic == *b"XFSB" {
            found += 1;
            assert_eq!(owners.of(0, at..at + 512).next(), Some((Owner::Metadata, 512)), "{at}");
        }
    }
    assert_eq!(found, 4);
}
