//! Replay: the tables as the transactions behind the newest root left them (Sung 2022, sec. III-E).
//!
//! Pairs of the log are applied in order as long as Begin, Commit and checksum agree. The tables are
//! not searched: an array says where each block lies that the log names, and each table that changed
//! is sorted once. So the time grows with pairs, not with pairs times tables.

use std::ops::Range;

use onefold_format::volume::{BLOCK_BYTES, TableEntry, Transaction};
use onefold_units::convert::{index, u64_from};
use onefold_units::{Location, Seq};
use onefold_volume::parts::bytes_of;
use onefold_volume::{Backing, Buffer, MountError, Recovery};

use super::PartitionedVolume;
use super::table::{Table, invalid, valid};
use super::tables::Tables;

/// Blocks side by side that were lost to discarded transactions and are worth being a region.
const GAP_BLOCKS_MIN: u32 = 64;

/// Blocks that an opening reads at once: 1 MiB.
pub(super) const READ_BLOCKS: u32 = 256;

/// Log blocks that are read first: a volume that was closed has none.
const FIRST_READ_BLOCKS: u32 = 2;

/// Blocks of a page of [`Places`].
const PAGE_BLOCKS: u32 = 1024;

/// Reads blocks that lie side by side and hands each to `each` until that says `false`: `first` of
/// them, then twice as many each time, up to [`READ_BLOCKS`]. `what` names a block that cannot be
/// read.
pub(super) fn read_each(
    backing: &mut dyn Backing,
    what: &'static str,
    blocks: Range<u32>,
    first: u32,
    mut each: impl FnMut(u32, &[u8]) -> Result<bool, MountError>,
) -> Result<(), MountError> {
    let (mut start, mut step) = (blocks.start, first.min(READ_BLOCKS));
    let mut buffer = Buffer::new(bytes_of(READ_BLOCKS.min(blocks.end - start)));
    while start < blocks.end {
        let end = blocks.end.min(start + step);
        let bytes = &mut buffer.bytes_mut()[..bytes_of(end - start)];
        let whole = backing.read(start.into(), bytes).is_ok();
        for (at, block) in (start..end).zip(bytes.chunks_mut(BLOCK_BYTES)) {
            // One that nobody wants may be unreadable.
            if !whole && backing.read(at.into(), block).is_err() {
                return Err(MountError::Read { what, at: at.into() });
            }
            if !each(at, block)? {
                return Ok(());
            }
        }
        (start, step) = (end, READ_BLOCKS.min(step * 2));
    }
    Ok(())
}

/// Where blocks of the exported device lie: 4 B for each, in pages that the log names.
#[derive(Debug)]
struct Places(Vec<Option<Box<[u32]>>>);

impl Places {
    /// Where the blocks of some transactions lie before they are applied.
    fn before(tables: &Tables, log: &[Transaction], logical_blocks: u64) -> Self {
        let pages = logical_blocks.div_ceil(PAGE_BLOCKS.into());
        let mut places = Self(vec![None; onefold_units::convert::index64(pages)]);
        for pair in log.iter().flat_map(|transaction| &transaction.pairs) {
            places.0[index(pair.lba / PAGE_BLOCKS)].get_or_insert_with(|| {
                vec![Location::UNMAPPED.raw(); index(PAGE_BLOCKS)].into_boxed_slice()
            });
        }
        for entry in tables.valid_entries() {
            if let Some(place) = places.place(entry.lba) {
                *place = entry.to.raw();
            }
        }
        places
    }

    /// The place of a block; `None` in a page that the log does not name.
    fn place(&mut self, lba: u32) -> Option<&mut u32> {
        let page = self.0[index(lba / PAGE_BLOCKS)].as_mut()?;
        page.get_mut(index(lba % PAGE_BLOCKS))
    }
}

impl PartitionedVolume {
    /// Applies the transactions behind `seq`. Gives the number of the last one that was durable.
    pub(super) fn replay(
        &mut self,
        backing: &mut dyn Backing,
        seq: u64,
        recovery: &mut Recovery,
    ) -> Result<u64, MountError> {
        let mut found = Vec::new();
        for file in 0..self.areas.rules().files {
            self.read_file(backing, file, seq, &mut found, recovery)?;
        }
        found.sort_by_key(|transaction| transaction.seq);
        let durable = found.last().map_or(seq, |newest| newest.seq.raw());
        let in_order = (seq + 1..).zip(&found).take_while(|(next, one)| one.seq.raw() == *next);
        found.truncate(in_order.count());
        let last = seq + u64_from(found.len());
        self.apply_log(found);
        for number in 0..self.tables.list.len() {
            self.tidy(number);
        }
        self.measure();
        self.journal = super::Journal::new(last, self.options.transaction_pairs);
        self.current = self.areas.partition_written(self.regions.position());
        self.free_after_cleaning = self.regions.blocks();
        (recovery.seq, recovery.batches) = (last, last - seq);
        Ok(durable)
    }

