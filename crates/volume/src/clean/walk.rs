//! The walk over a victim: its chain of headers, and the blocks that these list.
//!
//! The next header is read while the blocks of the last one are looked up and moved. A chain is read one header after the
//! other, so several victims are walked side by side where log segments are short.

use std::collections::VecDeque;

use onefold_format::volume::{BatchHeader, DecodedBatch, Slot, Version};
use onefold_units::{Lba, Location, LogSegmentId};

use crate::append::BATCH_MIN;
use crate::family::Held;
use crate::io::{Buffer, IoFailed, IoKind};
use crate::pending::Purpose;
use crate::volume::Volume;

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
    pub(super) segment: LogSegmentId,
    /// The next header, in blocks from the start of the log segment; `None` behind the last one.
    next: Option<u32>,
    header_wanted: bool,
    /// Blocks that were not looked up yet.
    blocks: VecDeque<Found>,
    /// Reads and appends under way.
    pub(super) moves: usize,
    /// Its blocks are remapped, not copied.
    pub(super) remaps: bool,
    /// Everything could be read so far (`crate::clean`, invariant 5).
    pub(super) whole: bool,
}

impl Walk {
    pub(super) const fn new(segment: LogSegmentId, remaps: bool) -> Self {
        let blocks = VecDeque::new();
        Self { segment, next: Some(0), header_wanted: false, blocks, moves: 0, remaps, whole: true }
    }

    /// Whether nothing of it is left to do.
    pub(super) fn is_over(&self) -> bool {
        self.next.is_none() && self.blocks.is_empty() && self.moves == 0
    }

    /// Whether it has blocks to look up.
    pub(super) fn has_blocks(&self) -> bool {
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
}

impl Volume {
    /// Asks for the next header of a victim, if it is time.
    pub(super) fn read_header(&mut self, at: usize) {
        let walk = &mut self.cleaner.walks[at];
        let Some(next) = walk.next else { return };
        if walk.header_wanted || walk.blocks.len() >= BLOCKS_AHEAD {
            return;
        }
        walk.header_wanted = true;
        let segment = walk.segment;
        let at = Location::new(self.layout.start_of(segment).raw() + next);
        self.stats.clean_read += 1;
        self.ask(IoKind::Read, Purpose::CleanHeader(segment), at, 1);
    }

    /// The next header of a victim was read. What is none ends the chain.
    pub(crate) fn clean_header_over(
        &mut self,
        segment: LogSegmentId,
        buffer: &Buffer,
        result: Result<(), IoFailed>,
    ) {
        let blocks = self.segment_blocks();
        let first = self.layout.start_of(segment).raw();
        let epoch = self.segments.of(segment).epoch;
        let Some(walk) = self.cleaner.walk_of(segment) else { return };
        walk.header_wanted = false;
        let next = walk.next.unwrap_or(0);
        let start = first + next;
        let batch = result
            .ok()
            .and_then(|()| BatchHeader::decode(buffer.bytes(), &self.uuid, start.into()).ok())
            .filter(|batch| batch.header.segment == segment && batch.header.epoch == epoch);
        let Some(batch) = batch else {
            // Nothing may ever have been there, or a header that rotted.
            (walk.next, walk.whole) = (None, false);
            return;
        };
        walk.extend(&batch, start);
        let behind = next + batch.blocks();
        walk.next = (behind + BATCH_MIN <= blocks).then_some(behind);
    }

    /// Looks at blocks of a victim once more, if it is still at hand.
    pub(crate) fn revisit(&mut self, found: Found) {
        let segment = self.layout.segment_of(found.at);
        if let Some(walk) = self.cleaner.walk_of(segment) {
            walk.blocks.push_back(found);
        }
    }
}

impl Walk {
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
}
