//! Why a device cannot be built.

/// Errors of building or recovering a device.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Flash and FTL do not fit together.
    #[error(transparent)]
    Ftl(#[from] onefold_ftl::ConfigError),
    /// The buffer cannot work.
    #[error(transparent)]
    Buffer(#[from] onefold_buffer::BufferError),
    /// Contents of a buffer are unknown where no bytes are stored.
    #[error(
        "both a buffer and deduplication, or ftl.zeroes = \"unmap\", are configured, expected at most one where no \
         bytes are stored: what leaves the buffer could not be told apart"
    )]
    DedupInBuffer,
    /// Recovery failed.
    #[error(transparent)]
    Recovery(#[from] onefold_ftl::RecoverError),
}
