//! The memory cap of mode `sung`: above [`onefold_volume::Options::table_bytes`] the table that was
//! updated least recently is written to its spare slot and leaves memory; it is read again when it
//! is searched or changed (Sung 2022, sec. III-C; volume.md, section 4).
//!
//! 1. An image in a spare slot counts for this mount only, until a checkpoint names it.
//! 2. A request that needs tables which are not there is refused as busy and finds what was
//!    searched so far when it comes again: each table that is read serves all requests that wait,
//!    so they need not all be in memory at once.

use std::collections::BTreeMap;

use onefold_format::volume::{
    BLOCK_BYTES, TABLE_BLOCK_ENTRIES, TableBlock, TableEntry, TablePlace,
};
use onefold_units::convert::{index, low16, u32_from, u64_from};
use onefold_volume::{Buffer, Frozen, IoKind, Refusal, Sent};

use super::PartitionedVolume;
use super::checkpoint::image_pieces;
use super::commit::Stage;
use super::io::Purpose;
use super::table::Table;
use super::tables::{Load, State};

/// Tables that stay: the cleaner needs two.
const RESIDENT_MIN: usize = 2;

/// Requests that may look for tables at once.
const SEARCHES_MAX: usize = 64;

/// Blocks of a request that reads a table.
const PIECE_BLOCKS: u32 = 256;

/// Where blocks lie, as far as it is known; `None`: nowhere.
pub(super) type Found = BTreeMap<u32, Option<u32>>;

/// A request that waits for tables.
#[derive(Debug)]
pub(super) struct Search {
    start: u32,
    blocks: u32,
    /// Tables that were not searched, in order.
    todo: Vec<usize>,
    found: Found,
}

impl PartitionedVolume {
    /// Makes sure that it can be said where blocks lie. `None`: the tables can be asked.
    pub(super) fn need(&mut self, start: u32, blocks: u32) -> Result<Option<Found>, Refusal> {
        if self.tables.all_readable() {
            self.searches.clear();
            return Ok(None);
        }
        let known = self.searches.iter().position(|one| (one.start, one.blocks) == (start, blocks));
        let mut search = if let Some(at) = known {
            self.searches.remove(at)
        } else {
            let todo = self.tables.recent().to_vec();
            Search { start, blocks, todo, found: Found::new() }
        };
        self.search(&mut search);
        let missing =
            |lba: &u32| !search.found.contains_key(lba) && !self.journal.overlay.contains_key(lba);
        let resolved = !(start..start + blocks).any(|lba| missing(&lba));
        let Some(next) = search.todo.first().copied().filter(|_| !resolved) else {
            return Ok(Some(search.found));
        };
        if matches!(self.tables.list[next].state, State::Damaged) {
            return Err(Refusal::MediaError);
        }
        if self.searches.len() == SEARCHES_MAX {
            self.searches.remove(0);
        }
        // Before the table comes: it serves all that wait.
        self.searches.push(search);
        self.load(next);
        Err(Refusal::Busy)
    }

    /// Searches the next tables that are there.
    fn search(&mut self, search: &mut Search) {
        while let Some(next) = search.todo.first()
            && self.tables.list[*next].is_readable()
        {
            for lba in search.start..search.start + search.blocks {
                if search.found.contains_key(&lba) || self.journal.overlay.contains_key(&lba) {
                    continue;
                }
                self.tables.probes += 1;
                if let Some(at) = self.tables.list[*next].table.find(lba) {
                    search.found.insert(lba, Some(at));
                }
            }
            search.todo.remove(0);
        }
    }

    /// A block that was in the overlay is where the tables say from now on. They may have been
    /// searched before they said so.
    pub(super) fn tell_searches(&mut self, lba: u32, now: Option<u32>) {
        for search in &mut self.searches {
            if (search.start..search.start + search.blocks).contains(&lba) {
                search.found.insert(lba, now);
            }
        }
    }

    /// Begins to read a table that is away; one at a time.
    pub(super) fn load(&mut self, number: usize) {
        let away = matches!(self.tables.list[number].state, State::Away);
        if !away || self.tables.is_loading() {
            return;
        }
        self.stats.table_faults += 1;
        let place = self.tables.list[number].home();
        let blocks = u32_from(index(place.entries).div_ceil(TABLE_BLOCK_ENTRIES));
        let start = self.areas.slot_at(number, place.slot.max(1));
        let mut load = Load { pieces: BTreeMap::new(), left: 0, failed: false };
        for first in (0..blocks).step_by(index(PIECE_BLOCKS)) {
            let count = PIECE_BLOCKS.min(blocks - first);
            let what = (IoKind::Read, Purpose::Load { number, first });
            self.ios.ask(what, start + first, count, Buffer::default());
            load.left += 1;
        }
        let empty = load.left == 0;
        self.tables.list[number].state = State::Loading(load);
        if empty {
            self.end_load(number);
        }
    }

