//! A tape: everything that a disk was asked in one run, with its data.
//!
//! A folder, every part of it in a form that other tools read:
//!
//! | file | content |
//! |---|---|
//! | `requests.oft` | every request: arrival, latency, kind, FUA, client |
//! | `writes.log` | writes, trims, flushes and marks with their data, in the form of dm-log-writes |
//! | `base.img` | the disk before, sparse |
//! | `stdout.log`, `stderr.log` | what the program printed: the last entry of the log when a line was read, a tab, the line |
//! | `tape.json` | [`About`]: what ran, on what, and how it ended |
//! | `owners.json` | which file had which bytes when the log had so many entries; of `onefold try` |
//! | `account.json` | what it cost, hop by hop; of `onefold try` |
//!
//! A tape that is cut short, as its server was killed or the disk was full, holds up to the last whole entry of each part.

mod about;
mod base;
mod keep;
mod printed;

use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use onefold_crash::Log;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use about::{About, FileSystemOf, ProgramRun};
pub use base::copy;
pub use keep::{Kept, keep};
pub use printed::{Line, Printed, lines};

use crate::TryError;

/// The requests of a tape.
pub const REQUESTS: &str = "requests.oft";
/// Its writes, with data.
pub const WRITES: &str = "writes.log";
/// The disk before.
pub const BASE: &str = "base.img";
/// What the program printed.
pub const STDOUT: &str = "stdout.log";
/// What it complained of.
pub const STDERR: &str = "stderr.log";
/// What ran.
pub const ABOUT: &str = "tape.json";
/// Which file had which bytes, by entries of the log.
pub const OWNERS: &str = "owners.json";
/// What it cost.
pub const ACCOUNT: &str = "account.json";

/// A tape that was kept.
#[derive(Clone, Debug)]
pub struct Tape {
    folder: PathBuf,
    about: About,
}

impl Tape {
    /// Opens the tape in a folder.
    ///
    /// # Errors
    /// There is none, or what it says of itself cannot be read.
    pub fn open(folder: &Path) -> Result<Self, TryError> {
        let about = About::read(&folder.join(ABOUT))?;
        Ok(Self { folder: folder.to_owned(), about })
    }

    /// Whether a path is a folder with a tape.
    #[must_use]
    pub fn is_at(path: &Path) -> bool {
        path.join(ABOUT).is_file()
    }

    /// What ran.
    #[must_use]
    pub const fn about(&self) -> &About {
        &self.about
    }

    /// The recording of its requests.
    #[must_use]
    pub fn requests(&self) -> PathBuf {
        self.folder.join(REQUESTS)
    }

    /// The disk before.
    #[must_use]
    pub fn base(&self) -> PathBuf {
        self.folder.join(BASE)
    }

    /// Its writes, with data.
    #[must_use]
    pub fn writes(&self) -> PathBuf {
        self.folder.join(WRITES)
    }

    /// Its writes, as an index from which crash states are made.
    ///
    /// # Errors
    /// The log or the disk before cannot be read.
    pub fn log(&self) -> Result<Log, TryError> {
        Ok(Log::open(&self.writes(), &self.base())?)
    }

    /// Keeps something more in a file of the tape.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn keep(&self, name: &str, value: &impl Serialize) -> Result<(), TryError> {
        let path = self.folder.join(name);
        let failed = TryError::io("write", &path);
        let file = File::create(&path).map_err(&failed)?;
        let mut file = BufWriter::new(file);
        serde_json::to_writer(&mut file, value).map_err(|error| failed(error.into()))?;
        file.flush().map_err(failed)
    }

    /// What was kept in a file; `None` if it is not there.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else.
    pub fn kept<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, TryError> {
        let path = self.folder.join(name);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(TryError::io("read", &path)(source)),
        };
        let value = serde_json::from_reader(BufReader::new(file));
        value.map(Some).map_err(|error| TryError::About { path, problem: error.to_string() })
    }

    /// The lines that the program printed to standard output; none if there was no program.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn printed(&self) -> Result<Vec<Line>, TryError> {
        lines(&self.folder.join(STDOUT))
    }
}
