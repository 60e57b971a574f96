//! Checksums of the metadata of a zoned volume of policy `dmz`, which dm-zoned does not know and does not look at.
//!
//! The last blocks of the zones of a metadata set are a table with the CRC-32C of each block of the set, 4 bytes each, 0 for the
//! root record and for blocks that hold nothing. The root record has, in bytes that dm-zoned leaves alone: magic 4 | version 4 |
//! generation 8 | first block of the table 4 | blocks of it that are used 4 | the CRC-32C of each of those 4. They count if the
//! generation is that of the root record: dm-zoned keeps these bytes, but counts on with every flush.

use onefold_units::convert::{index, u32_from, u64_from};

use super::DMZ_BLOCK_BYTES;
use crate::bytes::{Reader, Writer};

/// First bytes, little-endian: "DBZC".
const MAGIC: u32 = 0x435A_4244;
const VERSION: u32 = 1;

/// Where they lie in a root record.
pub(crate) const SUMS_AT: usize = 128;

/// Bytes before the first checksum.
const HEAD_BYTES: usize = 24;

/// Checksums of a block of the table.
pub const DMZ_BLOCK_SUMS: u32 = 1024;

/// Most blocks of the table: a root record has no room for more checksums.
pub const DMZ_SUM_BLOCKS_MAX: u32 = u32_from((DMZ_BLOCK_BYTES - SUMS_AT - HEAD_BYTES) / 4);

/// What a root record says of the checksums of its set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmzSums {
    /// First block of the table, from the start of the set.
    pub first: u32,
    /// Checksum of each block of the table.
    pub tables: Vec<u32>,
}

impl DmzSums {
    /// Writes it where it lies in a root record of this generation. Panics with more than [`DMZ_SUM_BLOCKS_MAX`] blocks.
    pub(crate) fn encode(&self, generation: u64, root: &mut [u8]) {
        let mut writer = Writer::new(&mut root[SUMS_AT..]);
        writer.uint(MAGIC.into(), 4);
        writer.uint(VERSION.into(), 4);
        writer.uint(generation, 8);
        writer.uint(self.first.into(), 4);
        writer.uint(u64_from(self.tables.len()), 4);
        for sum in &self.tables {
            writer.uint((*sum).into(), 4);
        }
    }

    /// What a root record of this generation says; `None` if it has none that count.
    pub(crate) fn decode(generation: u64, root: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(root.get(SUMS_AT..)?);
        let mut word = || reader.u32();
        let known = word()? == MAGIC && word()? == VERSION;
        let found = u64::from(word()?) | u64::from(word()?) << 32;
        let (first, blocks) = (word()?, word()?);
        if !known || found != generation || blocks > DMZ_SUM_BLOCKS_MAX {
            return None;
        }
        let tables = (0..index(blocks)).map(|_| word()).collect::<Option<_>>()?;
        Some(Self { first, tables })
    }
}
