//! The walk over a victim: its chain of headers, and the blocks that these list.
//!
//! The next header is read while the blocks of the last one are looked up and moved. A chain is read one header after the
//! other, so several victims are walked side by side where log segments are short.

use std::collections::VecDeque;

use onefold_format::volume::{DecodedBatch, Slot, Version};
use onefold_units::{Lba, Location, LogSegmentId};

use crate::limits::BATCH_MIN;
use crate::snapshots::Held;

/// While so many blocks wait to be looked up, the next header is not read yet.
const BLOCKS_AHEAD: usize = 64;

/// A block that may be live.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) lba: Lba,
    /// The member that wrote it, by what its writes are marked with.
    pub(crate) birth: u32,
    pub(crate) at: Location,
    /// The recorded checksum.
    pub(crate) crc: u32,
}

/// A log segment that is cleaned.
#[derive(Debug)]
pub(crate) struct Walk {
    segment: LogSegmentId,
    /// The next header, in blocks from the start of the log segment; `None` behind the last one.
    next: Option<u32>,
    header_wanted: bool,
    /// Blocks that were not looked up yet.
    blocks: VecDeque<Found>,
    /// Reads and appends under way.
    moves: usize,
    /// Its blocks are remapped, not copied.
    remaps: bool,
    /// Everything could be read so far (`crate::cleaner`, invariant 5).
    whole: bool,
}

impl Walk {
    pub(super) const fn new(segment: LogSegmentId, remaps: bool) -> Self {
        let blocks = VecDeque::new();
        Self { segment, next: Some(0), header_wanted: false, blocks, moves: 0, remaps, whole: true }
    }

    /// Whether nothing of it is left to do.
    pub(crate) fn is_over(&self) -> bool {
        self.next.is_none() && self.blocks.is_empty() && self.moves == 0
    }

    /// Whether it has blocks to look up.
    pub(crate) fn has_blocks(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// The next block that may be live.
    pub(crate) fn next_found(&self) -> Option<Found> {
        self.blocks.front().copied()
    }

    /// The next block was looked at.
    pub(crate) fn pass_found(&mut self, held: Held) {
        self.blocks.pop_front();
        self.whole &= held != Held::Unread;
    }

    /// Takes up the blocks that a header lists. Some that were taken back may wait already (`Volume::revisit`).
    fn extend(&mut self, batch: &DecodedBatch, start: u32) {
        let found = |(at, one): (Location, Version)| {
            let Version { lba, birth, crc, .. } = one;
            Found { lba, birth, at, crc }
        };
        let mut all: Vec<Found> = batch.located(start).map(found).collect();
        // Those of a pack are read together.
        if !batch.places.is_empty() {
            all.sort_by_key(|found| Slot::split(found.at).0);
        }
        self.blocks.extend(all);
    }

    pub(crate) const fn segment(&self) -> LogSegmentId {
        self.segment
    }

    /// Whether its blocks are remapped, not copied.
    pub(crate) const fn remaps(&self) -> bool {
        self.remaps
    }

    /// The rest of its blocks are copied.
    pub(super) const fn copy(&mut self) {
        self.remaps = false;
    }

    /// Whether everything could be read.
    pub(crate) const fn is_whole(&self) -> bool {
        self.whole
    }

    /// Something of it could not be read.
    pub(crate) const fn miss(&mut self) {
        self.whole = false;
    }

    /// Where the next header is that is to be read now, in blocks from the start of the log segment. Said once for each.
    pub(crate) fn want_header(&mut self) -> Option<u32> {
        if self.header_wanted || self.blocks.len() >= BLOCKS_AHEAD {
            return None;
        }
        self.header_wanted = self.next.is_some();
        self.next
    }

    /// Where the header is that is being read.
    pub(crate) fn header_at(&self) -> u32 {
        self.next.unwrap_or(0)
    }

    /// The header was read: it lies at `start`, in a log segment of so many blocks. What is none ends the chain.
    pub(crate) fn take_header(&mut self, batch: Option<&DecodedBatch>, start: u32, blocks: u32) {
        self.header_wanted = false;
        let Some(batch) = batch else {
            // Nothing may ever have been there, or a header that rotted.
            (self.next, self.whole) = (None, false);
            return;
        };
        self.extend(batch, start);
        let behind = self.header_at() + batch.blocks();
        self.next = (behind + BATCH_MIN <= blocks).then_some(behind);
    }

    /// Reads and appends that are under way: one more.
    pub(super) const fn begin_move(&mut self) {
        self.moves += 1;
    }

    pub(super) const fn end_move(&mut self) {
        self.moves -= 1;
    }

    pub(super) const fn moves(&self) -> usize {
        self.moves
    }

    /// A block is looked at once more.
    pub(crate) fn revisit(&mut self, found: Found) {
        self.blocks.push_back(found);
    }
}
