//! Head of every metadata block, 48 B: magic 4 | version 2 | kind 1 | flags 1 | crc 4 | 0 4 | uuid 16
//! | address 8 | generation 8.
//!
//! The crc covers the 4 KiB with these four bytes as zeroes. The address is the index of the block on
//! the backing, which refuses a block that a device wrote to the wrong place. The generation is that
//! of a label or root, and the sequence number of all others.

use super::error::BlockError;
use super::fields::Fields;
use super::kind::{BLOCK_BYTES, BLOCK_VERSION, BlockKind, CRC_AT};
use crate::bytes::Writer;

/// Bytes of the head.
pub(super) const HEAD_BYTES: usize = 48;

pub(super) const MAGIC: u32 = 0x4256_464F; // "OFVB"

/// Head of a metadata block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHead {
    /// What the block is.
    pub kind: BlockKind,
    /// The volume it belongs to.
    pub uuid: [u8; 16],
    /// Index of the block on the backing.
    pub address: u64,
    /// Generation of a label or root, sequence number of all others.
    pub generation: u64,
}

impl BlockHead {
    /// Reads the head of any metadata block, wherever it lies and whosever it is.
    ///
    /// # Errors
    /// [`BlockError::Size`], [`BlockError::NotOurs`], [`BlockError::Version`],
    /// [`BlockError::Checksum`], and [`BlockError::Malformed`] for an unknown kind.
    pub fn read(block: &[u8]) -> Result<Self, BlockError> {
        let (kind, head) = read(block)?;
        let kind = BlockKind::from_code(kind);
        let kind = kind.ok_or(BlockError::Malformed("the kind of the block is unknown"))?;
        Ok(Self { kind, ..head })
    }
}

/// Writes the head into the first 48 bytes and the checksum over all; call it last. Panics if it is
/// not one block.
pub(super) fn seal(block: &mut [u8], head: &BlockHead) {
    assert_eq!(block.len(), BLOCK_BYTES, "bytes of a block");
    let mut writer = Writer::new(&mut block[..HEAD_BYTES]);
    writer.uint(u64::from(MAGIC), 4);
    writer.uint(u64::from(BLOCK_VERSION), 2);
    writer.uint(u64::from(head.kind.code()), 1);
    writer.uint(0, 1);
    writer.uint(0, 4); // crc
    writer.uint(0, 4);
    writer.bytes(&head.uuid);
    writer.uint(head.address, 8);
    writer.uint(head.generation, 8);
    let sum = crate::checksum(block);
    block[CRC_AT..CRC_AT + 4].copy_from_slice(&sum.to_le_bytes());
}

/// The head of a block that has to be of this kind, at this address and, if `uuid` is given, of that
/// volume.
pub(super) fn open(
    block: &[u8],
    expected: BlockKind,
    uuid: Option<&[u8; 16]>,
    address: u64,
) -> Result<BlockHead, BlockError> {
    let (found, head) = read(block)?;
    if found != expected.code() {
        return Err(BlockError::Kind { found, expected });
    }
    if uuid.is_some_and(|uuid| *uuid != head.uuid) {
        return Err(BlockError::OtherVolume { found: head.uuid });
    }
    if head.address != address {
        return Err(BlockError::Misplaced { found: head.address, expected: address });
    }
    Ok(BlockHead { kind: expected, ..head })
}

/// The fields behind the head of a block.
pub(super) fn behind_head(block: &[u8]) -> Fields<'_> {
    Fields::new(block.get(HEAD_BYTES..).unwrap_or(&[]))
}

/// The code of the kind and all else of an intact head; its `kind` is still to be set.
fn read(block: &[u8]) -> Result<(u8, BlockHead), BlockError> {
    if block.len() != BLOCK_BYTES {
        return Err(BlockError::Size { found: block.len() });
    }
    let mut fields = Fields::new(block);
    if fields.u32()? != MAGIC {
        return Err(BlockError::NotOurs);
    }
    let found = fields.u16()?;
    if found != BLOCK_VERSION {
        return Err(BlockError::Version { found });
    }
    let kind = fields.u8()?;
    fields.skip(1)?;
    if fields.u32()? != checksum(block) {
        return Err(BlockError::Checksum);
    }
    fields.skip(4)?;
    let (uuid, address, generation) = (fields.array()?, fields.u64()?, fields.u64()?);
    Ok((kind, BlockHead { kind: BlockKind::Label, uuid, address, generation }))
}

fn checksum(block: &[u8]) -> u32 {
    let sum = crc32c::crc32c_append(crate::checksum(&block[..CRC_AT]), &[0; 4]);
    crc32c::crc32c_append(sum, &block[CRC_AT + 4..])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ADDRESS, UUID, assert_refuses_damage, forged, golden_head};
    use super::{BLOCK_BYTES, BlockError, BlockHead, BlockKind, open};

    fn block() -> Vec<u8> {
        forged(BlockKind::Root, b"content")
    }

    #[test]
    fn golden_head_and_checksum() {
        let block = block();
        assert_eq!(block[..48], golden_head(&block, 2, 7));
        assert_eq!(block[48..55], *b"content");
        let mut zeroed = block.clone();
        zeroed[8..12].fill(0);
        assert_eq!(block[8..12], crate::checksum(&zeroed).to_le_bytes());
        let head = BlockHead { kind: BlockKind::Root, uuid: UUID, address: ADDRESS, generation: 7 };
        assert_eq!(open(&block, BlockKind::Root, Some(&UUID), ADDRESS), Ok(head));
        assert_eq!(open(&block, BlockKind::Root, None, ADDRESS), Ok(head));
        assert_eq!(BlockHead::read(&block), Ok(head));
    }

    #[test]
    fn refusals_tell_what_is_wrong() {
        let block = block();
        assert_refuses_damage(&block, |block| open(block, BlockKind::Root, None, ADDRESS));
        assert_refuses_damage(&block, BlockHead::read);

        let text = |result: Result<BlockHead, BlockError>| result.unwrap_err().to_string();
        assert_eq!(
            text(open(&block, BlockKind::Label, None, ADDRESS)),
            "the block is of kind 2 (root), expected label"
        );
        assert_eq!(
            text(open(&block, BlockKind::Root, Some(&[0xA5; 16]), ADDRESS)),
            "the block belongs to another volume, 6120766f-6c75-6d65-2773-205555494421"
        );
        assert_eq!(
            text(open(&block, BlockKind::Root, Some(&UUID), 7)),
            format!("block 7 holds what was written for block {ADDRESS}: a write went astray")
        );
        assert_eq!(
            text(BlockHead::read(&[0; BLOCK_BYTES])),
            "this is no metadata of a volume: the magic number at byte 0 is missing"
        );
    }

    #[test]
    fn a_kind_of_the_future_is_named() {
        let mut block = block();
        block[6] = 8;
        block[8..12].fill(0);
        let sum = crate::checksum(&block);
        block[8..12].copy_from_slice(&sum.to_le_bytes());
        let expected = BlockKind::Batch;
        let error = BlockError::Kind { found: 8, expected };
        assert_eq!(open(&block, expected, None, ADDRESS), Err(error));
        assert!(matches!(BlockHead::read(&block), Err(BlockError::Malformed(_))));
    }

    #[test]
    fn codes_are_those_of_the_media() {
        for code in 0..=u8::MAX {
            let kind = BlockKind::from_code(code);
            assert_eq!(kind.is_some(), (1..=7).contains(&code) || code == 16);
            assert!(kind.is_none_or(|kind| kind.code() == code));
        }
    }
}
