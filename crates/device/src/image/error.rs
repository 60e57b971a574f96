//! Why an image cannot be made or used.

use std::io;
use std::path::PathBuf;

use onefold_format::ImageError;
use onefold_ftl::RecoverError;
use onefold_ssd::BuildError;
use onefold_ssd::zns::{ZnsError, ZnsRecoverError};
use thiserror::Error;

use crate::media::Held;

/// Errors of making, opening and closing an image.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// There is something already; nothing was changed.
    #[error("{path} exists already and was not changed; choose another name or remove it first")]
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// Another process has the image open.
    #[error("{path} is in use by another process; stop that one first")]
    Busy {
        /// Where.
        path: PathBuf,
    },
    /// Not a regular file.
    #[error("{path} is not a regular file, expected an image made by `onefold ssd create`")]
    NotAFile {
        /// Where.
        path: PathBuf,
    },
    /// The label says that this is no image for this build.
    #[error("{path}: {source}")]
    Label {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        source: ImageError,
    },
    /// Neither copy of the label can be used.
    #[error(
        "{path}: both copies of the label are damaged, expected at least one that is whole; restore \
         the first 128 KiB from a backup"
    )]
    Labels {
        /// Where.
        path: PathBuf,
    },
    /// The file is shorter than the device.
    #[error(
        "{path} has {found} B, expected {expected} B: the image was truncated; restore it from a \
         backup"
    )]
    Truncated {
        /// Where.
        path: PathBuf,
        /// Size found, in bytes.
        found: u64,
        /// Size that the label asks for, in bytes.
        expected: u64,
    },
    /// Label and stored configuration contradict each other.
    #[error(
        "{path}: the label says {label} {what}, but the configuration in it makes {config}; the \
         image was made by another version of Onefold or is damaged"
    )]
    Mismatch {
        /// Where.
        path: PathBuf,
        /// Which number.
        what: &'static str,
        /// In the label.
        label: u64,
        /// From the configuration.
        config: u64,
    },
    /// The configuration is too long for the label.
    #[error("the configuration has {bytes} B as TOML, expected at most {max} B; use fewer tenants")]
    LongConfig {
        /// Its length in bytes.
        bytes: usize,
        /// Largest accepted length.
        max: usize,
    },
    /// The device is larger than a file can be.
    #[error("the device is larger than any file can be; use fewer geometry.blocks")]
    TooLarge,
    /// The device cannot be built or recovered.
    #[error("{path}: {source}")]
    Build {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        source: BuildError,
    },
    /// The zoned namespace cannot be built or recovered.
    #[error("{path}: {source}")]
    Zones {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        source: ZnsRecoverError,
    },
    /// The zoned namespace failed while it was closed: it counts as not cleanly shut down.
    #[error("{path} could not be closed cleanly: {source}; it recovers when it is opened again")]
    CloseZones {
        /// Where.
        path: PathBuf,
        /// What the namespace said.
        source: ZnsError,
    },
    /// The device failed while it looked after its snapshots.
    #[error("{path}: the table of snapshots could not be brought in order: {source}")]
    Snapshots {
        /// Where.
        path: PathBuf,
        /// What the device said.
        source: onefold_ssd::SsdError,
    },
    /// The device failed while it was closed: it counts as not cleanly shut down.
    #[error("{path} could not be closed cleanly: {source}; it recovers when it is opened again")]
    Close {
        /// Where.
        path: PathBuf,
        /// What the device said.
        source: onefold_ssd::SsdError,
    },
    /// The file did not take all that was written: it counts as not cleanly shut down.
    #[error(
        "{path} could not be closed cleanly: {held}; what was not flushed is lost, as in a power cut. Make room or replace \
         the disk, then open it again"
    )]
    Held {
        /// Where.
        path: PathBuf,
        /// What keeps writes from it.
        held: Held,
    },
    /// The device stopped after a fault of its own.
    #[error("{path} stopped after an internal error and was not closed cleanly; open it again")]
    Poisoned {
        /// Where.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl DeviceError {
    /// Whether the configuration is what cannot work.
    #[must_use]
    pub const fn is_infeasible(&self) -> bool {
        match self {
            Self::Build { source: BuildError::Recovery(source), .. } => {
                matches!(source, RecoverError::Model { .. } | RecoverError::PaperMode)
            }
            Self::Zones { source, .. } => matches!(source, ZnsRecoverError::Config(_)),
            Self::Build { .. } | Self::LongConfig { .. } | Self::TooLarge => true,
            _ => false,
        }
    }
}
