//! The walk over a victim: its chain of headers, and the blocks that these list.
//!
//! The next header is read while the blocks of the last one are looked up and moved. A chain is read one header after the
//! other, so several victims are walked side by side where log segments are short.

use std::collections::VecDeque;

use onefold_format::volume::{DecodedBatch, Slot, Version};
use onefold_units::{Lba, Location, LogSegmentId};

use crate::snapshots::Held;

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
    pub(crate) segment: LogSegmentId,
    /// The next header, in blocks from the start of the log segment; `None` behind the last one.
    pub(crate) next: Option<u32>,
    pub(crate) header_wanted: bool,
    /// Blocks that were not looked up yet.
    pub(crate) blocks: VecDeque<Found>,
    /// Reads and appends under way.
    pub(crate) moves: usize,
    /// Its blocks are remapped, not copied.
    pub(crate) remaps: bool,
    /// Everything could be read so far (`crate::cleaner`, invariant 5).
    pub(crate) whole: bool,
}

impl Walk {
    pub(crate) const fn new(segment: LogSegmentId, remaps: bool) -> Self {
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
}

impl Walk {
    /// Takes up the blocks that a header lists. Some that were taken back may wait already (`Volume::revisit`).
    pub(crate) fn extend(&mut self, batch: &DecodedBatch, start: u32) {
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
