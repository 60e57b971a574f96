//! Finding what a volume holds when it is opened.

pub(crate) mod replay;

/// What opening a volume came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The volume was closed in good order.
    pub clean: bool,
    /// Batches behind the last root.
    pub batches: u64,
    /// Headers that were read to find them.
    pub headers: u64,
    /// Blocks whose checksums were checked.
    pub checked_blocks: u64,
    /// Map pages that changed.
    pub pages: u64,
    /// Number of the last batch that counts.
    pub seq: u64,
}
