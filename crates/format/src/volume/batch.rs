//! Header of a batch, one block before its data: head 48 | stream 1 | records 1 | attempt 2 | log
//! segment 4 | epoch 8 | incarnation 4 | data blocks 2 | padding blocks 2 | trims 2 | moved blocks 2 | packed 1 | 0 1 |
//! pack 2 | durable seq 8 | stored blocks 2 | 0 6 | records, one for each data block | records of moved blocks | places,
//! if it is packed | trims | 0 .. | the pack in the header, from byte `pack` on
//!
//! The generation in the head is the sequence number of the batch. The headers of a log segment are its
//! chain: the next one lies behind the data, moved and padding blocks of this one. They are the journal of the
//! volume (volume.md, section 5.2). Where it is packed, each block has a place of 2 B: blocks behind the header 1 | slot 1.

use onefold_units::convert::{u32_from, u64_from};
use onefold_units::{Location, LogSegmentId, Seq};

use super::batch_records::{
    BatchRecords, CleanRecord, DataRecord, FIXED_BYTES, RecordList, Records, TrimRecord, Version,
    read_all, records_room, trims_max, write_all,
};
use super::block::{BlockHead, HEAD_BYTES, MAGIC, behind_head, open, seal};
use super::error::BlockError;
use super::fields::Fields;
use super::kind::{BLOCK_BYTES, BlockKind};
use super::pack::{Packing, Place, Slot};
use crate::bytes::Writer;

/// Byte of a header that says where its pack is.
const PACK_AT: usize = HEAD_BYTES + 30;

/// What a batch header says besides its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Place of the batch in the one order over all streams.
    pub seq: Seq,
    /// Stream it belongs to.
    pub stream: u8,
    /// Counts the places this batch was written to; the highest one counts.
    pub attempt: u16,
    /// Log segment it lies in.
    pub segment: LogSegmentId,
    /// Number of the allocation of that log segment, never given out twice.
    pub epoch: u64,
    /// Counts mounts, as in the root.
    pub incarnation: u32,
    /// Blocks behind the data that only fill the indirection unit.
    pub padding_blocks: u16,
    /// Highest sequence number that was known to be durable when this was written.
    pub durable_seq: Seq,
}

/// The fixed part of a batch header: enough to walk a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPeek {
    /// What it says.
    pub header: BatchHeader,
    /// What its blocks are.
    pub kind: BatchRecords,
    /// Blocks of data, and records.
    pub data_blocks: u16,
    /// Blocks behind them that cleaning moved.
    pub moved: u16,
    /// Trim records.
    pub trims: u16,
    /// Blocks behind the header that hold something, where it has places.
    pub stored: Option<u16>,
    /// Where the pack in the header begins; 0 if there is none.
    pub pack: u16,
}

/// A batch header with its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedBatch {
    /// What it says.
    pub header: BatchHeader,
    /// A record for each block of data.
    pub records: RecordList,
    /// A record for each block behind those that cleaning moved. Only batches of the host have any.
    pub moved: Vec<CleanRecord>,
    /// Ranges trimmed before the data was written.
    pub trims: Vec<TrimRecord>,
    /// Where each block lies, where some are packed; else one lies behind the other.
    pub places: Vec<Place>,
    /// Blocks behind the header that hold something, where there are places.
    pub stored: u32,
}

