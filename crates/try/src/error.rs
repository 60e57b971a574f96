//! Why a program cannot be tried.

use std::io;
use std::path::{Path, PathBuf};

use onefold_crash::CrashError;
use onefold_device::WriteLogError;
use onefold_serve::ServeError;
use onefold_units::Status;

/// Why a program cannot be tried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TryError {
    /// A file failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The device failed.
    #[error("cannot {action} the device: {status}")]
    Device {
        /// What was tried.
        action: &'static str,
        /// What it answered.
        status: Status,
    },
    /// There is no tape.
    #[error("{} is no tape: it has no readable `tape.json`: {source}", folder.display())]
    NoTape {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A tape says of itself what cannot be.
    #[error("{} is damaged: {problem}", path.display())]
    About {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// What a program printed cannot be read.
    #[error("line {line} of {} is damaged: expected a number of an entry, a tab and a text", path.display())]
    Printed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// There is something where the tape shall be.
    #[error("{} exists; a tape is a new folder, and nothing was changed", folder.display())]
    TapeExists {
        /// The folder.
        folder: PathBuf,
    },
    /// States cannot be had.
    #[error(transparent)]
    Crash(#[from] CrashError),
    /// The log of writes failed.
    #[error(transparent)]
    Log(#[from] WriteLogError),
    /// The disk cannot be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

impl TryError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}
