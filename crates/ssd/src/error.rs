//! Why a device cannot be built.

/// Errors of building or recovering a device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Flash and FTL do not fit together.
    #[error(transparent)]
    Ftl(#[from] onefold_ftl::ConfigError),
    /// The buffer cannot work.
    #[error(transparent)]
    Buffer(#[from] onefold_buffer::BufferError),
    /// Recovery failed.
    #[error(transparent)]
    Recovery(#[from] onefold_ftl::RecoverError),
}
