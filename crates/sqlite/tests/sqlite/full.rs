//! A disk that is full: SQLite's own error, and nothing that was committed is lost.

use rusqlite::{Connection, ErrorCode};

use crate::clones::{Mounted, run};
use crate::common::{ONEFOLD, STOCK, blob, create, open, skip, text};

/// A tmpfs of 4 MiB, unmounted when it is dropped.
struct Small(tempfile::TempDir);

impl Drop for Small {
    fn drop(&mut self) {
        run("umount", &[self.0.path().to_str().unwrap()]);
    }
}

fn fill(database: &Connection) -> i64 {
    for n in 0..1_000_000 {
        match database.execute("INSERT INTO rows VALUES(?, ?)", (n, blob(n, 3900))) {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.sqlite_error_code(), Some(ErrorCode::DiskFull), "{error}");
                return n;
            }
        }
    }
    panic!("the disk never fills");
}

#[test]
fn a_full_disk_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=4m", "tmpfs", folder.path().to_str().unwrap()];
    if !run("mount", &mount) {
        return skip("tmpfs cannot be mounted (root)");
    }
    let small = Small(folder);
    let path = small.0.path().join("db");
    let database = create(&path, ONEFOLD, 4096);
    database.execute_batch("PRAGMA wal_autocheckpoint=200").unwrap();
    let committed = fill(&database);
    assert!(committed > 200, "{committed}");
    assert_eq!(text(&database, "SELECT count(*) FROM rows"), committed.to_string());
    assert_eq!(text(&database, "PRAGMA integrity_check"), "ok");
    drop(database);
    let again = open(&path, ONEFOLD);
    assert_eq!(text(&again, "SELECT count(*) FROM rows"), committed.to_string());
}

/// The disk fills in the middle of a checkpoint, and has room again.
#[test]
fn a_checkpoint_that_finds_no_room_is_done_later() {
    let Some(mounted) = Mounted::new("xfs", 300 << 20) else { return };
    let path = mounted.path().join("db");
    let database = create(&path, ONEFOLD, 4096);
    database.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
    for n in 0..3000 {
        database.execute("INSERT INTO rows VALUES(?, ?)", (n, blob(n, 3900))).unwrap();
    }
    let filler = mounted.path().join("filler");
    let mut block = 1 << 20;
    while block >= 4096 {
        let is_more =
            run("sh", &["-c", &format!("head -c {block} /dev/zero >> {}", filler.display())]);
        if !is_more {
            block /= 4;
        }
    }
    // A clone needs no data blocks, so it may succeed where a write could not.
    let first = text(&database, "PRAGMA wal_checkpoint(TRUNCATE)");
    assert!(first == "0" || first.contains("full"), "{first}");
    assert_eq!(text(&database, "SELECT count(*) FROM rows"), "3000");
    std::fs::remove_file(&filler).unwrap();
    assert_eq!(text(&database, "PRAGMA wal_checkpoint(TRUNCATE)"), "0");
    drop(database);
    let stock = open(&path, STOCK);
    assert_eq!(text(&stock, "PRAGMA integrity_check"), "ok");
    assert_eq!(text(&stock, "SELECT count(*) FROM rows"), "3000");
}
