//! Random SQL on two databases of the same SQLite, one through the extension: each step has the same result, and the files
//! are equal to the byte after a clean close.

use std::path::{Path, PathBuf};

use onefold_units::Rng;
use rusqlite::Connection;

use crate::common::{ONEFOLD, STOCK, blob, count, create, insert, open, text};

const CONNECTIONS: usize = 3;
/// Steps after which commits are of another size.
const PHASE: u64 = 50;
const STEPS: u64 = 250;
pub(crate) const CONTENTS: &str = "SELECT count(*) || ':' || ifnull(sum(n * length(b)), 0) || ':' || \
                        ifnull(group_concat(substr(hex(b), 1, 16)), '') FROM (SELECT * FROM rows ORDER BY n)";

/// Connections on one database.
struct Side<'a> {
    path: &'a Path,
    vfs: &'a str,
    connections: Vec<Connection>,
}

impl<'a> Side<'a> {
    fn new(path: &'a Path, vfs: &'a str, page_bytes: u32) -> Self {
        let first = create(path, vfs, page_bytes);
        let mut side = Self { path, vfs, connections: vec![first] };
        while side.connections.len() < CONNECTIONS {
            side.connections.push(open(path, vfs));
        }
        side.connections.iter().for_each(set_up);
        side
    }

    /// What a statement answers, or its error.
    fn step(&mut self, who: usize, step: &Step) -> String {
        match step {
            Step::Sql(sql) => text(&self.connections[who], sql),
            Step::Put(n, bytes) => self.connections[who]
                .execute("INSERT OR REPLACE INTO rows VALUES(?, ?)", (n, blob(*n, *bytes)))
                .map_or_else(|error| error.to_string(), |rows| rows.to_string()),
            Step::Reopen => {
                let fresh = open(self.path, self.vfs);
                set_up(&fresh);
                self.connections[who] = fresh;
                String::new()
            }
        }
    }
}

fn set_up(connection: &Connection) {
    connection.busy_timeout(std::time::Duration::ZERO).unwrap();
    // Syncs, of which the layout of the next WAL depends, are those of SQLite.
    connection
        .execute_batch(
            "PRAGMA wal_autocheckpoint=40; PRAGMA cache_size=20; PRAGMA synchronous=FULL;",
        )
        .unwrap();
}

#[derive(Debug)]
enum Step {
    Sql(String),
    Put(i64, usize),
    Reopen,
}

/// Commits of one page, each by itself, and a checkpoint now and then.
fn small_step(random: &mut Rng) -> Step {
    match random.below(16) {
        0 => Step::Sql("COMMIT".to_owned()),
        1 => Step::Sql("PRAGMA wal_checkpoint(RESTART)".to_owned()),
        _ => Step::Put(random.below(4).cast_signed(), 9),
    }
}

fn random_step(random: &mut Rng) -> Step {
    let sql = |sql: &str| Step::Sql(sql.to_owned());
    let n = random.below(120).cast_signed();
    match random.below(32) {
        0..12 => Step::Put(n, usize::try_from(random.below(9000)).unwrap()),
        12..14 => Step::Sql(format!("DELETE FROM rows WHERE n BETWEEN {n} AND {n} + 9")),
        14 => Step::Sql(format!("UPDATE rows SET b = zeroblob(5000) WHERE n % 7 = {}", n % 7)),
        15..17 => sql("BEGIN"),
        17 => sql("BEGIN IMMEDIATE"),
        18..21 => sql("COMMIT"),
        21 => sql("ROLLBACK"),
        22 => sql("SAVEPOINT s"),
        23 => sql("ROLLBACK TO s"),
        24 => sql("PRAGMA wal_checkpoint(PASSIVE)"),
        25 => sql("PRAGMA wal_checkpoint(FULL)"),
        26 => sql("PRAGMA wal_checkpoint(RESTART)"),
        27 => sql("PRAGMA wal_checkpoint(TRUNCATE)"),
        28 => sql("PRAGMA journal_size_limit=20000"),
        29 => sql("PRAGMA mmap_size=1000000"),
        30 => sql("VACUUM"),
        _ => Step::Reopen,
    }
}

