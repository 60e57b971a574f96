//! `onefold-sqlite`: makes the WAL that a crash left a standard one.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use onefold_sqlite::{RecoverError, Recovered, recover};

const USAGE: &str = "\
usage: onefold-sqlite recover DATABASE

  recover DATABASE   make the WAL that a crash left one that every SQLite reads
  --version          print the version

The database must not be open. Exit codes: 0 done, 1 failed, 2 wrong command line, 5 the database is in use.
";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<Option<&str>> = arguments.iter().map(|word| word.to_str()).collect();
    match (words.as_slice(), arguments.as_slice()) {
        ([Some("--help" | "-h")], _) => print(USAGE),
        ([Some("--version" | "-V")], _) => {
            print(concat!("onefold-sqlite ", env!("CARGO_PKG_VERSION"), "\n"))
        }
        ([Some("recover"), _], [_, database]) => run(Path::new(database)),
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run(database: &Path) -> ExitCode {
    match recover(database) {
        Ok(recovered) => print(&format!("{}: {}\n", database.display(), describe(recovered))),
        Err(error) => {
            eprintln!("onefold-sqlite: {error}");
            ExitCode::from(if matches!(error, RecoverError::InUse { .. }) { 5 } else { 1 })
        }
    }
}

fn describe(recovered: Recovered) -> String {
    match recovered {
        Recovered::NoWal => "has no WAL; nothing to do".to_owned(),
        Recovered::Standard => "has a standard WAL; nothing to do".to_owned(),
        Recovered::Invalid => {
            "has a WAL without a valid header, which SQLite takes for empty; left alone".to_owned()
        }
        Recovered::Removed => "had an aligned WAL without a commit; removed".to_owned(),
        Recovered::Converted { frames, dropped } => format!(
            "has a standard WAL now; frames committed: {frames}, dropped without a commit: {dropped}"
        ),
        _ => "done".to_owned(),
    }
}

fn print(text: &str) -> ExitCode {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
