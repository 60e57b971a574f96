//! Tables go to reserved space, and the logs are dropped: write tables and catalog, FLUSH, root
//! with the next generation, FLUSH, and only then begin the logs anew. Differs from Sung 2022, sec.
//! III-E, which removes the logs first: a cut in between would lose everything (volume.md, section
//! 3, V10).
//!
//! A table goes to the slot that the last root does not name. Taken when a log is full, after
//! cleaning (Han 2021, sec. III-D: the cleaning is committed with the updated table), after
//! recovery and at the end. Differs from Han 2021: all map files are begun anew, because one
//! rewritten alone would forget which entries of the others its own replaced.

use std::collections::VecDeque;

use onefold_format::volume::{
    BLOCK_BYTES, BODY_PAYLOAD_BYTES, BodyBlock, BodyPlace, Catalog, Extent, Root,
    TABLE_BLOCK_ENTRIES, TableBlock, TableEntry, TablePlace,
};
use onefold_units::convert::{index64, low16, narrow, u32_from, u64_from};
use onefold_units::{Location, Seq};
use onefold_volume::{Buffer, Frozen, IoKind, Sent};

use super::PartitionedVolume;
use super::commit::Stage;
use super::io::Purpose;

/// Blocks of a request that writes a table.
const PIECE_BLOCKS: usize = 256;

/// Such requests under way at once.
const DEPTH: usize = 4;

#[derive(Debug)]
pub(super) struct Work {
    /// Tables that are still to be written.
    tables: VecDeque<usize>,
    /// Where tables lie after it, by partition.
    places: Vec<TablePlace>,
    pieces: VecDeque<(u32, Vec<u8>)>,
    flying: usize,
    /// The catalog, once its pieces are made.
    body: Option<BodyPlace>,
    clean: bool,
}

#[derive(Debug, Default)]
pub(super) struct Checkpoint {
    pub(super) wanted: bool,
    /// The next one is the last.
    pub(super) closing: bool,
    pub(super) work: Option<Box<Work>>,
    pub(super) generation: u64,
    pub(super) next_image: u64,
}

impl PartitionedVolume {
    pub(super) fn begin_checkpoint(&mut self) {
        let dirty =
            |(number, table): (usize, &super::tables::Partition)| table.dirty.then_some(number);
        let places = self.tables.list.iter().map(super::tables::Partition::home).collect();
        let clean = self.checkpoint.closing && self.journal.last() <= self.journal.durable;
        self.checkpoint.work = Some(Box::new(Work {
            tables: self.tables.list.iter().enumerate().filter_map(dirty).collect(),
            places,
            pieces: VecDeque::new(),
            flying: 0,
            body: None,
            clean,
        }));
        self.checkpoint.wanted = self.checkpoint.closing && !clean;
        self.stage = Stage::Tables;
    }

    /// Writes the next pieces; flushes when all were written.
    pub(super) fn step_tables(&mut self) {
        let Some(mut work) = self.checkpoint.work.take() else { return };
        while work.flying < DEPTH {
            if let Some((at, bytes)) = work.pieces.pop_front() {
                let blocks = u32_from(bytes.len() / BLOCK_BYTES);
                let mut buffer = Buffer::new(bytes.len());
                buffer.bytes_mut().copy_from_slice(&bytes);
                self.stats.count(Sent::Map, blocks.into());
                self.ios.ask((IoKind::Write, Purpose::Table), at, blocks, buffer);
                work.flying += 1;
            } else if let Some(number) = work.tables.pop_front() {
                self.stage_table(&mut work, number);
            } else if work.body.is_none() {
                self.stage_catalog(&mut work);
            } else {
                break;
            }
        }
        if work.flying == 0 {
            if self.leaves_flushes_out() {
                self.checkpoint.work = Some(work);
                return self.write_root();
            }
            self.stage = Stage::TablesFlush;
            self.ask_flush();
        }
        self.checkpoint.work = Some(work);
    }

    fn stage_table(&mut self, work: &mut Work, number: usize) {
        let partition = &mut self.tables.list[number];
        partition.dirty = false;
        let entries: Vec<TableEntry> = partition.table.iter().copied().collect();
        let room = self.areas.slot_entries();
        assert!(entries.len() <= room, "{} entries for a slot of {room}", entries.len());
        let image = self.checkpoint.next_image;
        self.checkpoint.next_image += 1;
        let slot = if entries.is_empty() { 0 } else { 1 + partition.place.slot % 2 };
        work.places[number] = TablePlace { slot, entries: u32_from(entries.len()), image };
        let start = self.areas.slot_at(number, slot.max(1));
        work.pieces.extend(image_pieces(&self.uuid, (number, image), start, &entries));
    }