    /// Changes the tables as transactions say, in their order.
    fn apply_log(&mut self, log: Vec<Transaction>) {
        if log.is_empty() {
            return;
        }
        let mut places = Places::before(&self.tables, &log, self.areas.logical_blocks());
        // By partition: blocks that came to lie there, wherever they are at the end.
        let mut came: Vec<Vec<(u32, u32)>> = vec![Vec::new(); self.tables.list.len()];
        let mut changed = vec![false; came.len()];
        for pair in log.into_iter().flat_map(|transaction| transaction.pairs) {
            let Some(place) = places.place(pair.lba) else { continue };
            let from = Location::new(std::mem::replace(place, pair.to.raw()));
            for (at, comes) in [(from, false), (pair.to, true)] {
                if !at.is_block() {
                    continue;
                }
                let number = self.areas.partition_of(at.raw());
                self.tables.touch(number, comes);
                changed[number] = true;
                if comes {
                    came[number].push((pair.lba, at.raw()));
                    self.regions.used(at.raw());
                }
            }
        }
        for (number, came) in came.into_iter().enumerate().filter(|(number, _)| changed[*number]) {
            let table = &mut self.tables.list[number].table;
            let old = std::mem::take(table);
            let entry = |lba, to, was_valid: bool| match places.place(lba).map(|now| *now == to) {
                Some(false) => invalid(lba, to),
                None if !was_valid => invalid(lba, to),
                Some(true) | None => valid(lba, to),
            };
            *table = rebuilt(&old, &came, entry);
        }
    }

    /// One entry for each block of a partition, and no space lost to transactions that were
    /// discarded: their addresses are reused (Sung 2022, sec. III-E). Short gaps are left to the
    /// cleaner.
    fn tidy(&mut self, number: usize) {
        let range = self.areas.partition(number);
        let mut taken = vec![false; index(range.end - range.start)];
        let table = &mut self.tables.list[number].table;
        let mut take = |at: u32| !std::mem::replace(&mut taken[index(at - range.start)], true);
        table.iter().filter(|entry| !entry.invalid).for_each(|entry| {
            take(entry.to.raw());
        });
        // A block that the cleaner filled still has the entry of the hole.
        table.retain_invalid(&mut take);
        for free in self.regions.pieces() {
            for at in free.start.max(range.start)..free.end.min(range.end) {
                take(at);
            }
        }
        let mut gap = range.start..range.start;
        for at in range.clone() {
            let blank = self.areas.is_data(at) && !taken[index(at - range.start)];
            if blank {
                gap.end = at + 1;
            }
            if !blank || at + 1 == range.end {
                if gap.end - gap.start >= GAP_BLOCKS_MIN {
                    self.regions.add(gap);
                }
                gap = at + 1..at + 1;
            }
        }
    }

    /// Reads a log or map file up to its end: one block that is none may be torn, what lies behind
    /// would be a gap.
    fn read_file(
        &self,
        backing: &mut dyn Backing,
        file: u32,
        seq: u64,
        found: &mut Vec<Transaction>,
        recovery: &mut Recovery,
    ) -> Result<(), MountError> {
        let (mut last, mut misses) = (Seq::new(seq), 0);
        let start = self.areas.file_at(file, 0);
        let blocks = start..start + self.areas.file_blocks();
        read_each(backing, "log block", blocks, FIRST_READ_BLOCKS, |at, bytes| {
            recovery.headers += 1;
            let decoded = Transaction::decode(bytes, &self.uuid, at).ok();
            let ours = decoded.filter(|one| {
                one.incarnation == self.incarnation
                    && u32::from(one.file) == file
                    && one.seq > last
                    && self.is_possible(one)
            });
            if let Some(transaction) = ours {
                last = transaction.seq;
                found.push(transaction);
            } else {
                misses += 1;
            }
            Ok(misses < 2)
        })
    }

    fn is_possible(&self, transaction: &Transaction) -> bool {
        let logical = self.areas.logical_blocks();
        transaction.pairs.iter().all(|pair| {
            let placed = pair.to == Location::UNMAPPED || self.areas.is_data(pair.to.raw());
            u64::from(pair.lba) < logical && placed
        })
    }
}

/// A table of what it had and of blocks that came, as `entry` says of a block, its place, and
/// whether it was valid there.
fn rebuilt(
    old: &Table,
    came: &[(u32, u32)],
    mut entry: impl FnMut(u32, u32, bool) -> TableEntry,
) -> Table {
    let mut entries = Vec::with_capacity(old.len() + came.len());
    entries.extend(old.iter().map(|one| entry(one.lba, one.to.raw(), !one.invalid)));
    entries.extend(came.iter().map(|(lba, to)| entry(*lba, *to, true)));
    Table::of_unsorted(entries)
}