    pub(super) fn load_over(&mut self, number: usize, first: u32, buffer: &Buffer, failed: bool) {
        let partition = &mut self.tables.list[number];
        let place = partition.home();
        let State::Loading(load) = &mut partition.state else { return };
        load.left -= 1;
        load.failed |= failed;
        let start = self.areas.slot_at(number, place.slot) + first;
        for (at, block) in (start..).zip(buffer.bytes().chunks(BLOCK_BYTES)) {
            match decode(&self.uuid, (number, place), at, block) {
                Some(entries) => load.pieces.entry(first).or_default().extend(entries),
                None => load.failed = true,
            }
        }
        if load.left == 0 {
            self.end_load(number);
        }
    }

    fn end_load(&mut self, number: usize) {
        let partition = &mut self.tables.list[number];
        let wanted = index(partition.home().entries);
        let State::Loading(load) = std::mem::replace(&mut partition.state, State::Here) else {
            return;
        };
        let entries: Vec<TableEntry> = load.pieces.into_values().flatten().collect();
        if load.failed || entries.len() != wanted || !entries.is_sorted_by(|a, b| a < b) {
            partition.state = State::Damaged;
            self.stats.crc_errors += 1;
            return self.freeze(Frozen::Checkpoint);
        }
        partition.table = Table::of(&entries);
        self.measure();
        let mut searches = std::mem::take(&mut self.searches);
        for search in &mut searches {
            self.search(search);
        }
        self.searches = searches;
    }

    /// Lets the table go that was updated least recently, if they take too much.
    pub(super) fn step_memory(&mut self) {
        let full = self.tables.memory().real_bytes > self.options.table_bytes;
        let idle = matches!(self.stage, Stage::Idle | Stage::Data | Stage::Log | Stage::Apply);
        let rules = self.areas.rules();
        if !full || !idle || rules.temporary_table || self.frozen.is_some() {
            return;
        }
        let mut needed = self.job_tables();
        needed.extend(self.ops.keys());
        let here = |number: &usize| self.tables.list[*number].is_here();
        let all: Vec<usize> = (0..self.tables.list.len()).filter(here).collect();
        if all.len() <= RESIDENT_MIN || self.tables.any_leaving() {
            return;
        }
        let free = all
            .into_iter()
            .filter(|number| !needed.contains(number) && self.tables.list[*number].table.len() > 0);
        if let Some(number) = free.min_by_key(|number| self.tables.list[*number].updated) {
            self.evict(number);
        }
    }

    fn evict(&mut self, number: usize) {
        let partition = &mut self.tables.list[number];
        if !partition.dirty {
            partition.leave();
            return self.measure();
        }
        let entries: Vec<TableEntry> = partition.table.iter().copied().collect();
        let image = self.checkpoint.next_image;
        self.checkpoint.next_image += 1;
        let slot = 1 + partition.place.slot % 2;
        partition.dirty = false;
        partition.spare = Some(TablePlace { slot, entries: u32_from(entries.len()), image });
        let start = self.areas.slot_at(number, slot);
        let pieces = image_pieces(&self.uuid, (number, image), start, &entries);
        partition.state = State::Leaving(pieces.len());
        if pieces.is_empty() {
            partition.leave();
        }
        for (at, bytes) in pieces {
            let blocks = u32_from(bytes.len() / BLOCK_BYTES);
            let mut buffer = Buffer::new(bytes.len());
            buffer.bytes_mut().copy_from_slice(&bytes);
            self.stats.count(Sent::Map, blocks.into());
            self.ios.ask((IoKind::Write, Purpose::Leave(number)), at, blocks, buffer);
        }
    }

    pub(super) fn leave_over(&mut self, number: usize, failed: bool) {
        if failed {
            return self.freeze(Frozen::Checkpoint);
        }
        let partition = &mut self.tables.list[number];
        if let State::Leaving(left) = &mut partition.state {
            *left -= 1;
            if *left == 0 {
                partition.leave();
                self.measure();
            }
        }
    }
}

fn decode(
    uuid: &[u8; 16],
    (number, place): (usize, TablePlace),
    at: u32,
    block: &[u8],
) -> Option<Vec<TableEntry>> {
    let table = TableBlock::decode(block, uuid, at.into()).ok()?;
    let ours = table.image == place.image && table.partition == low16(u64_from(number));
    ours.then_some(table.entries)
}
