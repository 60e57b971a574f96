//! Why the FTL could not do what it was asked.

use onefold_nand::MediaError;

/// Errors of FTL operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FtlError {
    /// No superblock is free and collection cannot free one: too many went bad.
    #[error("no superblock is free and collecting any would free nothing")]
    NoSpace,
    /// The content of a logical unit is lost.
    #[error("the content of logical unit {lpn} is uncorrectable")]
    Unreadable {
        /// The unit.
        lpn: u32,
    },
    /// A remap cannot be executed; nothing was changed.
    #[error(transparent)]
    Remap(#[from] crate::RemapError),
    /// The medium failed.
    #[error("the medium failed: {0}")]
    Media(#[from] MediaError),
}
