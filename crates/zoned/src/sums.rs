//! Checksums of the metadata, as they are stored ([`onefold_format::DmzSums`]).

use std::collections::BTreeSet;

use onefold_format::{DMZ_BLOCK_BYTES, DMZ_BLOCK_SUMS, DMZ_SUM_BLOCKS_MAX, DmzSums, checksum};
use onefold_units::convert::{index, u32_from};

/// A block of a metadata set, from its start, and its bytes.
pub(crate) type Block = (u32, Vec<u8>);

/// The checksum of each block of a metadata set.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// First block of the table.
    first: u32,
    list: Vec<u32>,
    /// They are not stored.
    is_new: bool,
    /// Whether there are any: a volume whose requests carry no bytes has none.
    is_on: bool,
}

impl Sums {
    /// Those of a set that was read, root record first. `is_new`: they are not stored yet.
    pub(crate) fn of(first: u32, set: &[u8], is_new: bool) -> Self {
        let mut sums: Vec<u32> = set.chunks(DMZ_BLOCK_BYTES).map(checksum).collect();
        if let Some(root) = sums.first_mut() {
            *root = 0;
        }
        Self { first, list: sums, is_new, is_on: true }
    }

    pub(crate) const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Blocks of a set change, which has `count` blocks from now on. Gives the blocks of the table that have to be written, and what
    /// the root record says; nothing if there is no room.
    pub(crate) fn update(&mut self, blocks: &[Block], count: u32) -> (Vec<Block>, Option<DmzSums>) {
        if !self.is_on {
            return (Vec::new(), None);
        }
        let is_new = std::mem::take(&mut self.is_new);
        let mut changed: BTreeSet<u32> = BTreeSet::new();
        if is_new || self.list.len() != index(count) {
            changed.extend(0..count.div_ceil(DMZ_BLOCK_SUMS));
        }
        self.list.resize(index(count), 0);
        for (block, bytes) in blocks {
            self.list[index(*block)] = checksum(bytes);
            changed.insert(block / DMZ_BLOCK_SUMS);
        }
        let Some(stored) = self.stored() else {
            // They are new again when there is room.
            self.is_new = false;
            return (Vec::new(), None);
        };
        let blocks = changed.into_iter().map(|at| (self.first + at, self.table(at))).collect();
        (blocks, Some(stored))
    }

    /// What the root record says; `None` if there is no room.
    pub(crate) fn stored(&self) -> Option<DmzSums> {
        let tables = u32_from(self.list.len()).div_ceil(DMZ_BLOCK_SUMS);
        let fits = u32_from(self.list.len()) <= self.first && tables <= DMZ_SUM_BLOCKS_MAX;
        let tables = || (0..tables).map(|at| checksum(&self.table(at))).collect();
        (self.is_on && fits).then(|| DmzSums { first: self.first, tables: tables() })
    }

    /// All blocks of the table.
    pub(crate) fn tables(&self) -> impl Iterator<Item = Block> + '_ {
        let count = self.stored().map_or(0, |stored| u32_from(stored.tables.len()));
        (0..count).map(|at| (self.first + at, self.table(at)))
    }

    fn table(&self, at: u32) -> Vec<u8> {
        let sums = self.list[index(at * DMZ_BLOCK_SUMS)..].iter().take(index(DMZ_BLOCK_SUMS));
        let mut bytes: Vec<u8> = sums.flat_map(|sum| sum.to_le_bytes()).collect();
        bytes.resize(DMZ_BLOCK_BYTES, 0);
        bytes
    }
}
