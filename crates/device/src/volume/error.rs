//! What can go wrong with a volume.

use std::io;
use std::path::PathBuf;

use onefold_volume::{MountError, ResizeError, ScrubError, SnapshotError};
use thiserror::Error;

use crate::contents::Contents;
use crate::image::DeviceError;
use crate::write_log::WriteLogError;

/// Why a volume cannot be made, opened or closed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VolumeError {
    /// The file failed.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody has it open.
    #[error("{path} is in use: mounted, part of another device, or open in another process")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Something is there already.
    #[error("{path} exists; nothing was changed")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The backing holds something.
    #[error("the backing holds {what}; nothing was changed. Give --force to lose that")]
    Holds {
        /// What it looks like.
        what: Contents,
    },
    /// A size is no whole number of blocks, or too large.
    #[error("{what} of {bytes} B; expected a multiple of {multiple} B{limit}")]
    Size {
        /// What.
        what: &'static str,
        /// Bytes.
        bytes: u64,
        /// Bytes that it has to be a multiple of.
        multiple: u64,
        /// What else is expected.
        limit: &'static str,
    },
    /// A mode does not have an option.
    #[error("mode {mode} {what}")]
    Mode {
        /// The mode.
        mode: &'static str,
        /// What does not go with it.
        what: &'static str,
    },
    /// Served volumes keep what they promise.
    #[error("`paper_flush` loses what was flushed; it is for simulations only")]
    PaperFlush,
    /// The volume cannot be made or opened.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// Only volumes of mode `log` can change their size.
    #[error("a volume of mode {0} keeps its size")]
    KeepsSize(&'static str),
    /// The size cannot be changed.
    #[error(transparent)]
    Resize(#[from] ResizeError),
    /// What the volume lies on has a size of its own.
    #[error("{what} has {found} bytes, and {wanted} are wanted; nothing was changed")]
    FixedSize {
        /// What it is.
        what: &'static str,
        /// Its bytes.
        found: u64,
        /// Bytes that it should have.
        wanted: u64,
    },
    /// Only volumes of mode `log` have snapshots and clones.
    #[error("a volume of this mode has no snapshots and clones; those of mode log have")]
    NoMembers,
    /// Only volumes of mode `log` have checksums of data.
    #[error(
        "a volume of mode {0} has no checksums of data to scrub; `onefold volume check --data` reads it all"
    )]
    NoSums(&'static str),
    /// No scrub can begin.
    #[error(transparent)]
    Scrub(#[from] ScrubError),
    /// A snapshot or clone cannot be made or deleted.
    #[error(transparent)]
    Members(#[from] SnapshotError),
    /// The emulated SSD below failed.
    #[error(transparent)]
    Ssd(DeviceError),
    /// The layer below failed.
    #[error("{0}")]
    Below(Box<dyn std::error::Error + Send + Sync>),
    /// A log of writes cannot be kept.
    #[error(transparent)]
    WriteLog(#[from] WriteLogError),
    /// No identity could be found.
    #[error("cannot find a random identity: {0}")]
    Random(io::Error),
    /// There is no `io_uring`, and nothing else is wanted.
    #[error("io_uring cannot be used: {0}")]
    NoUring(io::Error),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// The backing failed while the volume was served.
    #[error(
        "the backing failed; what was flushed before that is safe. Check the volume before it is used again"
    )]
    Failed,
}
