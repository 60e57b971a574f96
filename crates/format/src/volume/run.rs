//! A block of a delta run: head 48 | run number 8 | records 2 | 0 6 | up to 252 records of 16 B: LBA 5 |
//! birth 3 | location 4 | crc 4.
//!
//! Records ascend strictly by LBA, within a block and from block to block. The location
//! [`Location::UNMAPPED`] unmaps the LBA; with the birth [`PAGE_GONE_BIRTH`] and the first LBA of a
//! map page, it unmaps all of that page, before what the other records say. So a page whose first LBA
//! is mapped again is not said to be gone: its unmapped LBAs have a record each.

use onefold_units::convert::u64_from;
use onefold_units::{Lba, Location, Seq};

use super::block::{BlockHead, HEAD_BYTES, behind_head, open, seal};
use super::error::BlockError;
use super::fields::{BIRTH_LIMIT, Fields, pack_version};
use super::kind::BlockKind;
use super::page::PAGE_ENTRIES;
use crate::bytes::Writer;

/// Records of a block at most.
pub const RUN_BLOCK_RECORDS: usize = 252;

/// The birth that no version has: the record is about a whole page.
pub const PAGE_GONE_BIRTH: u32 = BIRTH_LIMIT - 1;

const RECORD_BYTES: usize = 16;

/// The final state of an LBA that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// Which block of the logical device.
    pub lba: Lba,
    /// Branch that wrote it, 24 bits.
    pub birth: u32,
    /// Where it lies; `UNMAPPED`: nowhere.
    pub location: Location,
    /// CRC-32C of its data.
    pub crc: u32,
}

impl RunRecord {
    /// The record that unmaps the whole page whose first LBA is `lba`.
    #[must_use]
    pub const fn page_gone(lba: Lba) -> Self {
        Self { lba, birth: PAGE_GONE_BIRTH, location: Location::UNMAPPED, crc: 0 }
    }

    /// Whether the whole page that begins at its LBA is unmapped.
    #[must_use]
    pub fn is_page_gone(&self) -> bool {
        self.birth == PAGE_GONE_BIRTH
    }

    /// Whether its birth may stand with its LBA and location.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let first = self.lba.raw().is_multiple_of(u64_from(PAGE_ENTRIES));
        !self.is_page_gone() || (first && self.location == Location::UNMAPPED)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.uint(pack_version(self.lba, self.birth), 8);
        writer.uint(u64::from(self.location.raw()), 4);
        writer.uint(u64::from(self.crc), 4);
    }

    fn read(fields: &mut Fields<'_>) -> Result<Self, BlockError> {
        let (lba, birth) = fields.version()?;
        Ok(Self { lba, birth, location: fields.location()?, crc: fields.u32()? })
    }
}

/// A block of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunBlock {
    /// The checkpoint that wrote it.
    pub seq: Seq,
    /// Number of the run.
    pub run: u64,
    /// The records, ascending.
    pub records: Vec<RunRecord>,
}

impl RunBlock {
    /// Writes the block that is to lie at `address`. Panics if `block` is not one block, or the records
    /// are too many, out of order, or not valid.
    pub fn encode(&self, uuid: &[u8; 16], address: u64, block: &mut [u8]) {
        assert!(self.records.len() <= RUN_BLOCK_RECORDS, "{} records", self.records.len());
        if let Err(error) = check(&self.records) {
            panic!("run {}: {error}", self.run);
        }
        block.fill(0);
        let mut writer = Writer::new(&mut block[HEAD_BYTES..]);
        writer.uint(self.run, 8);
        writer.uint(u64_from(self.records.len()), 2);
        writer.uint(0, 6);
        for record in &self.records {
            record.write(&mut writer);
        }
        let (kind, uuid, generation) = (BlockKind::Run, *uuid, self.seq.raw());
        seal(block, &BlockHead { kind, uuid, address, generation });
    }

    /// Reads the block at `address`.
    ///
    /// # Errors
    /// See [`BlockError`].
    pub fn decode(block: &[u8], uuid: &[u8; 16], address: u64) -> Result<Self, BlockError> {
        let head = open(block, BlockKind::Run, Some(uuid), address)?;
        let mut fields = behind_head(block);
        let (run, count) = (fields.u64()?, usize::from(fields.u16()?));
        fields.skip(6)?;
        let records = fields.list(count, RECORD_BYTES, RunRecord::read)?;
        check(&records)?;
        Ok(Self { seq: Seq::new(head.generation), run, records })
    }
}

