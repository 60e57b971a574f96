//! A block of a table of the modes `sung` and `han`: head 48 | partition 2 | entries 2 | up to 337 entries of 12 B:
//! original block 4 | flags 4 (1: invalid) | transformed block 4.
//!
//! Entries ascend strictly by these three, within a block and from block to block. The generation in the head is the
//! number of the image, so a block of an older image at the same place is told apart.

use onefold_units::Location;
use onefold_units::convert::u64_from;

use super::block::{BlockHead, HEAD_BYTES, behind_head, open, seal};
use super::error::BlockError;
use super::fields::Fields;
use super::kind::BlockKind;
use crate::bytes::Writer;

/// Entries of a block at most.
pub const TABLE_BLOCK_ENTRIES: usize = 337;

const ENTRY_BYTES: usize = 12;

/// An entry of a table, 12 B as in the papers (Sung 2022, `remap_node`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableEntry {
    /// The block of the exported device.
    pub lba: u32,
    /// Overwritten or trimmed since.
    pub invalid: bool,
    /// The block of the backing.
    pub to: Location,
}

impl TableEntry {
    fn write(self, writer: &mut Writer<'_>) {
        writer.uint(u64::from(self.lba), 4);
        writer.uint(u64::from(self.invalid), 4);
        writer.uint(u64::from(self.to.raw()), 4);
    }

    fn read(fields: &mut Fields<'_>) -> Result<Self, BlockError> {
        let lba = fields.u32()?;
        let invalid = match fields.u32()? {
            0 => false,
            1 => true,
            _ => return Err(BlockError::Malformed("an entry of a table has unknown flags")),
        };
        Ok(Self { lba, invalid, to: fields.location()? })
    }
}

/// A block of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableBlock {
    /// Number of the image.
    pub image: u64,
    /// The partition whose table it is.
    pub partition: u16,
    /// The entries, ascending.
    pub entries: Vec<TableEntry>,
}

impl TableBlock {
    /// Writes the block that is to lie at `address`. Panics if `block` is not one block, or the entries are too many
    /// or out of order.
    pub fn encode(&self, uuid: &[u8; 16], address: u64, block: &mut [u8]) {
        assert!(self.entries.len() <= TABLE_BLOCK_ENTRIES, "{} entries", self.entries.len());
        assert!(self.entries.is_sorted_by(|a, b| a < b), "the entries of a table ascend");
        block.fill(0);
        let mut writer = Writer::new(&mut block[HEAD_BYTES..]);
        writer.uint(u64::from(self.partition), 2);
        writer.uint(u64_from(self.entries.len()), 2);
        for entry in &self.entries {
            entry.write(&mut writer);
        }
        let (kind, uuid, generation) = (BlockKind::Table, *uuid, self.image);
        seal(block, &BlockHead { kind, uuid, address, generation });
    }

    /// Reads the block at `address`.
    ///
    /// # Errors
    /// See [`BlockError`].
    pub fn decode(block: &[u8], uuid: &[u8; 16], address: u64) -> Result<Self, BlockError> {
        let head = open(block, BlockKind::Table, Some(uuid), address)?;
        let mut fields = behind_head(block);
        let (partition, count) = (fields.u16()?, usize::from(fields.u16()?));
        let entries = fields.list(count, ENTRY_BYTES, TableEntry::read)?;
        if !entries.is_sorted_by(|a, b| a < b) {
            return Err(BlockError::Malformed("the entries of a table do not ascend"));
        }
        Ok(Self { image: head.generation, partition, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        ADDRESS, UUID, assert_refuses_damage, content, forged, golden_head, lie,
    };
    use super::{BlockError, BlockKind, TABLE_BLOCK_ENTRIES, TableBlock, TableEntry};
    use onefold_units::Location;
    use proptest::prelude::{prop_assert_eq, proptest};

    fn block(entries: Vec<TableEntry>) -> TableBlock {
        TableBlock { image: 7, partition: 0x0102, entries }
    }

    fn entry(lba: u32, invalid: bool, to: u32) -> TableEntry {
        TableEntry { lba, invalid, to: Location::new(to) }
    }

    fn encoded(entries: Vec<TableEntry>) -> Vec<u8> {
        let mut bytes = vec![0xEE; 4096];
        block(entries).encode(&UUID, ADDRESS, &mut bytes);
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<TableBlock, BlockError> {
        TableBlock::decode(bytes, &UUID, ADDRESS)
    }

    #[test]
    fn golden_there_and_back() {
        let entries = vec![entry(5, false, 9), entry(5, true, 0x0403_0201), entry(6, true, 0)];
        let bytes = encoded(entries.clone());
        assert_eq!(bytes[..48], golden_head(&bytes, 16, 7));
        assert_eq!(bytes[48..52], [2, 1, 3, 0]);
        assert_eq!(bytes[52..64], [5, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0]);
        assert_eq!(bytes[64..76], [5, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4]);
        assert!(bytes[88..].iter().all(|byte| *byte == 0));
        assert_eq!(decode(&bytes), Ok(block(entries)));
        assert_refuses_damage(&bytes, decode);
        let full: Vec<_> = (0..337).map(|n| entry(n, n % 2 == 0, n)).collect();
        assert_eq!(full.len(), TABLE_BLOCK_ENTRIES);
        assert_eq!(decode(&encoded(full.clone())), Ok(block(full)));
    }

    #[test]
    fn content_that_is_no_table_is_refused() {
        let bytes = encoded(vec![entry(5, false, 9), entry(6, false, 10)]);
        let lie = |at, value| lie((BlockKind::Table, &bytes[..]), (at, value), decode);
        assert!(lie(51, 0x7F).contains("longer"));
        assert!(lie(56, 2).contains("flags"));
        assert!(lie(52, 7).contains("ascend"));
    }

    proptest! {
        #[test]
        fn any_content_is_a_table_or_refused(content in content(4048)) {
            if let Ok(table) = decode(&forged(BlockKind::Table, &content)) {
                let mut again = vec![0; 4096];
                table.encode(&UUID, ADDRESS, &mut again);
                prop_assert_eq!(decode(&again), Ok(table));
            }
        }
    }
}
