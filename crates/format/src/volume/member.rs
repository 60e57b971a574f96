//! A member of a volume's family in the body: id 4 | parent 4 | flags 4 | birth 4 | seq 8 | epoch 8 |
//! logical blocks 8 | mapped 8 | name 32 | number of directory blocks 4 | for each: location 4, crc 4.

use onefold_units::{Location, Seq};

use super::BlockError;
use super::fields::{BIRTH_LIMIT, Fields, LBA_LIMIT, put_count};
use super::name::VolumeName;

/// [`Member::flags`]: nothing writes to it.
pub const MEMBER_READ_ONLY: u32 = 1;
/// [`Member::flags`]: it was deleted, and what it alone maps becomes free.
pub const MEMBER_DELETED: u32 = 2;

/// The live device, a snapshot or a clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its number, never given out twice.
    pub id: u32,
    /// The member it was made from.
    pub parent: u32,
    /// What it is: [`MEMBER_READ_ONLY`], [`MEMBER_DELETED`].
    pub flags: u32,
    /// The branch that its writes belong to, 24 bits.
    pub birth: u32,
    /// It was made when this was the last batch.
    pub seq: Seq,
    /// Log segments that the host fills from this allocation on hold nothing that it shares with its parent.
    pub epoch: u64,
    /// Its size in blocks of 4 KiB, at most 2^40.
    pub logical_blocks: u64,
    /// Blocks that it maps.
    pub mapped: u64,
    /// What its owner calls it.
    pub name: VolumeName,
    /// The blocks of its directory, in order.
    pub directory: Vec<DirectoryPlace>,
}

/// Where a directory block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryPlace {
    /// The block.
    pub location: Location,
    /// CRC-32C of the block.
    pub crc: u32,
}

impl Member {
    pub(super) const BYTES_MIN: usize = 84;

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        if let Err(error) = self.check() {
            panic!("member {}: {error}", self.id);
        }
        for word in [self.id, self.parent, self.flags, self.birth] {
            bytes.extend(word.to_le_bytes());
        }
        for word in [self.seq.raw(), self.epoch, self.logical_blocks, self.mapped] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.name.to_bytes());
        put_count(bytes, self.directory.len());
        for place in &self.directory {
            bytes.extend(place.location.raw().to_le_bytes());
            bytes.extend(place.crc.to_le_bytes());
        }
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, BlockError> {
        let (id, parent) = (fields.u32()?, fields.u32()?);
        let (flags, birth) = (fields.u32()?, fields.u32()?);
        let (seq, epoch) = (fields.seq()?, fields.u64()?);
        let (logical_blocks, mapped) = (fields.u64()?, fields.u64()?);
        let name = VolumeName::read(fields)?;
        let directory = fields.counted_list(8, |fields| {
            Ok(DirectoryPlace { location: fields.location()?, crc: fields.u32()? })
        })?;
        let member =
            Self { id, parent, flags, birth, seq, epoch, logical_blocks, mapped, name, directory };
        member.check()?;
        Ok(member)
    }

    fn check(&self) -> Result<(), BlockError> {
        if self.birth >= BIRTH_LIMIT {
            return Err(BlockError::Malformed("the birth of a member has more than 24 bits"));
        }
        if self.logical_blocks > LBA_LIMIT {
            return Err(BlockError::Malformed("a member has more than 2^40 logical blocks"));
        }
        Ok(())
    }
}
