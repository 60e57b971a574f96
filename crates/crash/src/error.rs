//! Why crash states cannot be had.

use std::io;
use std::path::PathBuf;

use onefold_device::WriteLogError;

/// Why crash states cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CrashError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] WriteLogError),
    /// The disk before the log cannot be read.
    #[error("cannot read the disk before the log, {}: {source}", path.display())]
    Base {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The data of the log cannot be read.
    #[error("cannot read the write log {}: {source}", path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The log writes beyond the disk.
    #[error(
        "entry {entry} ends at byte {end}, and the disk before the log has {size}: it is the log of another disk"
    )]
    Beyond {
        /// The entry, from 1.
        entry: u64,
        /// Where it ends.
        end: u64,
        /// Bytes of the disk.
        size: u64,
    },
    /// No state has such a name.
    #[error("`{found}` is no state: {problem}")]
    Name {
        /// What was found.
        found: String,
        /// What is wrong with it.
        problem: String,
    },
}
