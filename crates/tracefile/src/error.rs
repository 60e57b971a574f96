//! Why a trace file cannot be used.

use std::io;
use std::path::PathBuf;

use onefold_trace::{DetectError, FitError, ReadError};
use thiserror::Error;

/// Devices that an error names at most.
pub(crate) const NAMES_LISTED: usize = 20;

/// A trace file that cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceFileError {
    /// The operating system says no.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// `open`, `read` or `write`.
        action: &'static str,
        /// Its answer.
        source: io::Error,
    },
    /// Compressed data that cannot be decompressed.
    #[error("{}: {compression} data is damaged or cut off: {source}", .path.display())]
    Compressed {
        /// The file.
        path: PathBuf,
        /// gzip, zstd or xz.
        compression: &'static str,
        /// What the decompressor found.
        source: io::Error,
    },
    /// The file is compressed in a way that is not read.
    #[error(
        "{}: the file is compressed with {compression}, expected a plain file, or gzip, zstd or xz",
        .path.display()
    )]
    Compression {
        /// The file.
        path: PathBuf,
        /// What its first bytes say.
        compression: &'static str,
    },
    /// The format is not known.
    #[error("{}: {source}", .path.display())]
    Detect {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: DetectError,
    },
    /// The records are not what the format says.
    #[error("{}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What and where.
        source: ReadError,
    },
    /// A Parquet file that is damaged or has another schema.
    #[error("{}: Parquet: {problem}", .path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Found and expected.
        problem: String,
    },
    /// Further files for a format that has none.
    #[error(
        "{}: this is {}, expected blktrace: only its files of several CPUs are merged",
        .path.display(), .format.name()
    )]
    NotPerCpu {
        /// The first file.
        path: PathBuf,
        /// Its format.
        format: onefold_trace::Format,
    },
    /// A trace without requests.
    #[error("{}: the trace has no requests, expected at least one", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// No such device.
    #[error(
        "{}: no device is called `{found}`, expected one of {}{}",
        .path.display(), .known.join(", "),
        if .known.len() < NAMES_LISTED { "" } else { ", .." }
    )]
    Device {
        /// The file.
        path: PathBuf,
        /// The name given.
        found: String,
        /// The names there are, at most twenty.
        known: Vec<String>,
    },
    /// The devices do not fit one address space.
    #[error(
        "{}: {devices} devices one after another exceed 2^64 bytes; choose one with --device",
        .path.display()
    )]
    AddressSpace {
        /// The file.
        path: PathBuf,
        /// Their number.
        devices: usize,
    },
    /// Numbers no real trace has: the units are probably others.
    #[error("{}: {what} is {found}, expected {expected}; {proposal}", .path.display())]
    Implausible {
        /// The file.
        path: PathBuf,
        /// The quantity.
        what: &'static str,
        /// Its value with unit.
        found: String,
        /// The limit with unit.
        expected: &'static str,
        /// What to try.
        proposal: String,
    },
    /// The trace is larger than the device.
    #[error("{}: {source}", .path.display())]
    Fit {
        /// The file.
        path: PathBuf,
        /// Sizes.
        source: FitError,
    },
}

impl TraceFileError {
    /// A function that turns an I/O error of `path` into this error.
    pub(crate) fn io(
        path: &std::path::Path,
        action: &'static str,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |source| Self::Io { path, action, source }
    }

    /// Whether the trace is at fault, not the machine: exit code 4.
    #[must_use]
    pub const fn is_bad_trace(&self) -> bool {
        !matches!(self, Self::Io { .. })
    }
}
