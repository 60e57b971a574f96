//! What can go wrong with a log of writes.

use std::io;
use std::path::PathBuf;

use onefold_format::WriteLogDamage;
use thiserror::Error;

/// Why a log of writes cannot be kept, read or replayed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteLogError {
    /// Its file failed.
    #[error("cannot {action} the write log {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Something is there already.
    #[error("{path} exists; a write log is a new file, and nothing was changed")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// It is no log.
    #[error("{path} is not a write log that can be read: {source}")]
    Super {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: WriteLogDamage,
    },
    /// An entry cannot be one.
    #[error("entry {number} of the write log {path} is damaged: {source}")]
    Entry {
        /// The file.
        path: PathBuf,
        /// Which one.
        number: u64,
        /// What is wrong.
        source: WriteLogDamage,
    },
    /// It ends within an entry.
    #[error(
        "the write log {path} is cut short: entry {number} of {entries} ends at byte {needed}, and the file at {found}"
    )]
    Cut {
        /// The file.
        path: PathBuf,
        /// The first entry that is not there as a whole.
        number: u64,
        /// Entries that the first sector tells of.
        entries: u64,
        /// Where the entry ends.
        needed: u64,
        /// Where the file does.
        found: u64,
    },
    /// There is no such entry.
    #[error("the write log {path} has entries 0 to {}, and not {number}", .entries.wrapping_sub(1))]
    NoEntry {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        number: u64,
        /// Entries that there are.
        entries: u64,
    },
    /// There is no such mark.
    #[error("the write log {path} has no mark {text:?} from entry {from} on")]
    NoMark {
        /// The file.
        path: PathBuf,
        /// Its text.
        text: String,
        /// Where the search began.
        from: u64,
    },
    /// The log is about a larger device.
    #[error(
        "entry {number} of the write log is about bytes {begin} to {end}, and the target has {bytes}; nothing was changed. \
         A log is replayed to a copy of what it was kept of"
    )]
    Outside {
        /// The entry.
        number: u64,
        /// First byte.
        begin: u64,
        /// First byte behind it.
        end: u64,
        /// Bytes of the target.
        bytes: u64,
    },
    /// The target failed.
    #[error("the target failed at entry {number}; what it holds now is of no use")]
    Target {
        /// The entry that was replayed then.
        number: u64,
    },
    /// The text of a mark is too long.
    #[error("a mark of {found} bytes; expected at most {most}")]
    Text {
        /// Bytes.
        found: usize,
        /// What there is room for.
        most: usize,
    },
    /// No log is kept.
    #[error("no write log is kept of this volume: serve it with --write-log FILE")]
    NotKept,
    /// Something that such a log has no words for.
    #[error("a write log cannot tell of {0}")]
    Untold(&'static str),
}
