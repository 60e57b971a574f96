//! A delta run in the body: number 8 | members 8 | records 8 | counted 1 | data blocks 4 | index blocks 4
//! | number of extents 4 | extents of 8 B.

use super::BlockError;
use super::extent::Extent;
use super::fields::{Fields, put_count};

/// A delta run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEntry {
    /// Its number; a higher one is newer.
    pub number: u64,
    /// Whose maps it changes: bit `i` is member `i` of the list.
    pub members: u64,
    /// Its records.
    pub records: u64,
    /// The live counts of the log segments have the effect of its records.
    pub counted: bool,
    /// Its [`RunBlock`](super::RunBlock)s.
    pub data_blocks: u32,
    /// Its [`RunIndexBlock`](super::RunIndexBlock)s, behind the others.
    pub index_blocks: u32,
    /// Where they lie, in order.
    pub extents: Vec<Extent>,
}

impl RunEntry {
    pub(super) const BYTES_MIN: usize = 37;

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.members.to_le_bytes());
        bytes.extend(self.records.to_le_bytes());
        bytes.push(u8::from(self.counted));
        bytes.extend(self.data_blocks.to_le_bytes());
        bytes.extend(self.index_blocks.to_le_bytes());
        put_count(bytes, self.extents.len());
        for extent in &self.extents {
            bytes.extend(extent.to_bytes());
        }
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, BlockError> {
        let (number, members, records) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let counted = fields.flag()?;
        let (data_blocks, index_blocks) = (fields.u32()?, fields.u32()?);
        let extents = fields.counted_list(Extent::BYTES, Extent::read)?;
        Ok(Self { number, members, records, counted, data_blocks, index_blocks, extents })
    }
}
