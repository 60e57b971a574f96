//! Why a volume stops taking changes.

/// Why a volume stopped taking changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frozen {
    /// A flush of the backing failed: what is durable is not known.
    Flush,
    /// A write failed, and no zone is left for it.
    Writes,
    /// No checkpoint can be written.
    Checkpoint,
    /// It was closed.
    Closed,
    /// It was opened for reading only.
    ReadOnly,
}