impl BatchPeek {
    /// Blocks of the batch: header, data, moved blocks and padding. The next header lies that far on.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        let records = u32::from(self.data_blocks) + u32::from(self.moved);
        let data = self.stored.map_or(records, u32::from);
        1 + data + u32::from(self.header.padding_blocks)
    }

    fn records(&self) -> usize {
        usize::from(self.data_blocks) + usize::from(self.moved)
    }

    fn read(seq: Seq, fields: &mut Fields<'_>) -> Result<Self, BlockError> {
        let (stream, kind) = (fields.u8()?, BatchRecords::from_code(fields.u8()?));
        let (attempt, segment) = (fields.u16()?, LogSegmentId::new(fields.u32()?));
        let (epoch, incarnation) = (fields.u64()?, fields.u32()?);
        let (data_blocks, padding_blocks) = (fields.u16()?, fields.u16()?);
        let (trims, moved) = (fields.u16()?, fields.u16()?);
        let packed = fields.u8()? != 0;
        fields.skip(1)?;
        let pack = fields.u16()?;
        let durable_seq = fields.seq()?;
        let stored = Some(fields.u16()?).filter(|_| packed);
        let kind = kind.ok_or(BlockError::Malformed("a batch has records of an unknown kind"))?;
        let stranger = moved > 0 && kind != BatchRecords::Data;
        if stranger || usize::from(data_blocks) + usize::from(moved) > kind.max() {
            return Err(BlockError::Malformed("a batch has more records than fit its header"));
        }
        let records = usize::from(data_blocks) + usize::from(moved);
        let places = if packed { records * Place::BYTES } else { 0 };
        let taken = usize::from(trims) * TrimRecord::BYTES + places;
        if taken > records_room(kind, data_blocks.into(), moved.into()) {
            return Err(BlockError::Malformed("a batch has more trims than fit its header"));
        }
        if stored.is_some_and(|stored| usize::from(stored) > records) {
            return Err(BlockError::Malformed("a batch stores more blocks than it has"));
        }
        let header = BatchHeader {
            seq,
            stream,
            attempt,
            segment,
            epoch,
            incarnation,
            padding_blocks,
            durable_seq,
        };
        Ok(Self { header, kind, data_blocks, moved, trims, stored, pack })
    }

    /// A place where a block of the batch can lie.
    fn place(&self, [offset, slot]: [u8; Place::BYTES]) -> Result<Place, BlockError> {
        let stored = self.stored.unwrap_or(0);
        let slot = Slot::from_code(slot).filter(|slot| {
            let inside = slot.is_packed() && self.pack > 0;
            u16::from(offset) <= stored && (offset > 0 || inside)
        });
        let slot =
            slot.ok_or(BlockError::Malformed("a batch has a block at a place that is none"))?;
        Ok(Place { offset, slot })
    }
}

/// The pack of a block of the backing that has packed blocks: the block itself, or what a batch header keeps of one.
#[must_use]
pub fn pack_of(block: &[u8]) -> &[u8] {
    if !block.starts_with(&MAGIC.to_le_bytes()) {
        return block;
    }
    let at = block.get(PACK_AT..PACK_AT + 2).map_or(0, |at| u16::from_le_bytes([at[0], at[1]]));
    block.get(usize::from(at)..).filter(|_| at > 0).unwrap_or(&[])
}

impl DecodedBatch {
    /// Blocks behind the header that hold something.
    #[must_use]
    pub fn data_blocks(&self) -> u32 {
        if self.places.is_empty() {
            u32_from(self.records.as_records().len() + self.moved.len())
        } else {
            self.stored
        }
    }

    /// Blocks of the batch, as [`BatchPeek::blocks`].
    #[must_use]
    pub fn blocks(&self) -> u32 {
        1 + self.data_blocks() + u32::from(self.header.padding_blocks)
    }

    /// The blocks of the logical device that it has, with the places of these in a batch whose header lies at `start`. None in a
    /// batch of metadata.
    pub fn located(&self, start: u32) -> impl Iterator<Item = (Location, Version)> + '_ {
        let behind = (start + 1..).map(Location::new);
        let places = self.places.iter().map(move |place| place.at(start));
        let plain = behind.take(if self.places.is_empty() { usize::MAX } else { 0 });
        places.chain(plain).zip(self.versions())
    }

    /// The blocks of the logical device that it has, in the order of their records. None in a batch of metadata.
    pub fn versions(&self) -> impl Iterator<Item = Version> + '_ {
        let (data, clean): (&[DataRecord], &[CleanRecord]) = match &self.records {
            RecordList::Data(list) => (list, &self.moved),
            RecordList::Clean(list) => (&[], list),
            RecordList::Meta(_) => (&[], &[]),
        };
        let written = data.iter().map(|DataRecord { lba, birth, crc }| Version {
            lba: *lba,
            birth: *birth,
            crc: *crc,
            source: None,
        });
        let moved = clean.iter().map(|CleanRecord { lba, birth, crc, source }| Version {
            lba: *lba,
            birth: *birth,
            crc: *crc,
            source: Some(*source),
        });
        written.chain(moved)
    }
}

