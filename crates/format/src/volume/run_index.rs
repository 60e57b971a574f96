//! The index of a delta run: head 48 | run number 8 | entries 2 | 0 6 | up to 504 entries of 8 B: the
//! first LBA of each block of the run, ascending strictly.

use onefold_units::convert::u64_from;
use onefold_units::{Lba, Seq};

use super::block::{BlockHead, HEAD_BYTES, behind_head, open, seal};
use super::error::BlockError;
use super::fields::LBA_LIMIT;
use super::kind::BlockKind;
use crate::bytes::Writer;

/// Entries of a block of an index at most.
pub const RUN_INDEX_ENTRIES: usize = 504;

/// A block of the index of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunIndexBlock {
    /// The checkpoint that wrote it.
    pub seq: Seq,
    /// Number of the run.
    pub run: u64,
    /// First LBA of each block of the run.
    pub first: Vec<Lba>,
}

impl RunIndexBlock {
    /// Writes the block that is to lie at `address`. Panics if `block` is not one block, or the entries
    /// are too many, out of order, or no LBAs.
    pub fn encode(&self, uuid: &[u8; 16], address: u64, block: &mut [u8]) {
        assert!(self.first.len() <= RUN_INDEX_ENTRIES, "{} entries", self.first.len());
        if let Err(error) = check(&self.first) {
            panic!("run {}: {error}", self.run);
        }
        block.fill(0);
        let mut writer = Writer::new(&mut block[HEAD_BYTES..]);
        writer.uint(self.run, 8);
        writer.uint(u64_from(self.first.len()), 2);
        writer.uint(0, 6);
        for lba in &self.first {
            writer.uint(lba.raw(), 8);
        }
        let (kind, uuid, generation) = (BlockKind::RunIndex, *uuid, self.seq.raw());
        seal(block, &BlockHead { kind, uuid, address, generation });
    }

    /// Reads the block at `address`.
    ///
    /// # Errors
    /// See [`BlockError`].
    pub fn decode(block: &[u8], uuid: &[u8; 16], address: u64) -> Result<Self, BlockError> {
        let head = open(block, BlockKind::RunIndex, Some(uuid), address)?;
        let mut fields = behind_head(block);
        let (run, count) = (fields.u64()?, usize::from(fields.u16()?));
        fields.skip(6)?;
        let first = fields.list(count, 8, |fields| fields.u64().map(Lba::new))?;
        check(&first)?;
        Ok(Self { seq: Seq::new(head.generation), run, first })
    }
}

fn check(first: &[Lba]) -> Result<(), BlockError> {
    let ascending = first.is_sorted_by(|a, b| a < b);
    let known = first.last().is_none_or(|last| last.raw() < LBA_LIMIT);
    let malformed = BlockError::Malformed("the index of a run does not ascend by LBA");
    if ascending && known { Ok(()) } else { Err(malformed) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        ADDRESS, UUID, assert_refuses_damage, content, forged, golden_head, lie,
    };
    use super::{BlockError, BlockKind, RUN_INDEX_ENTRIES, RunIndexBlock};
    use onefold_units::convert::u64_from;
    use onefold_units::{Lba, Seq};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    fn decode(block: &[u8]) -> Result<RunIndexBlock, BlockError> {
        RunIndexBlock::decode(block, &UUID, ADDRESS)
    }

    fn encode(index: &RunIndexBlock) -> Vec<u8> {
        let mut block = vec![0xEE; 4096];
        index.encode(&UUID, ADDRESS, &mut block);
        block
    }

    fn index(first: Vec<u64>) -> RunIndexBlock {
        let first = first.into_iter().map(Lba::new).collect();
        RunIndexBlock { seq: Seq::new(99), run: 0x1234, first }
    }

    #[test]
    fn golden_there_and_back() {
        let index = index(vec![0x0403_0201, (1 << 40) - 1]);
        let block = encode(&index);
        assert_eq!(block[..48], golden_head(&block, 6, 99));
        assert_eq!(block[48..64], [0x34, 0x12, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(block[64..80], *b"\x01\x02\x03\x04\0\0\0\0\xFF\xFF\xFF\xFF\xFF\0\0\0");
        assert!(block[80..].iter().all(|byte| *byte == 0));
        assert_eq!(decode(&block), Ok(index));
        assert_refuses_damage(&block, decode);
    }

    #[test]
    fn a_block_holds_none_to_504() {
        for count in [0, RUN_INDEX_ENTRIES] {
            let index = index((0..u64_from(count)).map(|at| at * 9).collect());
            assert_eq!(decode(&encode(&index)), Ok(index));
        }
    }

    #[test]
    fn content_that_is_no_index_is_refused() {
        let block = encode(&index(vec![1, 2]));
        let lie = |at, value| lie((BlockKind::RunIndex, &block), (at, value), decode);
        assert!(lie(72, 1).contains("does not ascend"), "the same LBA twice");
        assert!(lie(77, 1).contains("does not ascend"), "an LBA of 41 bits");
        assert!(lie(57, 2).contains("longer"), "more entries than fit");
    }

    proptest! {
        #[test]
        fn any_content_is_an_index_or_refused(content in content(4048)) {
            if let Ok(index) = decode(&forged(BlockKind::RunIndex, &content)) {
                prop_assert!(index.first.len() <= RUN_INDEX_ENTRIES);
                prop_assert_eq!(decode(&encode(&index)), Ok(index));
            }
        }

        #[test]
        fn any_entries_come_back(
            first in proptest::collection::btree_set(0..1_u64 << 40, 0..=504),
        ) {
            let index = index(first.into_iter().collect());
            prop_assert_eq!(decode(&encode(&index)), Ok(index));
        }
    }
}
