//! Checkpoints that clone, on file systems that can.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{ONEFOLD, STOCK, count, create, insert, open, skip, text};
use crate::model::compare;

/// A file system in a file, mounted until it is dropped.
pub(crate) struct Mounted {
    folder: tempfile::TempDir,
}

impl Mounted {
    /// `None`, with the reason told, if it cannot be made here. `bytes` is the size of the file.
    pub(crate) fn new(kind: &str, bytes: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        std::fs::write(&image, []).unwrap();
        let is_sized = run("truncate", &["-s", &bytes.to_string(), image.to_str().unwrap()]);
        let is_made = run(&format!("mkfs.{kind}"), &["-q", image.to_str().unwrap()]);
        let point = folder.path().join("mounted");
        std::fs::create_dir(&point).unwrap();
        let mount = ["-o", "loop", image.to_str().unwrap(), point.to_str().unwrap()];
        if is_sized && is_made && run("mount", &mount) {
            return Some(Self { folder });
        }
        skip(&format!("{kind} cannot be made and mounted (root, loop devices and mkfs.{kind})"));
        None
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run("umount", &[self.path().to_str().unwrap()]);
    }
}

pub(crate) fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

const KINDS: [&str; 2] = ["xfs", "btrfs"];
const BYTES: u64 = 512 << 20;

#[test]
fn every_page_of_a_checkpoint_is_cloned() {
    for mounted in KINDS.into_iter().filter_map(|kind| Mounted::new(kind, BYTES)) {
        let path = mounted.path().join("db");
        let database = create(&path, ONEFOLD, 4096);
        database.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
        insert(&database, 0, 2000, 3900);
        assert!(text(&database, "PRAGMA onefold").contains("backend=untried"));
        assert_eq!(text(&database, "PRAGMA wal_checkpoint(TRUNCATE)"), "0");
        let told = text(&database, "PRAGMA onefold");
        assert!(told.contains("backend=reflink") && told.contains("written_pages=0"), "{told}");
        assert!(count(&database, "cloned_pages") > 2000, "{told}");
        // Frames of a load lie in the order of pages: only groups of 170 end runs.
        assert!(count(&database, "clone_calls") < 40, "{told}");
        // Another connection, whose pages come from the file.
        assert_eq!(text(&open(&path, ONEFOLD), "SELECT sum(length(b)) FROM rows"), "7800000");
        drop(database);
        let stock = open(&path, STOCK);
        assert_eq!(text(&stock, "PRAGMA integrity_check"), "ok");
        assert_eq!(text(&stock, "SELECT count(*) FROM rows"), "2000");
    }
}

/// Small commits that are synced one by one are written at the checkpoint, and large ones, or many for each sync, are not. Needs no
/// file system that clones: what is chosen is told.
#[test]
fn small_commits_that_are_synced_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(&folder.path().join("db"), ONEFOLD, 4096);
    let written = |synchronous: &str, commits: i64, rows: i64| {
        let pragma = format!("PRAGMA wal_autocheckpoint=0; PRAGMA synchronous={synchronous}");
        database.execute_batch(&pragma).unwrap();
        let before = count(&database, "small_commits");
        for _ in 0..commits {
            let first = database.query_row("SELECT count(*) FROM rows", [], |row| row.get(0));
            insert(&database, first.unwrap(), rows, 3900);
        }
        assert_eq!(text(&database, "PRAGMA wal_checkpoint(TRUNCATE)"), "0");
        count(&database, "small_commits") - before
    };
    assert_eq!(written("FULL", 20, 1), 1);
    assert_eq!(written("NORMAL", 20, 1), 0);
    assert_eq!(written("FULL", 5, 20), 0);
}

#[test]
fn it_is_sqlite_where_pages_are_cloned() {
    for mounted in KINDS.into_iter().filter_map(|kind| Mounted::new(kind, BYTES)) {
        let mut cloned = 0;
        for (seed, page_bytes) in [(1, 4096), (2, 4096), (3, 8192), (4, 65_536), (5, 4096)] {
            cloned += compare(&mounted.path(), seed, page_bytes);
        }
        assert!(cloned > 50, "only {cloned} pages");
    }
}

/// A reader keeps a checkpoint from its end, so nothing syncs the database; pages of a later frame must not get there.
#[test]
fn a_reader_sees_its_snapshot_while_others_clone() {
    for mounted in KINDS.into_iter().filter_map(|kind| Mounted::new(kind, BYTES)) {
        let path = mounted.path().join("db");
        let writer = create(&path, ONEFOLD, 4096);
        writer.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
        insert(&writer, 0, 300, 3900);
        let reader = open(&path, ONEFOLD);
        let sum = "SELECT count(*) || ':' || sum(length(b)) || ':' || hex(group_concat(substr(b, 1, 4))) FROM rows";
        reader.execute_batch("BEGIN").unwrap();
        let before = text(&reader, sum);
        writer.execute_batch("UPDATE rows SET b = zeroblob(3900) WHERE n % 2 = 0").unwrap();
        assert_eq!(text(&writer, "PRAGMA wal_checkpoint(PASSIVE)"), "0");
        // Pages whose newest frame the reader cannot see yet stay out.
        let cloned = count(&writer, "cloned_pages");
        assert!((150..200).contains(&cloned), "{cloned}");
        reader.execute_batch("PRAGMA shrink_memory").unwrap();
        assert_eq!(text(&reader, sum), before);
        let late = open(&path, ONEFOLD);
        assert_ne!(text(&late, sum), before);
        assert_eq!(text(&late, sum), text(&writer, sum));
        reader.execute_batch("COMMIT").unwrap();
        assert_eq!(text(&writer, "PRAGMA wal_checkpoint(TRUNCATE)"), "0");
        assert_eq!(text(&reader, sum), text(&writer, sum));
    }
}

/// btrfs does not clone between files with and without checksums. The pages are written then, in the same checkpoint.
#[test]
fn a_refused_clone_is_a_write() {
    let Some(mounted) = Mounted::new("btrfs", BYTES) else { return };
    let path = mounted.path().join("db");
    std::fs::write(&path, []).unwrap();
    assert!(run("chattr", &["+C", path.to_str().unwrap()]));
    let database = create(&path, ONEFOLD, 4096);
    insert(&database, 0, 2000, 3900);
    let told = text(&database, "PRAGMA onefold");
    assert!(told.contains("backend=plain cloned_pages=0"), "{told}");
    assert!(told.contains("refused=\"Invalid argument"), "{told}");
    drop(database);
    assert_stock(&path, "2000");
}

fn assert_stock(path: &Path, rows: &str) {
    let stock = open(path, STOCK);
    assert_eq!(text(&stock, "PRAGMA integrity_check"), "ok");
    assert_eq!(text(&stock, "SELECT count(*) FROM rows"), rows);
}
