//! Blocks that members have in common.

use onefold_units::Lba;

use super::Spot;
use crate::map::Map;

/// Whether some member's entry points at a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Yes,
    No,
    /// A page of the map that may point at it cannot be read.
    Unread,
}

impl Spot {
    /// Its LBA as the map counts.
    #[inline]
    pub(crate) const fn in_map(self) -> Lba {
        Map::lba_of(self.slot, self.lba)
    }
}
