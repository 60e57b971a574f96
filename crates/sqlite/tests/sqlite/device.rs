//! Databases on a served drive, without a file system in between.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use onefold_sqlite::{Disk, Exported, attach, export};

use crate::clones::run;
use crate::common::{ONEFOLD, STOCK, beside, count, create, insert, load, open, skip, text};
use crate::model::{CONTENTS, compare_steps};

/// A drive, served over FUSE until it is dropped.
struct Served {
    folder: tempfile::TempDir,
    server: Child,
}

impl Served {
    /// `None`, with the reason told, if it cannot be served here.
    fn new(settings: &[&str]) -> Option<Self> {
        let program = std::env::current_exe().unwrap().parent().unwrap().join("../onefold");
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        let fuse = folder.path().join("fuse");
        std::fs::create_dir(&fuse).unwrap();
        let sets = settings.iter().flat_map(|pair| ["--set", pair]);
        let mut made = Command::new(&program);
        made.args(["ssd", "create", "--size", "256MiB"]).args(sets).arg(&image);
        if !Path::new("/dev/fuse").exists()
            || !made.output().is_ok_and(|done| done.status.success())
        {
            skip("a drive cannot be served (FUSE, and the binary `onefold` of the same build)");
            return None;
        }
        let mut serve = Command::new(&program);
        serve.args(["ssd", "serve", "--latency", "none", "--fuse"]).arg(&fuse).arg(&image);
        let server = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let drive = Self { folder, server };
        for _ in 0..300 {
            if drive.disk().exists() {
                return Some(drive);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        skip("a drive cannot be served (FUSE)");
        None
    }

    fn disk(&self) -> PathBuf {
        self.folder.path().join("fuse/disk")
    }

    fn control(&self) -> PathBuf {
        self.folder.path().join("fuse/disk.ctl")
    }

    /// A new empty database, which is the only one of the drive.
    fn database(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        let made = onefold_sqlite::create(
            &path,
            Disk { disk: &self.disk(), control: &self.control() },
            Some(64 << 20),
            true,
        );
        made.unwrap();
        path
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        run("kill", &[&self.server.id().to_string()]);
        let _ = self.server.wait();
    }
}

const REMAPS: &[&str] = &["ftl.remap=lh"];

#[test]
fn it_is_sqlite_on_a_device() {
    let Some(served) = Served::new(REMAPS) else { return };
    for page_bytes in [512, 4096, 16_384, 65_536] {
        let mut cloned = 0;
        for seed in 0..2 {
            let path = served.database(&format!("db-{page_bytes}-{seed}"));
            let stock = beside(&path, "-of-stock");
            cloned += compare_steps(&[path.clone(), stock.clone()], seed, page_bytes);
            let copy = beside(&path, "-copy");
            let copied = export(&path, &copy).unwrap();
            // After a clean close everything is in the database.
            assert_eq!(copied.frames, 0);
            let [left, right] = [copy, stock].map(|path| text(&open(&path, STOCK), CONTENTS));
            assert_eq!(left, right);
        }
        assert_eq!(cloned > 0, page_bytes >= 4096, "page size {page_bytes}: {cloned} cloned");
    }
}

/// As on any disk: SQLite keeps the journal beside the file that names the device.
#[test]
fn a_rollback_journal_works_too() {
    let Some(served) = Served::new(REMAPS) else { return };
    let path = served.database("db");
    let database = open(&path, ONEFOLD);
    let sql = "CREATE TABLE rows(n INTEGER PRIMARY KEY, b BLOB)";
    database.execute_batch(sql).unwrap();
    insert(&database, 0, 400, 3900);
    let before = text(&database, CONTENTS);
    database.execute_batch("PRAGMA cache_size=5; BEGIN; DELETE FROM rows WHERE n < 300").unwrap();
    insert_without_a_transaction(&database);
    database.execute_batch("ROLLBACK").unwrap();
    assert_eq!(text(&database, CONTENTS), before);
    // A WAL that was deleted is not replayed over what came after it.
    assert_eq!(text(&database, "PRAGMA journal_mode=WAL"), "wal");
    insert(&database, 1000, 50, 3900);
    assert_eq!(text(&database, "PRAGMA journal_mode=DELETE"), "delete");
    insert(&database, 1000, 50, 100);
    assert_eq!(text(&database, "PRAGMA journal_mode=WAL"), "wal");
    assert_eq!(text(&database, "SELECT sum(length(b)) FROM rows WHERE n >= 1000"), "5000");
    assert_eq!(text(&database, "PRAGMA integrity_check"), "ok");
}

fn insert_without_a_transaction(database: &rusqlite::Connection) {
    for n in 500..700 {
        database.execute("INSERT INTO rows VALUES(?, zeroblob(9000))", [n]).unwrap();
    }
}

#[test]
fn every_page_is_written_once() {
    let Some(served) = Served::new(REMAPS) else { return };
    let path = served.database("db");
    let database = create(&path, ONEFOLD, 4096);
    database.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
    insert(&database, 0, 2000, 3900);
    assert_eq!(text(&database, "PRAGMA wal_checkpoint(TRUNCATE)"), "0");
    let told = text(&database, "PRAGMA onefold");
    assert!(told.contains("backend=remap") && told.contains("written_pages=0"), "{told}");
    // Pages that lie apart in the WAL go with one command too.
    assert_eq!(count(&database, "clone_calls"), 1, "{told}");
}

/// A crash leaves commits in the WAL of the device. Without its pointer the device still has all.
#[test]
fn commits_of_a_wal_are_exported_and_attached() {
    let Some(served) = Served::new(REMAPS) else { return };
    let path = served.database("db");
    let database = create(&path, ONEFOLD, 4096);
    database.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
    insert(&database, 0, 300, 3900);
    let expected = text(&database, CONTENTS);
    // As if the process had died, for another process.
    let again = served.folder.path().join("again");
    attach(&again, Disk { disk: &served.disk(), control: &served.control() }).unwrap();
    let copy = served.folder.path().join("copy");
    let Exported { frames, .. } = export(&again, &copy).unwrap();
    assert!(frames > 300, "{frames}");
    assert_eq!(text(&open(&copy, STOCK), CONTENTS), expected);
    drop(database);
    assert_eq!(text(&open(&again, ONEFOLD), CONTENTS), expected);
}

#[test]
fn a_full_wal_loses_nothing() {
    let Some(served) = Served::new(REMAPS) else { return };
    let path = served.folder.path().join("db");
    let disk = served.disk();
    let control = served.control();
    onefold_sqlite::create(&path, Disk { disk: &disk, control: &control }, Some(2 << 20), false)
        .unwrap();
    let database = create(&path, ONEFOLD, 4096);
    database.execute_batch("PRAGMA wal_autocheckpoint=0; BEGIN").unwrap();
    let full = (0..2000).find_map(|n| {
        let sql = "INSERT INTO rows VALUES(?, zeroblob(3900))";
        database
            .execute(sql, [n])
            .and_then(|_| {
                let commit = n % 100 == 99;
                if commit { database.execute_batch("COMMIT; BEGIN").map(|()| 1) } else { Ok(1) }
            })
            .err()
    });
    let full = full.expect("2 MiB are never full");
    assert_eq!(full.sqlite_error_code(), Some(rusqlite::ErrorCode::DiskFull), "{full}");
    // SQLite has rolled back what did not fit.
    let _ = database.execute_batch("ROLLBACK");
    let rows: u32 = text(&database, "SELECT count(*) FROM rows").parse().unwrap();
    assert!(rows >= 100 && rows.is_multiple_of(100), "{rows}");
    assert_eq!(text(&database, "PRAGMA wal_checkpoint(TRUNCATE)"), "0");
    insert(&database, 5000, 100, 3900);
    assert_eq!(text(&database, "PRAGMA integrity_check"), "ok");
}

#[test]
fn what_is_no_device_is_refused_with_a_reason() {
    let Some(served) = Served::new(REMAPS) else { return };
    let path = served.database("db");
    let (disk, control) = (served.disk(), served.control());
    let name = served.folder.path().join("new");
    let refused = |disk: &Path, control: &Path, expected: &str| {
        let error = onefold_sqlite::create(&name, Disk { disk, control }, None, false).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!name.exists());
    };
    refused(&disk, &control, "to use it: onefold-sqlite attach");
    refused(&disk, &disk, "does not answer as the control export");
    refused(Path::new("/nowhere"), &control, "cannot open /nowhere");
    let large = Some(200 << 20);
    let error = onefold_sqlite::create(&name, Disk { disk: &disk, control: &control }, large, true);
    assert!(error.unwrap_err().to_string().contains("expected at least"));
    assert!(onefold_sqlite::recover(&path).unwrap_err().to_string().contains("is on a device"));
    let stock = open(&path, STOCK).execute_batch("SELECT * FROM rows").unwrap_err();
    assert_eq!(stock.sqlite_error_code(), Some(rusqlite::ErrorCode::NotADatabase), "{stock}");
    // The device has another database now.
    served.database("other");
    load();
    let flags = rusqlite::OpenFlags::default();
    let opened = rusqlite::Connection::open_with_flags_and_vfs(&path, flags, ONEFOLD);
    let error =
        opened.and_then(|database| database.execute_batch("SELECT 1 FROM rows")).unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::CannotOpen), "{error}");
    let error = export(&path, &name).unwrap_err();
    assert!(error.to_string().contains("is it another device?"), "{error}");
}

#[test]
fn a_device_of_larger_units_is_refused() {
    let Some(served) = Served::new(&["ftl.indirection=16KiB", "geometry.page=16KiB"]) else {
        return;
    };
    let name = served.folder.path().join("new");
    let disk = Disk { disk: &served.disk(), control: &served.control() };
    let error = onefold_sqlite::create(&name, disk, None, false).unwrap_err();
    assert!(error.to_string().contains("remaps in units of 16384 bytes"), "{error}");
}
