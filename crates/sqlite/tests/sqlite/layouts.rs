//! Which layout a WAL has, and that nobody takes one for the other.

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::common::{
    ONEFOLD, STOCK, beside, copy_crashed, create, has_system_sqlite, insert, load_again, open,
    skip, system, text,
};

fn layout(database: &Connection) -> String {
    let told = text(database, "PRAGMA onefold");
    let words: Vec<&str> = told.split(' ').collect();
    match words.as_slice() {
        ["layout=aligned" | "layout=paired", ..] => "aligned".to_owned(),
        [layout, reason, ..] => format!("{layout} {reason}"),
        _ => told.clone(),
    }
}

/// A database whose WAL is left behind, as by a crash: the connection is kept.
fn left_behind(path: &std::path::Path, vfs: &str) -> (std::path::PathBuf, tempfile::TempDir) {
    let source = create(path, vfs, 4096);
    insert(&source, 0, 300, 1000);
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("db");
    copy_crashed(path, &copy);
    (copy, folder)
}

#[test]
fn a_clean_close_leaves_a_standard_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let database = create(&path, ONEFOLD, 4096);
    insert(&database, 0, 500, 2000);
    assert_eq!(layout(&database), "aligned");
    assert!(beside(&path, "-wal-shm").exists() && !beside(&path, "-shm").exists());
    drop(database);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let stock = open(&path, STOCK);
    assert_eq!(text(&stock, "SELECT count(*) FROM rows"), "500");
    assert_eq!(text(&stock, "PRAGMA integrity_check"), "ok");
}

#[test]
fn a_request_to_keep_the_wal_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    if !has_system_sqlite() {
        return skip("sqlite3 is not installed");
    }
    let sql = "PRAGMA journal_mode=WAL; CREATE TABLE t(n);\n.filectrl persist_wal 1\nINSERT INTO t VALUES(1);";
    assert!(system(&path, true, sql).0);
    assert!(!beside(&path, "-wal").exists());
}

/// Taken for empty, the WAL would be overwritten, and its commits lost.
#[test]
fn sqlite_without_the_extension_refuses_an_aligned_wal() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, _kept) = left_behind(&folder.path().join("db"), ONEFOLD);
    let before = std::fs::read(beside(&copy, "-wal")).unwrap();
    let stock = open(&copy, STOCK);
    let refused = stock.execute_batch("SELECT * FROM rows").unwrap_err();
    assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::CannotOpen), "{refused}");
    let refused = stock.execute_batch("CREATE TABLE other(n)").unwrap_err();
    assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::CannotOpen), "{refused}");
    if has_system_sqlite() {
        let (is_done, told) = system(&copy, false, "SELECT count(*) FROM rows;");
        assert!(!is_done && told.contains("unable to open database file"), "{told}");
    }
    drop(stock);
    assert_eq!(std::fs::read(beside(&copy, "-wal")).unwrap(), before);
    let onefold = open(&copy, ONEFOLD);
    assert_eq!(text(&onefold, "SELECT count(*) FROM rows"), "300");
}

/// The same while it is in use, from the first moment and after a checkpoint that empties the WAL.
#[test]
fn sqlite_without_the_extension_is_refused_while_the_wal_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let database = create(&path, ONEFOLD, 4096);
    let refuses = |when: &str| {
        let refused = open(&path, STOCK).execute_batch("SELECT * FROM rows").unwrap_err();
        assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::CannotOpen), "{when}: {refused}");
    };
    refuses("with a WAL");
    assert_eq!(text(&database, "PRAGMA wal_checkpoint(TRUNCATE)"), "0");
    assert_eq!(std::fs::metadata(beside(&path, "-wal")).unwrap().len(), 4096);
    refuses("with an empty WAL");
    insert(&database, 0, 10, 100);
    refuses("with a new WAL");
    assert_eq!(text(&database, "SELECT count(*) FROM rows"), "10");
}

#[test]
fn a_stock_wal_that_a_crash_left_is_used_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, _kept) = left_behind(&folder.path().join("db"), STOCK);
    let database = open(&copy, ONEFOLD);
    assert_eq!(text(&database, "SELECT count(*) FROM rows"), "300");
    assert_eq!(layout(&database), "layout=stock reason=stock_wal_found");
    insert(&database, 300, 300, 1000);
    // Those without the extension take part.
    let stock = open(&copy, STOCK);
    assert_eq!(text(&stock, "SELECT count(*) FROM rows"), "600");
    drop((database, stock));
    let database = open(&copy, ONEFOLD);
    assert_eq!(text(&database, "SELECT count(*) FROM rows"), "600");
    assert_eq!(layout(&database), "aligned");
}