fn check(records: &[RunRecord]) -> Result<(), BlockError> {
    if !records.is_sorted_by(|a, b| a.lba < b.lba) {
        return Err(BlockError::Malformed("the records of a run do not ascend by LBA"));
    }
    if !records.iter().all(RunRecord::is_valid) {
        return Err(BlockError::Malformed("a record says that a page is gone, but not which"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        ADDRESS, UUID, assert_refuses_damage, content, forged, golden_head, lie,
    };
    use super::{BlockError, BlockKind, PAGE_GONE_BIRTH, RUN_BLOCK_RECORDS, RunBlock, RunRecord};
    use onefold_units::{Lba, Location, Seq};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn decode(block: &[u8]) -> Result<RunBlock, BlockError> {
        RunBlock::decode(block, &UUID, ADDRESS)
    }

    fn encode(run: &RunBlock) -> Vec<u8> {
        let mut block = vec![0xEE; 4096];
        run.encode(&UUID, ADDRESS, &mut block);
        block
    }

    fn record(lba: u64, birth: u32) -> RunRecord {
        RunRecord { lba: Lba::new(lba), birth, location: Location::new(0x0D0C_0B0A), crc: 0xABCD }
    }

    fn run(records: Vec<RunRecord>) -> RunBlock {
        RunBlock { seq: Seq::new(99), run: 0x1234, records }
    }

    #[test]
    fn golden_there_and_back() {
        let gone = RunRecord::page_gone(Lba::new(2048 << 20));
        assert!(gone.is_page_gone() && gone.is_valid());
        let last = RunRecord { location: Location::UNMAPPED, ..record((1 << 40) - 1, 0) };
        let run = run(vec![record(0x01_0203, 0x00AA_BBCC), gone, last]);
        let block = encode(&run);
        assert_eq!(block[..48], golden_head(&block, 5, 99));
        assert_eq!(block[48..64], [0x34, 0x12, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(block[64..80], *b"\x03\x02\x01\0\0\xCC\xBB\xAA\x0A\x0B\x0C\x0D\xCD\xAB\0\0");
        assert_eq!(block[80..96], *b"\0\0\0\x80\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0\0\0");
        assert_eq!(block[96..108], *b"\xFF\xFF\xFF\xFF\xFF\0\0\0\xFF\xFF\xFF\xFF");
        assert!(block[112..].iter().all(|byte| *byte == 0));
        assert_eq!(decode(&block), Ok(run));
        assert_refuses_damage(&block, decode);
    }

    #[test]
    fn a_block_holds_none_to_252() {
        for count in [0, RUN_BLOCK_RECORDS] {
            let run = run((0..count).map(|at| record(u64::try_from(at).unwrap(), 1)).collect());
            assert_eq!(decode(&encode(&run)), Ok(run));
        }
    }

    #[test]
    fn content_that_is_no_run_is_refused() {
        let block = encode(&run(vec![record(1, 5), record(2, 5)]));
        let lie = |at, value| lie((BlockKind::Run, &block), (at, value), decode);
        assert!(lie(80, 1).contains("do not ascend"), "the same LBA twice");
        assert!(lie(80, 0).contains("do not ascend"), "a smaller LBA");
        assert!(lie(56, 253).contains("longer"), "one record more than fit");

        let gone = RunRecord::page_gone(Lba::new(1024));
        let mapped = RunRecord { location: Location::new(3), ..gone };
        let inside = RunRecord { lba: Lba::new(1025), ..gone };
        assert!(gone.is_valid() && !mapped.is_valid() && !inside.is_valid());
        let block = encode(&run(vec![gone]));
        let refused = super::super::testing::lie((BlockKind::Run, &block), (64, 1), decode);
        assert!(refused.contains("not which"), "{refused}");
    }

    #[test]
    #[should_panic(expected = "do not ascend")]
    fn records_out_of_order_are_not_written() {
        encode(&run(vec![record(2, 0), record(1, 0)]));
    }

    proptest! {
        #[test]
        fn any_content_is_a_run_or_refused(content in content(4048)) {
            if let Ok(run) = decode(&forged(BlockKind::Run, &content)) {
                prop_assert!(run.records.len() <= RUN_BLOCK_RECORDS);
                prop_assert_eq!(decode(&encode(&run)), Ok(run));
            }
        }

        #[test]
        fn any_records_come_back(
            records in proptest::collection::btree_map(
                0..1_u64 << 40, (0..PAGE_GONE_BIRTH, any::<u32>(), any::<u32>()), 0..=252,
            ),
        ) {
            let record = |(lba, (birth, location, crc))| {
                RunRecord { lba: Lba::new(lba), birth, location: Location::new(location), crc }
            };
            let run = run(records.into_iter().map(record).collect());
            prop_assert_eq!(decode(&encode(&run)), Ok(run));
        }
    }
}
