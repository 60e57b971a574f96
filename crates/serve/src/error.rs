//! Why serving fails.

use std::io;
use std::path::PathBuf;

use onefold_device::WriteLogError;
use onefold_units::Status;
use thiserror::Error;

use crate::nbd::ListenError;

/// Why serving failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// No front end was chosen.
    #[error("nothing to serve on; choose an NBD endpoint or a FUSE directory")]
    NoFrontend,
    /// The name of the device cannot be an export name.
    #[error("the device name has {bytes} bytes, expected 1 to 4096")]
    Name {
        /// Its length.
        bytes: usize,
    },
    /// A socket could not be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The FUSE file system could not be mounted.
    #[error(
        "cannot mount on {mountpoint}: {source}; expected an empty directory, /dev/fuse, and \
         either root or the program fusermount3"
    )]
    Mount {
        /// Where.
        mountpoint: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A server that was killed left its mount there.
    #[error(
        "{mountpoint} is still the mount of a server that is gone: unmount it, as with `umount --lazy {mountpoint}`"
    )]
    DeadMount {
        /// Where.
        mountpoint: PathBuf,
    },
    /// The file for the recording could not be made. An existing file is not overwritten.
    #[error("cannot record to {path}: {source}; choose a file that does not exist yet")]
    Record {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The recording ended early.
    #[error("the recording is incomplete: {source}; what was written before can be read")]
    Recording {
        /// What the system said.
        source: io::Error,
    },
    /// The log of what was written ended early.
    #[error("the log is incomplete: {0}; what was written before can be read")]
    Log(#[from] WriteLogError),
    /// The system refused something.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The last flush failed: what was written since the flush before may be lost.
    #[error("the final flush failed, as {status}; check the image before it is used again")]
    Flush {
        /// What the device said.
        status: Status,
    },
}
