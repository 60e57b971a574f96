//! Blocks that a request of the host is about.

use onefold_units::Lba;

/// Most blocks of a read, and of a write unless log segments are short ([`crate::Volume::write_blocks_max`]).
pub const REQUEST_BLOCKS_MAX: u32 = 255;

/// Blocks of the host, from `lba` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First block.
    pub lba: Lba,
    /// Blocks.
    pub blocks: u64,
}
