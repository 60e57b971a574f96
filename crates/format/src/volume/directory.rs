//! A block of a member's directory: head 48 | index 4 | member 4 | 0 8 | 252 entries of 16 B: page 4 |
//! its crc 4 | checksum page 4 | its crc 4.
//!
//! Block `index` has the entries of pages `252 index` to `252 index + 251`. The location of a page that
//! maps nothing is [`Location::UNMAPPED`].

use onefold_units::{Location, Seq};

use super::block::{BlockHead, HEAD_BYTES, behind_head, open, seal};
use super::error::BlockError;
use super::fields::Fields;
use super::kind::BlockKind;
use crate::bytes::Writer;

/// Entries of a directory block.
pub const DIRECTORY_ENTRIES: usize = 252;

/// Where a page of the map lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The page of locations. `UNMAPPED`: there is none, all its LBAs read as zeroes.
    pub page: Location,
    /// CRC-32C of that page.
    pub page_crc: u32,
    /// The page of checksums of the same LBAs.
    pub sums: Location,
    /// CRC-32C of that page.
    pub sums_crc: u32,
}

impl DirectoryEntry {
    /// The entry of a page that maps nothing.
    pub const ABSENT: Self =
        Self { page: Location::UNMAPPED, page_crc: 0, sums: Location::UNMAPPED, sums_crc: 0 };

    fn write(&self, writer: &mut Writer<'_>) {
        for word in [self.page.raw(), self.page_crc, self.sums.raw(), self.sums_crc] {
            writer.uint(u64::from(word), 4);
        }
    }

    fn read(fields: &mut Fields<'_>) -> Result<Self, BlockError> {
        let (page, page_crc) = (fields.location()?, fields.u32()?);
        let (sums, sums_crc) = (fields.location()?, fields.u32()?);
        Ok(Self { page, page_crc, sums, sums_crc })
    }
}

/// A block of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryBlock {
    /// The checkpoint that wrote it.
    pub seq: Seq,
    /// Which block of the directory, from 0.
    pub index: u32,
    /// Whose directory.
    pub member: u32,
    /// The pages.
    pub entries: Box<[DirectoryEntry; DIRECTORY_ENTRIES]>,
}

impl DirectoryBlock {
    /// Writes the block that is to lie at `address`. Panics if `block` is not one block.
    pub fn encode(&self, uuid: &[u8; 16], address: u64, block: &mut [u8]) {
        let mut writer = Writer::new(&mut block[HEAD_BYTES..]);
        writer.uint(u64::from(self.index), 4);
        writer.uint(u64::from(self.member), 4);
        writer.uint(0, 8);
        for entry in self.entries.iter() {
            entry.write(&mut writer);
        }
        let (kind, uuid, generation) = (BlockKind::Directory, *uuid, self.seq.raw());
        seal(block, &BlockHead { kind, uuid, address, generation });
    }

    /// Reads the block at `address`.
    ///
    /// # Errors
    /// See [`BlockError`].
    pub fn decode(block: &[u8], uuid: &[u8; 16], address: u64) -> Result<Self, BlockError> {
        let head = open(block, BlockKind::Directory, Some(uuid), address)?;
        let mut fields = behind_head(block);
        let (index, member) = (fields.u32()?, fields.u32()?);
        fields.skip(8)?;
        let mut entries = Box::new([DirectoryEntry::ABSENT; DIRECTORY_ENTRIES]);
        for entry in entries.iter_mut() {
            *entry = DirectoryEntry::read(&mut fields)?;
        }
        Ok(Self { seq: Seq::new(head.generation), index, member, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        ADDRESS, UUID, assert_refuses_damage, content, forged, golden_head,
    };
    use super::{BlockError, BlockKind, DIRECTORY_ENTRIES, DirectoryBlock, DirectoryEntry};
    use onefold_units::{Location, Seq};
    use proptest::prelude::{prop_assert_eq, proptest};

    fn decode(block: &[u8]) -> Result<DirectoryBlock, BlockError> {
        DirectoryBlock::decode(block, &UUID, ADDRESS)
    }

    fn encode(directory: &DirectoryBlock) -> Vec<u8> {
        let mut block = vec![0xEE; 4096];
        directory.encode(&UUID, ADDRESS, &mut block);
        block
    }

    #[test]
    fn golden_there_and_back() {
        let mut entries = Box::new([DirectoryEntry::ABSENT; DIRECTORY_ENTRIES]);
        entries[0] = DirectoryEntry {
            page: Location::new(0x0403_0201),
            page_crc: 0x0807_0605,
            sums: Location::new(0x0C0B_0A09),
            sums_crc: 0x100F_0E0D,
        };
        entries[251].sums_crc = 0xABCD;
        let directory = DirectoryBlock { seq: Seq::new(77), index: 0x1234, member: 0x56, entries };
        let block = encode(&directory);
        assert_eq!(block[..48], golden_head(&block, 4, 77));
        assert_eq!(block[48..64], [0x34, 0x12, 0, 0, 0x56, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(block[64..80], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        assert_eq!(block[80..96], *b"\xFF\xFF\xFF\xFF\0\0\0\0\xFF\xFF\xFF\xFF\0\0\0\0");
        assert_eq!(block[4092..], [0xCD, 0xAB, 0, 0]);
        assert_eq!(decode(&block), Ok(directory));
        assert_refuses_damage(&block, decode);
    }

    proptest! {
        #[test]
        fn any_content_is_a_directory(content in content(4048)) {
            let directory = decode(&forged(BlockKind::Directory, &content)).unwrap();
            prop_assert_eq!(decode(&encode(&directory)), Ok(directory));
        }

        #[test]
        fn any_bytes_are_refused(bytes in content(4096)) {
            decode(&bytes).unwrap_err();
        }
    }
}
