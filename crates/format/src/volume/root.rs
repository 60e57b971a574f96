//! The root, which makes a checkpoint valid: head 48 | incarnation 4 | clean 1 | 0 1 | extents 2 |
//! seq 8 | 0 8 | bytes of the body 8 | crc of the body 4 | 0 12 | up to 200 extents
//! of 8 B | 0 ...

use onefold_units::Seq;
use onefold_units::convert::u64_from;

use super::block::{BlockHead, HEAD_BYTES, behind_head};
use super::block::{open, seal};
use super::body_block::BODY_PAYLOAD_BYTES;
use super::error::BlockError;
use super::extent::Extent;
use super::fields::Fields;
use super::kind::{BLOCK_BYTES, BlockKind};
use crate::bytes::Writer;

/// Extents of a body at most.
pub const ROOT_EXTENTS_MAX: usize = 200;

/// Where the body of a checkpoint lies, in its [`BodyBlock`](super::BodyBlock)s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyPlace {
    /// Length of the stream.
    pub bytes: u64,
    /// CRC-32C of the stream.
    pub crc: u32,
    /// The blocks in order, at most 200 extents; together they have room for the stream.
    pub extents: Vec<Extent>,
}

impl BodyPlace {
    /// The place of the stream `body` in `extents`.
    #[must_use]
    pub fn of(body: &[u8], extents: Vec<Extent>) -> Self {
        Self { bytes: u64_from(body.len()), crc: crate::checksum(body), extents }
    }

    /// Whether `body` is the stream that was written.
    ///
    /// # Errors
    /// [`BlockError::Malformed`] if its length or checksum differ.
    pub fn verify(&self, body: &[u8]) -> Result<(), BlockError> {
        if u64_from(body.len()) != self.bytes {
            return Err(BlockError::Malformed("the body is not as long as its root says"));
        }
        if crate::checksum(body) != self.crc {
            return Err(BlockError::Malformed("the body has another checksum than its root says"));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), BlockError> {
        if self.extents.len() > ROOT_EXTENTS_MAX {
            return Err(BlockError::Malformed("the body has more than 200 extents"));
        }
        let blocks: u64 = self.extents.iter().map(|extent| u64::from(extent.blocks)).sum();
        let room = blocks * u64_from(BODY_PAYLOAD_BYTES);
        let malformed = BlockError::Malformed("the extents have no room for the body");
        if self.bytes <= room { Ok(()) } else { Err(malformed) }
    }
}

/// The root of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Counts checkpoints; the valid root with the highest one counts.
    pub generation: u64,
    /// Counts mounts: batches of an earlier one that are not in the log are never replayed.
    pub incarnation: u32,
    /// The checkpoint has the effect of all batches up to this one.
    pub seq: Seq,
    /// The volume was shut down cleanly: nothing follows this checkpoint.
    pub clean: bool,
    /// The rest of the checkpoint.
    pub body: BodyPlace,
}

impl Root {
    /// The bytes for the slot at `address`. Panics if the extents are too many, not valid, or have no
    /// room for the body.
    #[must_use]
    pub fn encode(&self, uuid: &[u8; 16], address: u64) -> Box<[u8; BLOCK_BYTES]> {
        if let Err(error) = self.body.check() {
            panic!("root {}: {error}", self.generation);
        }
        let mut block = Box::new([0; BLOCK_BYTES]);
        self.write(&mut Writer::new(&mut block[HEAD_BYTES..]));
        let (kind, uuid, generation) = (BlockKind::Root, *uuid, self.generation);
        seal(&mut block[..], &BlockHead { kind, uuid, address, generation });
        block
    }

    /// Reads the slot at `address`.
    ///
    /// # Errors
    /// See [`BlockError`].
    pub fn decode(block: &[u8], uuid: &[u8; 16], address: u64) -> Result<Self, BlockError> {
        let head = open(block, BlockKind::Root, Some(uuid), address)?;
        let root = Self::read(head.generation, &mut behind_head(block))?;
        root.body.check()?;
        Ok(root)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.uint(u64::from(self.incarnation), 4);
        writer.uint(u64::from(self.clean), 1);
        writer.uint(0, 1);
        writer.uint(u64_from(self.body.extents.len()), 2);
        writer.uint(self.seq.raw(), 8);
        writer.uint(0, 8);
        writer.uint(self.body.bytes, 8);
        writer.uint(u64::from(self.body.crc), 4);
        writer.bytes(&[0; 12]);
        for extent in &self.body.extents {
            writer.bytes(&extent.to_bytes());
        }
    }

