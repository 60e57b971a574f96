//! Processes that are killed: what they have announced is there, for the extension and, after a recovery, for any SQLite.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use onefold_units::Rng;

use crate::common::{ONEFOLD, STOCK, blob, copy_crashed, create, open, text};

const CHILD: &str = "ONEFOLD_SQLITE_CHILD";
const WRITERS: u64 = 2;
const ROUNDS: u64 = 25;

/// Commits numbered rows and announces each, until it is killed.
#[test]
#[ignore = "the process that the other tests kill"]
fn writer() {
    let Some(arguments) = std::env::var_os(CHILD) else { return };
    let arguments = arguments.into_string().unwrap();
    let (path, first) = arguments.rsplit_once(',').unwrap();
    let database = open(Path::new(path), ONEFOLD);
    database.busy_timeout(std::time::Duration::from_mins(1)).unwrap();
    database.execute_batch("PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=30;").unwrap();
    let mut n: i64 = first.parse().unwrap();
    loop {
        let bytes = usize::try_from(n * 37 % 9000).unwrap();
        database.execute("INSERT INTO rows VALUES(?, ?)", (n, blob(n, bytes))).unwrap();
        // What a dead process was told does not count.
        if writeln!(std::io::stdout(), "row {n}").is_err() {
            return;
        }
        n += 1;
    }
}

fn start(path: &Path, first: i64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "crash::writer", "--nocapture"])
        .env(CHILD, format!("{},{first}", path.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills a writer after some announcements, and returns its last one.
fn kill_after(mut child: Child, rows: u64) -> i64 {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let number = |line: String| line.strip_prefix("row ").and_then(|n| n.parse::<i64>().ok());
    let mut last = 0;
    for _ in 0..rows {
        last = lines.by_ref().find_map(number).unwrap_or(last);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What came before the kill counts too.
    lines.filter_map(number).last().unwrap_or(last)
}

#[test]
fn what_killed_processes_have_announced_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    drop(create(&path, ONEFOLD, 4096));
    let mut random = Rng::new(7);
    let mut announced: Vec<(i64, i64)> = Vec::new();
    let mut left_aligned = 0;
    for round in 0..ROUNDS {
        let firsts: Vec<i64> =
            (0..WRITERS).map(|who| (round * WRITERS + who + 1).cast_signed() * 1_000_000).collect();
        let rows: Vec<u64> = firsts.iter().map(|_| 1 + random.below(120)).collect();
        let children: Vec<Child> = firsts.iter().map(|first| start(&path, *first)).collect();
        std::thread::scope(|scope| {
            let killed: Vec<_> = children
                .into_iter()
                .zip(&rows)
                .map(|(child, rows)| scope.spawn(|| kill_after(child, *rows)))
                .collect();
            for (first, killed) in firsts.iter().zip(killed) {
                announced.push((*first, killed.join().unwrap()));
            }
        });
        // A copy goes the other way: recovered, and opened without the extension.
        let copy = folder.path().join("copy");
        copy_crashed(&path, &copy);
        let recovered = onefold_sqlite::recover(&copy).unwrap();
        left_aligned += u32::from(matches!(recovered, onefold_sqlite::Recovered::Converted { .. }));
        let databases = [open(&path, ONEFOLD), open(&copy, STOCK)];
        for database in &databases {
            assert_eq!(text(database, "PRAGMA integrity_check"), "ok", "round {round}");
            for (first, last) in &announced {
                let rows = format!("SELECT count(*) FROM rows WHERE n BETWEEN {first} AND {last}");
                assert_eq!(text(database, &rows), (last - first + 1).to_string(), "round {round}");
            }
        }
        let all = "SELECT count(*) || ':' || sum(length(b)) || ':' || max(n) FROM rows";
        assert_eq!(text(&databases[0], all), text(&databases[1], all), "round {round}");
        drop(databases);
        std::fs::remove_file(&copy).unwrap();
    }
    assert!(left_aligned > 5, "only {left_aligned} rounds left a WAL with commits");
}
