//! The trim log: unmapped ranges that no checkpoint holds yet.
//!
//! Two areas in NVRAM take turns. Records go to the active one; a checkpoint cut switches areas,
//! and its commit makes every record of the other one stale, because records up to the sequence
//! number of the committed checkpoint are ignored. Nothing has to be erased.

use onefold_format::{TRIM_RECORD_BYTES, TrimRecord};
use onefold_units::convert::u64_from;

use crate::layout::Layout;

/// State of the trim log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrimLog {
    pub(crate) active: usize,
    /// Records in each area that the committed checkpoint does not cover.
    pub(crate) used: [u32; 2],
    capacity: u32,
    offsets: [u64; 2],
}

onefold_units::keep!(TrimLog { active, used } but { capacity, offsets });

impl TrimLog {
    pub(crate) const fn new(layout: &Layout) -> Self {
        Self {
            active: 0,
            used: [0; 2],
            capacity: layout.nvram.trim_records,
            offsets: layout.nvram.trims,
        }
    }

    /// Whether the next record needs a checkpoint first.
    pub(crate) const fn is_full(&self) -> bool {
        self.used[self.active] >= self.capacity
    }

    /// Whether so many records fit without a checkpoint.
    pub(crate) const fn has_room(&self, records: u32) -> bool {
        self.used[self.active].saturating_add(records) <= self.capacity
    }

    /// Whether a checkpoint of `map_pages` should begin: dumping one page per trim, it ends before
    /// the log is full.
    pub(crate) fn is_filling(&self, map_pages: u32) -> bool {
        let begin = self.capacity.saturating_sub(map_pages.saturating_mul(2));
        self.used[self.active] >= begin.max(self.capacity / 2)
    }

    /// Whether both areas hold records that count, as after a power cut during a checkpoint.
    pub(crate) fn both_count(&self) -> bool {
        self.used.iter().all(|used| *used > 0)
    }

    /// Takes the next place: where in NVRAM the record goes.
    pub(crate) fn append(&mut self) -> u64 {
        let place = self.used[self.active];
        self.used[self.active] += 1;
        self.offsets[self.active] + u64::from(place) * u64_from(TRIM_RECORD_BYTES)
    }

    /// A checkpoint was cut: new records go to the other area.
    pub(crate) fn switch(&mut self) {
        assert!(self.used[1 - self.active] == 0, "the other area of the trim log still counts");
        self.active = 1 - self.active;
    }

    /// The checkpoint was committed: the other area is stale.
    pub(crate) const fn release_other(&mut self) {
        self.used[1 - self.active] = 0;
    }

    /// The checkpoint was committed while no trim came in: both areas are stale.
    pub(crate) const fn release_all(&mut self) {
        self.used = [0; 2];
    }

    /// Sets what recovery found: the end of the counting records of each area, and which area has
    /// the newest.
    pub(crate) const fn resume(&mut self, used: [u32; 2], newest: usize) {
        self.used = used;
        self.active = newest;
    }

    /// Offset and capacity of an area.
    pub(crate) const fn area(&self, which: usize) -> (u64, u32) {
        (self.offsets[which], self.capacity)
    }

    /// Reads the records of an area, torn ones as `None`.
    pub(crate) fn decode(bytes: &[u8]) -> impl Iterator<Item = Option<TrimRecord>> + '_ {
        let (records, _) = bytes.as_chunks::<TRIM_RECORD_BYTES>();
        records.iter().map(TrimRecord::decode)
    }
}
