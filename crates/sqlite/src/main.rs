//! `onefold-sqlite`: makes the WAL that a crash left a standard one.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use onefold_sqlite::{DeviceError, Disk, RecoverError, Recovered, attach, create, export, recover};

const USAGE: &str = "\
usage: onefold-sqlite recover DATABASE
       onefold-sqlite create DATABASE DISK CONTROL [--wal MIB] [--force]
       onefold-sqlite attach DATABASE DISK CONTROL
       onefold-sqlite export DATABASE COPY

  recover     make the WAL that a crash left one that every SQLite reads
  create      make an empty database on a device, and the file DATABASE that names it; --force loses one that is there
  attach      make the file DATABASE again for the database that a device holds
  export      copy a database from its device to the file COPY, with a standard WAL, for every SQLite
  --version   print the version

DISK and CONTROL are `disk` and `disk.ctl` of `onefold ssd serve --fuse`, or block devices of an NBD export and of its NAME.ctl.
The WAL on a device has 256 MiB unless --wal says otherwise, and not more than a quarter of a small device.
The database must not be open. Exit codes: 0 done, 1 failed, 2 wrong command line, 5 the database is in use.
";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<Option<&str>> = arguments.iter().map(|word| word.to_str()).collect();
    match (words.as_slice(), arguments.as_slice()) {
        ([Some("--help" | "-h")] | [_, Some("--help" | "-h")], _) => print(USAGE),
        ([Some("--version" | "-V")], _) => {
            print(concat!("onefold-sqlite ", env!("CARGO_PKG_VERSION"), "\n"))
        }
        ([Some("recover"), _], [_, database]) => told(Path::new(database), recover_it),
        ([Some("create"), ..], [_, database, disk, control, ..]) => match options(&words[4..]) {
            Some((wal_bytes, is_forced)) => told(Path::new(database), |database| {
                create(database, disk_of(disk, control), wal_bytes, is_forced)?;
                Ok("is an empty database on the device; open it with the extension".to_owned())
            }),
            None => usage(),
        },
        ([Some("attach"), ..], [_, database, disk, control]) => {
            told(Path::new(database), |database| {
                attach(database, disk_of(disk, control))?;
                Ok("is the database that the device holds".to_owned())
            })
        }
        ([Some("export"), ..], [_, database, copy]) => told(Path::new(database), |database| {
            let copied = export(database, Path::new(copy))?;
            let (bytes, frames) = (copied.database_bytes, copied.frames);
            Ok(format!("copied; bytes: {bytes}, frames committed in the WAL: {frames}"))
        }),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprint!("{USAGE}");
    ExitCode::from(2)
}

fn disk_of<'a>(disk: &'a OsString, control: &'a OsString) -> Disk<'a> {
    Disk { disk: Path::new(disk), control: Path::new(control) }
}

/// Bytes of the WAL, if they are given, and whether a database may be lost. `None` if something else is said.
fn options(words: &[Option<&str>]) -> Option<(Option<u64>, bool)> {
    let (mut wal_bytes, mut is_forced) = (None, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            Some("--force") => is_forced = true,
            Some("--wal") => {
                let mib: u64 = words.next().copied().flatten()?.parse().ok()?;
                wal_bytes = Some(mib.checked_mul(1 << 20)?);
            }
            _ => return None,
        }
    }
    Some((wal_bytes, is_forced))
}

/// Does something, and tells how it ended.
fn told(database: &Path, act: impl FnOnce(&Path) -> Result<String, DeviceError>) -> ExitCode {
    match act(database) {
        Ok(text) => print(&format!("{}: {text}\n", database.display())),
        Err(error) => {
            eprintln!("onefold-sqlite: {error}");
            let in_use = matches!(error, DeviceError::Recover(RecoverError::InUse { .. }));
            ExitCode::from(if in_use { 5 } else { 1 })
        }
    }
}

fn recover_it(database: &Path) -> Result<String, DeviceError> {
    Ok(describe(recover(database)?))
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