/// Runs one seed in a folder, and returns the pages that were cloned by connections that were left at the end.
pub(crate) fn compare(folder: &Path, seed: u64, page_bytes: u32) -> u64 {
    let paths = [folder.join(format!("onefold-{seed}")), folder.join(format!("stock-{seed}"))];
    let cloned = compare_steps(&paths, seed, page_bytes);
    let [left, right] = paths.map(|path| std::fs::read(path).unwrap());
    assert!(left == right, "seed {seed}, page size {page_bytes}: the files differ");
    cloned
}

/// The same with databases at these paths, whose files are not compared.
pub(crate) fn compare_steps(paths: &[PathBuf; 2], seed: u64, page_bytes: u32) -> u64 {
    let mut onefold = Side::new(&paths[0], ONEFOLD, page_bytes);
    let mut stock = Side::new(&paths[1], STOCK, page_bytes);
    let mut random = Rng::fork(seed, u64::from(page_bytes));
    for number in 0..STEPS {
        let who = usize::try_from(random.below(3)).unwrap();
        let is_small = number / PHASE % 2 == 1;
        let step = if is_small { small_step(&mut random) } else { random_step(&mut random) };
        let expected = stock.step(who, &step);
        let at = format!("seed {seed}, page size {page_bytes}, step {number}: {who} {step:?}");
        assert_eq!(onefold.step(who, &step), expected, "{at}");
        let reader = usize::try_from(random.below(3)).unwrap();
        assert_eq!(
            text(&onefold.connections[reader], CONTENTS),
            text(&stock.connections[reader], CONTENTS),
            "{at}, read by {reader}"
        );
    }
    let check = text(&onefold.connections[0], "PRAGMA integrity_check");
    assert_eq!(check, text(&stock.connections[0], "PRAGMA integrity_check"));
    onefold.connections.iter().map(|database| count(database, "cloned_pages")).sum()
}

/// Where commits are of one page and synced the WAL is paired from one of its beginnings to the next, and all connections notice.
#[test]
fn layouts_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let mut side = Side::new(&path, ONEFOLD, 4096);
    let layout = |database: &Connection| {
        text(database, "PRAGMA onefold").split(' ').next().unwrap_or_default().to_owned()
    };
    // From then on a row is a page that is there.
    insert(&side.connections[0], 0, 130, 3000);
    let (mut n, mut seen) = (0, Vec::new());
    for (round, rows) in [1, 1, 1, 30, 30, 1, 1, 30].into_iter().enumerate() {
        for _ in 0..20 {
            insert(&side.connections[0], n % 100, rows, 3000);
            n += rows;
        }
        side.step(0, &Step::Sql("PRAGMA wal_checkpoint(RESTART)".to_owned()));
        insert(&side.connections[0], 0, 1, 3000);
        seen.push(layout(&side.connections[0]));
        let contents = text(&side.connections[0], CONTENTS);
        for other in &side.connections[1..] {
            assert_eq!(text(other, CONTENTS), contents, "round {round}");
            assert_eq!(layout(other), seen[round], "round {round}");
        }
    }
    let paired = |seen: &String| seen == "layout=paired";
    let aligned = |seen: &String| seen == "layout=aligned";
    assert!(seen[1..3].iter().all(paired) && aligned(&seen[4]) && paired(&seen[6]), "{seen:?}");
    assert!(aligned(&seen[7]), "{seen:?}");
}

#[test]
fn it_is_sqlite_for_every_page_size() {
    for page_bytes in [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536] {
        let folder = tempfile::tempdir().unwrap();
        for seed in 0..6 {
            compare(folder.path(), seed, page_bytes);
        }
    }
}
