//! How much the members may hold together.
//!
//! The device alone always fits if it is not thin: that is what its size was chosen for. With other members an overwrite can
//! take space and free none, and a thin device can hold less than it exports. So their writes end where the cleaner would begin
//! to move almost full log segments (volume.md, section 5.7), and what their maps may take is left.

/// How full a volume is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Blocks of data that some member has.
    pub data_blocks: u64,
    /// Most of them. With snapshots or clones, or of a thin device, they are fewer than one that is alone and not thin may have, which is
    /// at least what it exports.
    pub capacity_blocks: u64,
}

/// How much data the members may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    /// Once the map is written as compactly as it gets.
    pub(crate) most: u64,
    /// With what checkpoints take now.
    pub(crate) now: u64,
    /// Map pages that had been taken into use when this was measured ([`crate::map::Map::admitted`]).
    pub(crate) pages: u64,
}

impl Capacity {
    /// Not known yet.
    pub(crate) const ANY: Self = Self { most: u64::MAX, now: u64::MAX, pages: 0 };
}