/// SQLite without the extension, in this process and in another one, has an empty WAL open: there is no header to see.
#[test]
fn a_database_in_use_without_the_extension_keeps_its_layout() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    drop(create(&path, STOCK, 4096));
    let stock = open(&path, STOCK);
    assert_eq!(text(&stock, "SELECT count(*) FROM rows"), "0");
    assert_eq!(std::fs::metadata(beside(&path, "-wal")).unwrap().len(), 0);
    let database = open(&path, ONEFOLD);
    assert_eq!(text(&database, "SELECT count(*) FROM rows"), "0");
    assert_eq!(layout(&database), "layout=stock reason=in_use_without_extension");
    insert(&database, 0, 10, 100);
    insert(&stock, 10, 10, 100);
    assert_eq!(text(&database, "SELECT count(*) FROM rows"), "20");
    drop((database, stock));
    if !has_system_sqlite() {
        return skip("sqlite3 is not installed");
    }
    let stock = open(&path, STOCK);
    assert_eq!(text(&stock, "SELECT count(*) FROM rows"), "20");
    let (is_done, told) = system(&path, true, "SELECT count(*) FROM rows; PRAGMA onefold;");
    assert!(is_done && told.starts_with("20\nlayout=stock"), "{told}");
}

/// It holds no index of frames, but it could: a connection that comes must not guess.
#[test]
fn a_connection_that_was_refused_makes_others_wait() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, _kept) = left_behind(&folder.path().join("db"), ONEFOLD);
    let stock = open(&copy, STOCK);
    stock.execute_batch("SELECT * FROM rows").unwrap_err();
    let database = open(&copy, ONEFOLD);
    database.busy_timeout(std::time::Duration::ZERO).unwrap();
    let refused = database.execute_batch("SELECT * FROM rows").unwrap_err();
    assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::DatabaseBusy), "{refused}");
    drop(stock);
    assert_eq!(text(&database, "SELECT count(*) FROM rows"), "300");
}

#[test]
fn small_pages_and_psow_off_keep_the_stock_layout() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small");
    let database = create(&path, ONEFOLD, 2048);
    assert_eq!(layout(&database), "layout=stock reason=page_below_4096");
    let path = folder.path().join("psow");
    drop(create(&path, ONEFOLD, 4096));
    let name = format!("file:{}?psow=0", path.display());
    let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_URI;
    let database = Connection::open_with_flags_and_vfs(&name, flags, ONEFOLD).unwrap();
    assert_eq!(text(&database, "SELECT count(*) FROM rows"), "0");
    assert_eq!(layout(&database), "layout=stock reason=psow_off");
}

#[test]
fn rollback_mode_is_that_of_sqlite_and_changes_of_mode_are_clean() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let database = create(&path, ONEFOLD, 4096);
    insert(&database, 0, 100, 500);
    assert_eq!(text(&database, "PRAGMA journal_mode=DELETE"), "delete");
    assert_eq!(layout(&database), "layout=none reason=no_wal");
    assert!(!beside(&path, "-wal").exists());
    database.execute_batch("PRAGMA page_size=16384; VACUUM;").unwrap();
    assert_eq!(text(&database, "PRAGMA journal_mode=WAL"), "wal");
    insert(&database, 100, 100, 500);
    assert_eq!(layout(&database), "aligned");
    assert_eq!(text(&database, "PRAGMA page_size"), "16384");
    assert_eq!(text(&database, "PRAGMA wal_checkpoint(TRUNCATE)"), "0");
    assert_eq!(text(&database, "SELECT count(*) FROM rows"), "200");
}

#[test]
fn an_exclusive_connection_needs_no_shared_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let database = open(&path, ONEFOLD);
    let setup = "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; \
                 CREATE TABLE rows(n INTEGER PRIMARY KEY, b BLOB);";
    database.execute_batch(setup).unwrap();
    insert(&database, 0, 1000, 2000);
    assert_eq!(layout(&database), "aligned");
    assert!(!beside(&path, "-wal-shm").exists());
    drop(database);
    assert_eq!(text(&open(&path, STOCK), "PRAGMA integrity_check"), "ok");
}

#[test]
fn a_database_that_cannot_be_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let database = create(&path, ONEFOLD, 4096);
    insert(&database, 0, 10, 100);
    let reader =
        Connection::open_with_flags_and_vfs(&path, OpenFlags::SQLITE_OPEN_READ_ONLY, ONEFOLD)
            .unwrap();
    assert_eq!(text(&reader, "SELECT count(*) FROM rows"), "10");
    assert_eq!(layout(&reader), "aligned");
    assert!(reader.execute_batch("DELETE FROM rows").is_err());
}

#[test]
fn the_extension_can_be_loaded_twice_and_the_pragma_takes_no_value() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(&folder.path().join("db"), ONEFOLD, 4096);
    load_again();
    insert(&database, 0, 10, 100);
    assert_eq!(text(&database, "SELECT count(*) FROM rows"), "10");
    let refused = database.execute_batch("PRAGMA onefold=1").unwrap_err();
    assert!(refused.to_string().contains("takes no value"), "{refused}");
}
