//! `onefold-sqlite recover`.

use std::path::{Path, PathBuf};
use std::process::Command;

use onefold_sqlite::{Recovered, recover};
use rusqlite::Connection;

use crate::common::{
    ONEFOLD, STOCK, beside, copy_crashed, create, has_system_sqlite, insert, open, skip, system,
    text,
};

/// The database and its WAL, as a crash would leave them.
fn crashed(path: &Path, name: &str) -> PathBuf {
    let copy = path.with_file_name(name);
    copy_crashed(path, &copy);
    copy
}

fn rows(database: &Connection) -> String {
    assert_eq!(text(database, "PRAGMA integrity_check"), "ok");
    text(database, "SELECT count(*) FROM rows")
}

#[test]
fn a_wal_left_by_a_crash_becomes_standard() {
    for page_bytes in [4096, 16_384, 65_536] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let database = create(&path, ONEFOLD, page_bytes);
        insert(&database, 0, 400, 3000);
        // A transaction that is in the WAL in part.
        database.execute_batch("PRAGMA cache_size=5; BEGIN").unwrap();
        for n in 1000..1300 {
            database.execute("INSERT INTO rows VALUES(?, zeroblob(3000))", [n]).unwrap();
        }
        let copy = crashed(&path, "crashed");
        match recover(&copy).unwrap() {
            Recovered::Converted { frames, dropped } => {
                assert!(frames > 10 && dropped > 0, "{frames}, {dropped}");
                let bytes = std::fs::metadata(beside(&copy, "-wal")).unwrap().len();
                assert_eq!(bytes, 32 + frames * (24 + u64::from(page_bytes)));
            }
            other => panic!("{other:?}"),
        }
        if has_system_sqlite() {
            let again = crashed(&copy, "again");
            let told = system(&again, false, "SELECT count(*) FROM rows;");
            assert_eq!(told, (true, "400".to_owned()));
        } else {
            skip("sqlite3 is not installed");
        }
        assert_eq!(recover(&copy).unwrap(), Recovered::Standard);
        assert_eq!(rows(&open(&copy, STOCK)), "400");
        assert_eq!(recover(&copy).unwrap(), Recovered::NoWal);
    }
}

#[test]
fn a_damaged_frame_ends_what_is_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let database = create(&path, ONEFOLD, 4096);
    database.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
    for n in 0..50 {
        insert(&database, n, 1, 3000);
    }
    let copy = crashed(&path, "crashed");
    let Recovered::Converted { frames, .. } = recover(&copy).unwrap() else { panic!() };
    for frame in [frames / 2, frames - 1] {
        let copy = crashed(&path, "damaged");
        let mut wal = std::fs::read(beside(&copy, "-wal")).unwrap();
        wal[usize::try_from(8192 + frame * 4096 + 4000).unwrap()] ^= 1;
        std::fs::write(beside(&copy, "-wal"), wal).unwrap();
        let onefold = crashed(&copy, "onefold");
        let expected = rows(&open(&onefold, ONEFOLD));
        assert_ne!(expected, "50");
        assert!(matches!(recover(&copy).unwrap(), Recovered::Converted { .. }));
        assert_eq!(rows(&open(&copy, STOCK)), expected);
    }
}

#[test]
fn what_has_no_commit_is_removed_and_what_is_not_ours_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let database = create(&path, ONEFOLD, 4096);
    text(&database, "PRAGMA wal_checkpoint(TRUNCATE)");
    let copy = crashed(&path, "empty");
    assert_eq!(recover(&copy).unwrap(), Recovered::Removed);
    assert_eq!(rows(&open(&copy, STOCK)), "0");
    let copy = crashed(&path, "invalid");
    std::fs::write(beside(&copy, "-wal"), [7; 9000]).unwrap();
    assert_eq!(recover(&copy).unwrap(), Recovered::Invalid);
    assert_eq!(std::fs::read(beside(&copy, "-wal")).unwrap(), [7; 9000]);
    assert_eq!(rows(&open(&copy, ONEFOLD)), "0");
}

#[test]
fn the_command_says_what_it_did_and_refuses_a_database_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let database = create(&path, ONEFOLD, 4096);
    insert(&database, 0, 10, 100);
    let copy = crashed(&path, "crashed");
    let command = |arguments: &[&Path]| {
        let output = Command::new(env!("CARGO_BIN_EXE_onefold-sqlite")).args(arguments).output();
        let output = output.unwrap();
        let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code(), told)
    };
    let recover = Path::new("recover");
    let (code, told) = command(&[recover, &path]);
    assert!(code == Some(5) && told.contains("is in use: close the programs"), "{code:?} {told}");
    assert_eq!(text(&database, "SELECT count(*) FROM rows"), "10");
    let (code, told) = command(&[recover, &copy]);
    assert!(code == Some(0) && told.contains("has a standard WAL now"), "{code:?} {told}");
    let (code, told) = command(&[recover, &folder.path().join("none")]);
    assert!(code == Some(1) && told.contains("cannot open"), "{code:?} {told}");
    assert_eq!(command(&[recover]).0, Some(2));
    assert_eq!(command(&[Path::new("--help")]).0, Some(0));
    assert_eq!(command(&[recover, Path::new("--help")]).0, Some(0));
}
