//! Errors of a recovery.

use std::io;
use std::path::PathBuf;

/// Why a WAL could not be made standard. It is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// Somebody uses the database.
    #[error("{database} is in use: close the programs that have it open, and try again")]
    InUse {
        /// The database.
        database: PathBuf,
    },
    /// A file cannot be used.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
}