impl BatchHeader {
    /// Writes the header that is to lie at `address`, with a record for each block of data and for each one
    /// behind them that cleaning moved, and with their places where some are packed. Allocates nothing.
    ///
    /// Panics if `block` is not one block, the records are more than [`BatchRecords::max`], the trims
    /// more than [`trims_max`], there are moved blocks behind others than the host's, a trim is not valid, or a
    /// number is wider than its field.
    pub fn encode(
        &self,
        uuid: &[u8; 16],
        address: u64,
        (records, moved): (&Records<'_>, &[CleanRecord]),
        trims: &[TrimRecord],
        packing: Option<Packing<'_>>,
        block: &mut [u8],
    ) {
        let (kind, count) = (records.kind(), records.len() + moved.len());
        assert!(count <= kind.max(), "{count} records, at most {} fit a batch", kind.max());
        assert!(moved.is_empty() || kind == BatchRecords::Data, "moved blocks behind {kind:?}");
        let room = trims_max(kind, records.len(), moved.len());
        assert!(trims.len() <= room, "{} trims, {room} fit behind the records", trims.len());
        let places = packing.map_or(&[][..], |packing| packing.places);
        assert!(packing.is_none() || places.len() == count, "a place for each record");
        let (fixed, rest) = block.split_at_mut(FIXED_BYTES);
        let counts = (trims.len(), moved.len());
        self.write(records, counts, packing, &mut Writer::new(&mut fixed[HEAD_BYTES..]));
        let rest = write_all(moved, records.write(rest), CleanRecord::to_bytes);
        let rest = write_all(places, rest, Place::to_bytes);
        let rest = write_all(trims, rest, TrimRecord::to_bytes);
        rest.fill(0);
        if let Some(pack) = packing.and_then(|packing| packing.inside) {
            let from = rest.len() - pack.len();
            pack.write(&mut rest[from..]);
        }
        let (kind, uuid, generation) = (BlockKind::Batch, *uuid, self.seq.raw());
        seal(block, &BlockHead { kind, uuid, address, generation });
    }

    /// Reads the header at `address` with its records.
    ///
    /// # Errors
    /// See [`BlockError`].
    pub fn decode(block: &[u8], uuid: &[u8; 16], address: u64) -> Result<DecodedBatch, BlockError> {
        let peek = Self::peek(block, uuid, address)?;
        let mut fields = Fields::new(block.get(FIXED_BYTES..).unwrap_or(&[]));
        let records = fields.bytes(usize::from(peek.data_blocks) * peek.kind.record_bytes())?;
        let records = RecordList::read(peek.kind, records)?;
        let moved = fields.bytes(usize::from(peek.moved) * CleanRecord::BYTES)?;
        let moved = read_all(moved, CleanRecord::from_bytes)?;
        let places = peek.stored.map_or(0, |_| peek.records());
        let places = read_all(fields.bytes(places * Place::BYTES)?, |place| peek.place(*place))?;
        let trims = fields.bytes(usize::from(peek.trims) * TrimRecord::BYTES)?;
        let trims = read_all(trims, TrimRecord::from_bytes)?;
        let stored = u32::from(peek.stored.unwrap_or(0));
        Ok(DecodedBatch { header: peek.header, records, moved, trims, places, stored })
    }

    /// Checks the checksum of the header at `address` and reads its fixed part. Allocates nothing.
    ///
    /// # Errors
    /// See [`BlockError`].
    pub fn peek(block: &[u8], uuid: &[u8; 16], address: u64) -> Result<BatchPeek, BlockError> {
        let head = open(block, BlockKind::Batch, Some(uuid), address)?;
        BatchPeek::read(Seq::new(head.generation), &mut behind_head(block))
    }

    fn write(
        &self,
        records: &Records<'_>,
        (trims, moved): (usize, usize),
        packing: Option<Packing<'_>>,
        writer: &mut Writer<'_>,
    ) {
        let pack =
            packing.and_then(|packing| packing.inside).map_or(0, |pack| BLOCK_BYTES - pack.len());
        writer.uint(u64::from(self.stream), 1);
        writer.uint(u64::from(records.kind().code()), 1);
        writer.uint(u64::from(self.attempt), 2);
        writer.uint(u64::from(self.segment.raw()), 4);
        writer.uint(self.epoch, 8);
        writer.uint(u64::from(self.incarnation), 4);
        writer.uint(u64_from(records.len()), 2);
        writer.uint(u64::from(self.padding_blocks), 2);
        writer.uint(u64_from(trims), 2);
        writer.uint(u64_from(moved), 2);
        writer.uint(u64::from(packing.is_some()), 1);
        writer.uint(0, 1);
        writer.uint(u64_from(pack), 2);
        writer.uint(self.durable_seq.raw(), 8);
        writer.uint(packing.map_or(0, |packing| packing.stored.into()), 2);
        writer.uint(0, 6);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        ADDRESS, UUID, assert_refuses_damage, content, forged, golden_head, lie,
    };
    use super::{
        BatchHeader, BatchRecords, BlockError, BlockKind, DecodedBatch, Packing, Place, RecordList,
        Slot, TrimRecord, pack_of, trims_max,
    };
    use crate::volume::{CleanRecord, DataRecord, MetaKind, MetaRecord, Pack, entry_of};
    use crate::volume::{Codec, PackEntry};
    use onefold_units::{Lba, Location, LogSegmentId, Seq};
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

    const HEADER: BatchHeader = BatchHeader {
        seq: Seq::new(0x1122),
        stream: 9,
        attempt: 0x0201,
        segment: LogSegmentId::new(0x0605_0403),
        epoch: 0x0E0D_0C0B_0A09_0807,
        incarnation: 0x1211_100F,
        padding_blocks: 0x1413,
        durable_seq: Seq::new(0x1C1B_1A19_1817_1615),
    };

    fn data(lba: u64) -> DataRecord {
        DataRecord { lba: Lba::new(lba), birth: 3, crc: 0xABCD }
    }

    fn trim(lba: u64) -> TrimRecord {
        TrimRecord { lba: Lba::new(lba), birth: 4, blocks: 5 }
    }

    fn encode(batch: &DecodedBatch) -> Vec<u8> {
        let mut block = vec![0xEE; 4096];
        let records = batch.records.as_records();
        let records = (&records, &batch.moved[..]);
        batch.header.encode(&UUID, ADDRESS, records, &batch.trims, None, &mut block);
        block
    }

    fn decode(block: &[u8]) -> Result<DecodedBatch, BlockError> {
        BatchHeader::decode(block, &UUID, ADDRESS)
    }

    fn batch(records: RecordList, trims: usize) -> DecodedBatch {
        let (moved, places) = (Vec::new(), Vec::new());
        DecodedBatch {
            header: HEADER,
            records,
            moved,
            trims: vec![trim(7); trims],
            places,
            stored: 0,
        }
    }

    /// The batch comes back, and a peek agrees with it.
    fn assert_comes_back(batch: &DecodedBatch) {
        let block = encode(batch);
        assert_eq!(decode(&block).as_ref(), Ok(batch));
        let peek = BatchHeader::peek(&block, &UUID, ADDRESS).unwrap();
        let records = batch.records.as_records();
        assert_eq!((peek.header, peek.kind), (batch.header, records.kind()));
        assert_eq!(usize::from(peek.data_blocks), records.len());
        assert_eq!(usize::from(peek.trims), batch.trims.len());
        assert_eq!(usize::from(peek.moved), batch.moved.len());
        assert_eq!(peek.blocks(), batch.blocks());
        let padding = u32::from(batch.header.padding_blocks);
        assert_eq!(batch.blocks(), 1 + batch.data_blocks() + padding);
    }

    #[test]
    fn golden_there_and_back() {
        let batch = batch(RecordList::Data(vec![data(1), data(2)]), 1);
        let block = encode(&batch);
        assert_eq!(block[..48], golden_head(&block, 3, 0x1122));
        assert_eq!(block[48..64], [9, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
        assert_eq!(block[64..80], [15, 16, 17, 18, 2, 0, 19, 20, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(block[80..96], [21, 22, 23, 24, 25, 26, 27, 28, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(block[96..108], [1, 0, 0, 0, 0, 3, 0, 0, 0xCD, 0xAB, 0, 0]);
        assert_eq!(block[108], 2);
        assert_eq!(block[120..136], [7, 0, 0, 0, 0, 4, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        assert!(block[136..].iter().all(|byte| *byte == 0));
        assert_comes_back(&batch);
        assert_refuses_damage(&block, decode);
        assert_refuses_damage(&block, |block| BatchHeader::peek(block, &UUID, ADDRESS));
    }

    fn moved(lba: u64) -> CleanRecord {
        CleanRecord { lba: Lba::new(lba), birth: 5, crc: 0xEF, source: Location::new(0x0403_0201) }
    }

    /// Moved blocks stand behind those of the host, and their records before the trims.
    #[test]
    fn moved_blocks_in_place_of_padding() {
        let mut batch = batch(RecordList::Data(vec![data(1)]), 1);
        batch.moved = vec![moved(9), moved(10)];
        let block = encode(&batch);
        assert_eq!(block[68..80], [1, 0, 19, 20, 1, 0, 2, 0, 0, 0, 0, 0]);
        assert_eq!(block[108..124], [9, 0, 0, 0, 0, 5, 0, 0, 0xEF, 0, 0, 0, 1, 2, 3, 4]);
        assert_eq!(block[140], 7, "the trim");
        assert_comes_back(&batch);
        assert_refuses_damage(&block, decode);
        let versions: Vec<_> = batch.versions().map(|one| (one.lba.raw(), one.source)).collect();
        let source = Some(Location::new(0x0403_0201));
        assert_eq!(versions, [(1, None), (9, source), (10, source)]);
        batch.records = RecordList::Data(vec![data(1); 253]);
        assert_comes_back(&batch);
    }

    fn slot(code: u8) -> Slot {
        Slot::from_code(code).unwrap()
    }

    /// A block of its own, one in the header, and two in a block behind, one of them moved.
    fn packed() -> (DecodedBatch, Pack) {
        let mut batch = batch(RecordList::Data(vec![data(1), data(2), data(3)]), 1);
        batch.moved = vec![moved(9)];
        let place = |(offset, code)| Place { offset, slot: slot(code) };
        batch.places = [(0, 7), (1, 0), (2, 1), (2, 6)].map(place).to_vec();
        batch.stored = 2;
        let mut inside = Pack::new(1000);
        inside.push(slot(7), PackEntry { codec: Codec::Zstd, bytes: b"compressed" });
        (batch, inside)
    }

    fn encode_packed((batch, inside): &(DecodedBatch, Pack)) -> Vec<u8> {
        let mut block = vec![0xEE; 4096];
        let records = batch.records.as_records();
        let packing = Packing { places: &batch.places, stored: batch.stored, inside: Some(inside) };
        let all = (&records, &batch.moved[..]);
        batch.header.encode(&UUID, ADDRESS, all, &batch.trims, Some(packing), &mut block);
        block
    }

    /// Places stand behind the records, and a pack at the end.
    #[test]
    fn packed_blocks_come_back() {
        let packed = packed();
        let (block, batch) = (encode_packed(&packed), &packed.0);
        assert_eq!(block[76..80], [1, 0, 0xF0, 0x0F], "packed, and where the pack is: 4080");
        assert_eq!(block[88..96], [2, 0, 0, 0, 0, 0, 0, 0], "blocks behind the header");
        assert_eq!(block[148..156], [0, 7, 1, 0, 2, 1, 2, 6], "places");
        assert_eq!(decode(&block).as_ref(), Ok(batch));
        let peek = BatchHeader::peek(&block, &UUID, ADDRESS).unwrap();
        assert_eq!((peek.blocks(), batch.data_blocks()), (1 + 2 + 0x1413, 2));
        assert_eq!(peek.blocks(), batch.blocks());
        let entry = PackEntry { codec: Codec::Zstd, bytes: b"compressed" };
        assert_eq!(entry_of(pack_of(&block), slot(7)), Some(entry));
        let located: Vec<_> = batch.located(100).map(|(at, one)| (at, one.lba.raw())).collect();
        let at = |code: u8, block| slot(code).of_block(block);
        assert_eq!(located, [(at(7, 100), 1), (at(0, 101), 2), (at(1, 102), 3), (at(6, 102), 9)]);
        assert_refuses_damage(&block, decode);
    }

    #[test]
    fn places_that_are_none_are_refused() {
        let block = encode_packed(&packed());
        let refused = |at, value| lie((BlockKind::Batch, &block), (at, value), decode);
        for (at, value) in [(149, 8), (150, 3), (150, 0), (152, 3)] {
            assert!(refused(at, value).contains("a place that is none"), "{at}");
        }
        assert!(refused(88, 5).contains("stores more blocks"));
        let no_pack = lie((BlockKind::Batch, &block), (78, 0), |block| {
            let mut block = block.to_vec();
            block[79] = 0;
            super::super::testing::reseal(BlockKind::Batch, &mut block);
            decode(&block)
        });
        assert!(no_pack.contains("a place that is none"), "{no_pack}");
    }

    #[test]
    #[should_panic(expected = "moved blocks behind Clean")]
    fn only_batches_of_the_host_have_moved_blocks() {
        let mut batch = batch(RecordList::Clean(vec![moved(1)]), 0);
        batch.moved = vec![moved(9)];
        encode(&batch);
    }

    #[test]
    fn full_and_empty_batches_come_back() {
        let meta = MetaRecord { object: 1, kind: MetaKind::Body, crc: 2 };
        let lba = Lba::new((1 << 40) - 1);
        let clean = CleanRecord { lba, birth: (1 << 24) - 1, crc: 2, source: Location::LOST };
        for empty in [true, false] {
            let count = |kind: BatchRecords| if empty { 0 } else { kind.max() };
            let lists = [
                RecordList::Data(vec![data(1); count(BatchRecords::Data)]),
                RecordList::Clean(vec![clean; count(BatchRecords::Clean)]),
                RecordList::Meta(vec![meta; count(BatchRecords::Meta)]),
            ];
            for records in lists {
                let (kind, len) = (records.as_records().kind(), records.as_records().len());
                assert_eq!(records.as_records().is_empty(), empty);
                assert_comes_back(&batch(records, trims_max(kind, len, 0)));
            }
        }
    }

    #[test]
    fn content_that_is_no_batch_is_refused() {
        let refused = |records, trims, at, value| {
            let block = encode(&batch(records, trims));
            let peeked = lie((BlockKind::Batch, &block), (at, value), |block| {
                BatchHeader::peek(block, &UUID, ADDRESS)
            });
            assert_eq!(peeked, lie((BlockKind::Batch, &block), (at, value), decode));
            peeked
        };
        let data = |count| RecordList::Data(vec![data(1); count]);
        assert!(refused(data(1), 0, 49, 0).contains("unknown kind"));
        assert!(refused(data(1), 0, 49, 4).contains("unknown kind"));
        assert!(refused(data(255), 0, 69, 1).contains("more records"), "511 of them");
        assert!(refused(data(251), 0, 49, 2).contains("more records"), "251 clean ones");
        assert!(refused(data(255), 58, 72, 59).contains("more trims"));
        assert!(refused(data(0), 250, 72, 251).contains("more trims"));
        assert!(refused(data(255), 0, 74, 1).contains("more records"), "256 blocks");
        assert!(refused(data(1), 249, 74, 1).contains("more trims"), "no room for its record");
        let clean = RecordList::Clean(vec![moved(1)]);
        assert!(refused(clean, 0, 74, 1).contains("more records"), "behind others");

        let block = encode(&batch(data(1), 1));
        let refused = lie((BlockKind::Batch, &block), (116, 0), decode);
        assert!(refused.contains("a trim is empty"), "{refused}");
    }

    #[test]
    #[should_panic(expected = "256 records, at most 255")]
    fn a_batch_takes_no_more_records_than_fit() {
        encode(&batch(RecordList::Data(vec![data(1); 256]), 0));
    }

    #[test]
    #[should_panic(expected = "59 trims, 58 fit")]
    fn a_batch_takes_no_more_trims_than_fit() {
        encode(&batch(RecordList::Data(vec![data(1); 255]), 59));
    }

    fn any_records() -> impl Strategy<Value = RecordList> {
        let version = || (0..1_u64 << 40, 0..1_u32 << 24, any::<u32>());
        let data = version().prop_map(|(lba, birth, crc)| {
            let lba = Lba::new(lba);
            DataRecord { lba, birth, crc }
        });
        let clean = (version(), any::<u32>()).prop_map(|((lba, birth, crc), source)| {
            let (lba, source) = (Lba::new(lba), Location::new(source));
            CleanRecord { lba, birth, crc, source }
        });
        let meta = (0..1_u64 << 40, 1..=6_u8, any::<u32>()).prop_map(|(object, kind, crc)| {
            MetaRecord { object, kind: MetaKind::from_code(kind).unwrap(), crc }
        });
        prop_oneof![
            vec(data, 0..=255).prop_map(RecordList::Data),
            vec(clean, 0..=250).prop_map(RecordList::Clean),
            vec(meta, 0..=255).prop_map(RecordList::Meta),
        ]
    }

    proptest! {
        #[test]
        fn any_batch_comes_back(records in any_records(), trims in 0..=250_usize) {
            let room = trims_max(records.as_records().kind(), records.as_records().len(), 0);
            assert_comes_back(&batch(records, trims.min(room)));
        }

        #[test]
        fn any_content_is_a_batch_or_refused(content in content(4048), kind in 0..5_u8) {
            let mut block = forged(BlockKind::Batch, &content);
            block[49] = kind;
            block[69] = 0;
            block[73] = 0;
            super::super::testing::reseal(BlockKind::Batch, &mut block);
            if let Ok(batch) = decode(&block) {
                prop_assert!(batch.records.as_records().len() + batch.trims.len() <= 4000 / 12);
                prop_assert_eq!(decode(&encode(&batch)), Ok(batch));
            }
        }
    }
}
