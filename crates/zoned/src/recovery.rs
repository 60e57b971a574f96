//! What opening a volume had to put right.

use crate::error::Lost;

/// What opening a volume had to put right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Blocks of the metadata set that was not taken which differed from the other one.
    pub repaired_blocks: u64,
    /// Zones that no chunk has and that were not empty: they were reset.
    pub reset_zones: u64,
    /// Blocks that are valid but lie behind the write pointer of their zone: a device lost what it had flushed.
    pub lost_blocks: u64,
    /// The first zone with such blocks.
    pub first_lost: Option<Lost>,
    /// Blocks of the metadata that were damaged, and that the other set had.
    pub damaged_blocks: u64,
    /// Blocks of the metadata that were damaged in both sets, and were given up.
    pub lost_metadata: u64,
    /// Chunks whose metadata contradicts itself: their blocks are errors.
    pub damaged_chunks: u64,
}