    fn stage_catalog(&mut self, work: &mut Work) {
        let catalog = Catalog {
            next_image: self.checkpoint.next_image,
            tables: work.places.clone(),
            regions: self.regions.extents(&self.held),
        };
        let stream = catalog.encode();
        let at = self.areas.catalog_at(self.checkpoint.generation + 1);
        let mut bytes = vec![0; stream.len().div_ceil(BODY_PAYLOAD_BYTES) * BLOCK_BYTES];
        for (number, (payload, block)) in
            (0..).zip(stream.chunks(BODY_PAYLOAD_BYTES).zip(bytes.chunks_mut(BLOCK_BYTES)))
        {
            let seq = Seq::new(self.journal.durable);
            BodyBlock { seq, index: number, payload }.encode(
                &self.uuid,
                u64::from(at + number),
                block,
            );
        }
        let blocks = u32_from(bytes.len() / BLOCK_BYTES);
        let extent = Extent { location: Location::new(at), blocks };
        work.body = Some(BodyPlace::of(&stream, vec![extent]));
        work.pieces.push_back((at, bytes));
    }

    pub(super) fn table_over(&mut self, failed: bool) {
        if failed {
            self.freeze(Frozen::Checkpoint);
        }
        if let Some(work) = &mut self.checkpoint.work {
            work.flying -= 1;
        }
    }

    pub(super) fn write_root(&mut self) {
        let Some(work) = &self.checkpoint.work else { return };
        let Some(body) = work.body.clone() else { return };
        let generation = self.checkpoint.generation + 1;
        let root = Root {
            generation,
            incarnation: self.incarnation,
            seq: Seq::new(self.journal.durable),
            clean: work.clean,
            body,
        };
        let roots = self.areas.roots();
        let at = roots[index64(generation % u64_from(roots.len()))];
        let mut buffer = Buffer::new(BLOCK_BYTES);
        buffer.bytes_mut().copy_from_slice(&root.encode(&self.uuid, at)[..]);
        self.stats.count(Sent::Label, 1);
        self.stage = Stage::Root;
        self.ios.ask((IoKind::Write, Purpose::Root), narrow(at), 1, buffer);
    }

    pub(super) fn root_over(&mut self, failed: bool) {
        if failed {
            self.freeze(Frozen::Checkpoint);
        } else if self.leaves_flushes_out() {
            self.end_checkpoint();
        } else {
            self.stage = Stage::RootFlush;
            self.ask_flush();
        }
    }

    /// The root is durable: the logs begin anew.
    pub(super) fn end_checkpoint(&mut self) {
        self.stage = Stage::Idle;
        let Some(work) = self.checkpoint.work.take() else { return };
        for (partition, place) in self.tables.list.iter_mut().zip(&work.places) {
            (partition.place, partition.spare) = (*place, None);
        }
        self.files.fill(0);
        self.checkpoint.generation += 1;
        self.stats.checkpoints += 1;
        if work.clean {
            self.freeze(Frozen::Closed);
        }
    }
}

/// The image of a table in pieces, each with its first block.
pub(super) fn image_pieces(
    uuid: &[u8; 16],
    (number, image): (usize, u64),
    start: u32,
    entries: &[TableEntry],
) -> Vec<(u32, Vec<u8>)> {
    let partition = low16(u64_from(number));
    let piece = |(at, entries): (usize, &[TableEntry])| {
        let at = start + u32_from(at * PIECE_BLOCKS);
        let blocks = entries.chunks(TABLE_BLOCK_ENTRIES);
        let mut bytes = vec![0; blocks.len() * BLOCK_BYTES];
        for ((at, entries), block) in (at..).zip(blocks).zip(bytes.chunks_mut(BLOCK_BYTES)) {
            let table = TableBlock { image, partition, entries: entries.to_vec() };
            table.encode(uuid, at.into(), block);
        }
        (at, bytes)
    };
    entries.chunks(PIECE_BLOCKS * TABLE_BLOCK_ENTRIES).enumerate().map(piece).collect()
}
