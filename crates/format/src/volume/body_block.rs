//! A piece of the body of a checkpoint: head 48 | index 4 | bytes 2 | 0 10 | up to 4032 B of the body |
//! 0 ...

use onefold_units::Seq;
use onefold_units::convert::u64_from;

use super::block::{BlockHead, HEAD_BYTES, behind_head, open, seal};
use super::error::BlockError;
use super::kind::{BLOCK_BYTES, BlockKind};
use crate::bytes::Writer;

/// Bytes of the body in a block at most.
pub const BODY_PAYLOAD_BYTES: usize = BLOCK_BYTES - 64;

/// A piece of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyBlock<'a> {
    /// The checkpoint that wrote it.
    pub seq: Seq,
    /// Which piece, from 0.
    pub index: u32,
    /// Its bytes.
    pub payload: &'a [u8],
}

impl<'a> BodyBlock<'a> {
    /// Writes the block that is to lie at `address`. Panics if `block` is not one block or the payload
    /// longer than [`BODY_PAYLOAD_BYTES`].
    pub fn encode(&self, uuid: &[u8; 16], address: u64, block: &mut [u8]) {
        assert!(self.payload.len() <= BODY_PAYLOAD_BYTES, "{} bytes", self.payload.len());
        block.fill(0);
        let mut writer = Writer::new(&mut block[HEAD_BYTES..]);
        writer.uint(u64::from(self.index), 4);
        writer.uint(u64_from(self.payload.len()), 2);
        writer.bytes(&[0; 10]);
        writer.bytes(self.payload);
        let (kind, uuid, generation) = (BlockKind::Body, *uuid, self.seq.raw());
        seal(block, &BlockHead { kind, uuid, address, generation });
    }

    /// Reads the block at `address`.
    ///
    /// # Errors
    /// See [`BlockError`].
    pub fn decode(block: &'a [u8], uuid: &[u8; 16], address: u64) -> Result<Self, BlockError> {
        let head = open(block, BlockKind::Body, Some(uuid), address)?;
        let mut fields = behind_head(block);
        let (index, len) = (fields.u32()?, usize::from(fields.u16()?));
        fields.skip(10)?;
        Ok(Self { seq: Seq::new(head.generation), index, payload: fields.bytes(len)? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        ADDRESS, UUID, assert_refuses_damage, content, forged, golden_head, lie,
    };
    use super::{BODY_PAYLOAD_BYTES, BlockError, BlockKind, BodyBlock};
    use onefold_units::Seq;
    use proptest::prelude::{prop_assert_eq, proptest};

    fn decode(block: &[u8]) -> Result<BodyBlock<'_>, BlockError> {
        BodyBlock::decode(block, &UUID, ADDRESS)
    }

    fn encode(piece: &BodyBlock<'_>) -> Vec<u8> {
        let mut block = vec![0xEE; 4096];
        piece.encode(&UUID, ADDRESS, &mut block);
        block
    }

    #[test]
    fn golden_there_and_back() {
        let piece = BodyBlock { seq: Seq::new(99), index: 0x1234, payload: b"bytes of a body" };
        let block = encode(&piece);
        assert_eq!(block[..48], golden_head(&block, 7, 99));
        assert_eq!(block[48..64], [0x34, 0x12, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(block[64..80], *b"bytes of a body\0");
        assert_eq!(decode(&block), Ok(piece));
        assert_refuses_damage(&block, |block| decode(block).map(|piece| piece.index));

        let full = BodyBlock { payload: &[0xAB; BODY_PAYLOAD_BYTES], ..piece };
        let block = encode(&full);
        assert_eq!(decode(&block), Ok(full));
        // One byte more than there is.
        let index = |block: &[u8]| decode(block).map(|piece| piece.index);
        assert!(lie((BlockKind::Body, &block), (52, 0xC1), index).contains("end within"));
    }

    proptest! {
        #[test]
        fn any_content_is_a_piece_or_refused(content in content(4048)) {
            let block = forged(BlockKind::Body, &content);
            if let Ok(piece) = decode(&block) {
                let again = encode(&piece);
                prop_assert_eq!(decode(&again), Ok(piece));
            }
        }
    }
}
