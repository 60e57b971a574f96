//! The spare areas of a set, which tell recovery how far a zone was written.

use std::collections::BTreeMap;

use onefold_nand::{ERASED_SPARE, Media, MediaError, Spare};
use onefold_units::convert::index;

use super::device::Zns;

/// Spare areas of a set by block.
pub(crate) struct SetSpares {
    pub(crate) blocks: Vec<Spare>,
}

impl SetSpares {
    /// Whether slots are programmed from block `first` on.
    pub(crate) fn is_programmed_from(&self, first: u32) -> bool {
        self.blocks[index(first)..].iter().any(|spare| *spare != ERASED_SPARE)
    }
}

impl<M: Media> Zns<M> {
    /// The spare areas of a set, superblock by superblock.
    pub(crate) fn spares_of(&mut self, set: u32) -> Result<SetSpares, MediaError> {
        let (layout, geometry) = (self.layout, *self.layout.geometry());
        let mut by_superblock = BTreeMap::new();
        for superblock in layout.superblocks(set) {
            by_superblock.insert(superblock, self.nand.media_mut().read_spares(superblock)?);
        }
        let spare = |block| {
            let (superblock, slot) = geometry.split(layout.slot(set, block));
            by_superblock.get(&superblock).and_then(|spares| spares.get(index(slot)).copied())
        };
        let spare = |block| spare(block).unwrap_or(ERASED_SPARE);
        Ok(SetSpares { blocks: (0..self.config.capacity_blocks).map(spare).collect() })
    }
}