    fn read(generation: u64, fields: &mut Fields<'_>) -> Result<Self, BlockError> {
        let (incarnation, clean) = (fields.u32()?, fields.flag()?);
        fields.skip(1)?;
        let extents = usize::from(fields.u16()?);
        let seq = fields.seq()?;
        fields.skip(8)?;
        let (bytes, crc) = (fields.u64()?, fields.u32()?);
        fields.skip(12)?;
        let extents = fields.list(extents, Extent::BYTES, Extent::read)?;
        let body = BodyPlace { bytes, crc, extents };
        Ok(Self { generation, incarnation, seq, clean, body })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        ADDRESS, UUID, assert_refuses_damage, content, forged, golden_head, lie,
    };
    use super::{BlockError, BlockKind, BodyPlace, Extent, ROOT_EXTENTS_MAX, Root};
    use onefold_units::{Location, Seq};
    use proptest::prelude::{prop_assert_eq, proptest};

    fn extent(location: u32, blocks: u32) -> Extent {
        Extent { location: Location::new(location), blocks }
    }

    fn root() -> Root {
        let extents = vec![extent(0x0403_0201, 2), extent(77, 1)];
        Root {
            generation: 5,
            incarnation: 0x1234,
            seq: Seq::new(0x0807_0605_0403_0201),
            clean: true,
            body: BodyPlace { bytes: 3 * 4032, crc: 0x0D0C_0B0A, extents },
        }
    }

    fn encode(root: &Root) -> Vec<u8> {
        root.encode(&UUID, ADDRESS).to_vec()
    }

    fn decode(block: &[u8]) -> Result<Root, BlockError> {
        Root::decode(block, &UUID, ADDRESS)
    }

    #[test]
    fn golden_there_and_back() {
        let block = encode(&root());
        assert_eq!(block[..48], golden_head(&block, 2, 5));
        assert_eq!(block[48..56], [0x34, 0x12, 0, 0, 1, 0, 2, 0]);
        assert_eq!(block[56..72], [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(block[72..84], [0x40, 0x2F, 0, 0, 0, 0, 0, 0, 10, 11, 12, 13]);
        assert_eq!(block[84..96], [0; 12]);
        assert_eq!(block[96..112], [1, 2, 3, 4, 2, 0, 0, 0, 77, 0, 0, 0, 1, 0, 0, 0]);
        assert!(block[112..].iter().all(|byte| *byte == 0));
        assert_eq!(decode(&block), Ok(root()));
        assert_refuses_damage(&block, decode);
    }

    #[test]
    fn a_body_takes_none_to_200_extents() {
        for count in [0, ROOT_EXTENTS_MAX] {
            let body = BodyPlace { bytes: 0, crc: 0, extents: vec![extent(9, 1); count] };
            let root = Root { body, ..root() };
            assert_eq!(decode(&encode(&root)), Ok(root));
        }
    }

    #[test]
    fn content_that_is_no_root_is_refused() {
        let block = encode(&root());
        let lie = |at, value| lie((BlockKind::Root, &block), (at, value), decode);
        assert!(lie(52, 2).contains("flag"));
        assert!(lie(54, 3).contains("an extent is empty"), "an extent of zeroes");
        assert!(lie(55, 255).contains("longer"));
        assert!(lie(72, 0x41).contains("no room"), "a byte more than three blocks hold");
        let many = BodyPlace { bytes: 0, crc: 0, extents: vec![extent(9, 1); 201] };
        assert!(many.check().is_err());
    }

    #[test]
    #[should_panic(expected = "no room for the body")]
    fn a_root_that_could_not_be_read_is_not_written() {
        encode(&Root { body: BodyPlace::of(&[0; 4033], vec![extent(9, 1)]), ..root() });
    }

    #[test]
    fn the_root_knows_its_body() {
        let body = b"any bytes".to_vec();
        let place = BodyPlace::of(&body, vec![extent(9, 1)]);
        assert_eq!(place.verify(&body), Ok(()));
        assert!(place.verify(&body[1..]).unwrap_err().to_string().contains("as long as"));
        for at in 0..body.len() {
            let mut damaged = body.clone();
            damaged[at] ^= 1;
            assert!(place.verify(&damaged).unwrap_err().to_string().contains("checksum"));
        }
    }

    proptest! {
        #[test]
        fn any_content_is_a_root_or_refused(content in content(4048)) {
            if let Ok(root) = decode(&forged(BlockKind::Root, &content)) {
                prop_assert_eq!(decode(&encode(&root)), Ok(root));
            }
        }
    }
}
