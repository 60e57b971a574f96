//! The extension, databases through it and without it, and what they hold.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use onefold_units::Rng;
use rusqlite::{Connection, OpenFlags};

/// The VFS of the extension, and that of SQLite.
pub(crate) const ONEFOLD: &str = "onefold";
pub(crate) const STOCK: &str = "unix";

/// The extension as Cargo has built it for these tests.
pub(crate) fn library() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    folder.join("libonefold_sqlite.so")
}

/// Loads the extension into the SQLite of this process, once.
pub(crate) fn load() {
    static LOADED: OnceLock<()> = OnceLock::new();
    LOADED.get_or_init(load_again);
}

#[expect(unsafe_code, reason = "loading runs code of the library, which is ours")]
pub(crate) fn load_again() {
    let any = Connection::open_in_memory().unwrap();
    // SAFETY: the library is the extension under test.
    unsafe { any.load_extension_enable() }.unwrap();
    // SAFETY: the same.
    unsafe { any.load_extension(library(), None::<&str>) }.unwrap();
}

/// Opens a database through a VFS.
pub(crate) fn open(path: &Path, vfs: &str) -> Connection {
    load();
    Connection::open_with_flags_and_vfs(path, OpenFlags::default(), vfs).unwrap()
}

/// A database in WAL mode with a table.
pub(crate) fn create(path: &Path, vfs: &str, page_bytes: u32) -> Connection {
    let database = open(path, vfs);
    let setup = format!(
        "PRAGMA page_size={page_bytes}; PRAGMA journal_mode=WAL; \
         CREATE TABLE rows(n INTEGER PRIMARY KEY, b BLOB);"
    );
    database.execute_batch(&setup).unwrap();
    database
}

/// The first column of the first row.
pub(crate) fn text(database: &Connection, sql: &str) -> String {
    database.query_row(sql, [], |row| row.get::<_, rusqlite::types::Value>(0)).map_or_else(
        |error| error.to_string(),
        |value| match value {
            rusqlite::types::Value::Text(text) => text,
            rusqlite::types::Value::Integer(number) => number.to_string(),
            other => format!("{other:?}"),
        },
    )
}

/// A number of `PRAGMA onefold`.
pub(crate) fn count(database: &Connection, name: &str) -> u64 {
    let told = text(database, "PRAGMA onefold");
    let value = told.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("no {name} in {told}")).parse().unwrap()
}

/// Rows from `first` on, each with a blob that differs.
pub(crate) fn insert(database: &Connection, first: i64, rows: i64, bytes: usize) {
    database.execute_batch("BEGIN").unwrap();
    for n in first..first + rows {
        database.execute("INSERT OR REPLACE INTO rows VALUES(?, ?)", (n, blob(n, bytes))).unwrap();
    }
    database.execute_batch("COMMIT").unwrap();
}

/// The blob of a row.
pub(crate) fn blob(n: i64, bytes: usize) -> Vec<u8> {
    let mut random = Rng::fork(n.unsigned_abs(), 1);
    std::iter::repeat_with(|| random.next_u64().to_le_bytes()).flatten().take(bytes).collect()
}

/// Files beside a database, by what their names have more.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Copies a database and its WAL, as a crash would leave them. Another process does it: to open and close the database in this
/// one would drop the locks of its connections.
pub(crate) fn copy_crashed(path: &Path, copy: &Path) {
    for ending in ["", "-wal"] {
        let copied =
            Command::new("cp").args([beside(path, ending), beside(copy, ending)]).status().unwrap();
        assert!(copied.success());
    }
}

/// Runs SQL in the `sqlite3` of the system, with the extension or without it.
pub(crate) fn system(path: &Path, is_loaded: bool, sql: &str) -> (bool, String) {
    let mut command = Command::new("sqlite3");
    command.arg("-batch").arg(":memory:");
    if is_loaded {
        command.arg("-cmd").arg(format!(".load {}", library().display()));
    }
    let script = format!(".bail on\n.open {}\n{sql}\n", path.display());
    let output = run(command, &script);
    let told = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&told).trim().to_owned())
}

fn run(mut command: Command, input: &str) -> std::process::Output {
    use std::io::Write;
    use std::process::Stdio;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Says that a test is skipped, or fails if it must run (`ONEFOLD_REQUIRE=sqlite`).
pub(crate) fn skip(why: &str) {
    let required = std::env::var("ONEFOLD_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name == "sqlite"), "required, but {why}");
    eprintln!("skipped: {why}");
}

/// Whether the system has SQLite.
pub(crate) fn has_system_sqlite() -> bool {
    Command::new("sqlite3").arg("--version").output().is_ok()
}
