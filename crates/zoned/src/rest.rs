//! When a journal that has zones of its own rests in the cache.
//!
//! In sequential zones a journal takes nothing from the cache, but it is as slow as one of them; in a pinned chunk it is as fast as
//! the cache, which is a zone smaller then. So it rests in its chunks while there is room for all: until the cache gave out, and again
//! when half of it is free. What then lies there is never copied, it stays until the ring has come around. That must not cost much:
//! the chunks are a tenth of the cache at most, and the journal is a third of what is written or more, so that the ring is fast.
//!
//! Beyond zoned.md, section 5, which has one or the other for good (docs/zoned-studies.md has what that costs).

use onefold_units::ZoneId;
use onefold_units::convert::{narrow, u32_from};

use crate::chunks::Part;
use crate::journal::Placement;
use crate::volume::Volume;

/// The cache has room again when so much of it is free, in percent: dm-zoned's bound from which on it does not reclaim.
const ROOM_PERCENT: u32 = 50;

/// One block of what is written in so many is the journal's, at least.
const WRITTEN_PART: u64 = 3;

/// One zone of the cache in so many is taken by its chunks, at most.
const CACHE_PART: u32 = 10;

/// Whether the journal may rest, as far as that is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rest {
    /// Its chunks are few enough.
    fits: bool,
    /// Blocks that the host wrote lately: of the journal, and all.
    journal: u64,
    all: u64,
    /// A chunk found no zone, and since then half of them were never free.
    gave_out: bool,
}

impl Rest {
    /// Blocks were written. What counts is about the last lap of a ring of `lap` blocks.
    fn count(&mut self, journal: u64, all: u64, lap: u64) {
        self.journal += journal;
        self.all += all;
        if self.all > 2 * lap {
            self.journal /= 2;
            self.all /= 2;
        }
    }

    const fn is_due(self) -> bool {
        self.fits && !self.gave_out && WRITTEN_PART * self.journal >= self.all
    }
}

impl Volume {
    /// The journal was found, moved or lost.
    pub(crate) fn place_rest(&mut self) {
        let may = matches!(self.set.placement, Placement::Appended { pins: true, .. });
        let chunks = u32_from(self.journal_chunks().len());
        self.set.rest.fits = may && CACHE_PART * chunks <= self.zones.conventional();
    }

    /// The host writes so many blocks of the journal, and so many in all.
    pub(crate) fn count_for_rest(&mut self, journal: u64, all: u64) {
        if self.set.rest.fits {
            let ranges = self.options.journal_ranges.iter();
            let lap = ranges.map(|range| range.end - range.start).sum();
            self.set.rest.count(journal, all, lap);
        }
    }

    /// A chunk found no zone.
    pub(crate) const fn cache_gave_out(&mut self) {
        self.set.rest.gave_out = true;
    }

    /// A zone of the cache was given back.
    pub(crate) fn cache_has_room(&mut self) {
        let (free, all) = self.zones.room(0);
        if self.set.rest.gave_out && free * 100 >= all * ROOM_PERCENT {
            self.set.rest.gave_out = false;
        }
    }

    /// Whether a write of the journal goes to its chunk although it could be appended. It never waits there.
    pub(crate) fn rests(&self, part: &Part) -> bool {
        if !self.set.rest.is_due() || self.is_rewritten(part) {
            return false;
        }
        match self.meta.entry(part.chunk).data {
            Some(zone) => !self.zones.get(zone).is_sequential() && !self.zones.get(zone).locked,
            None => self.zones.room(0).0 > 0,
        }
    }

    /// If nothing of the journal is left in a pinned chunk that it rested in, reclaim may have it.
    pub(crate) fn unpin_if_left(&mut self, chunk: u32) {
        let appends = matches!(self.set.placement, Placement::Appended { .. });
        if !appends || !self.pinned.contains(&chunk) || self.holds_journal(chunk) {
            return;
        }
        self.pinned.remove(&chunk);
        self.changes += 1;
        if let Some(data) = self.meta.entry(chunk).data {
            self.free_if_empty(data);
        }
    }

    /// Whether the data zone of a chunk is a conventional one and has a block of the journal, or may
    /// get one: a write under way has no valid block yet, and reclaim would copy what it writes.
    pub(crate) fn holds_journal(&self, chunk: u32) -> bool {
        let Some(data) = self.meta.entry(chunk).data else { return false };
        let zone = self.zones.get(data);
        !zone.is_sequential() && (zone.active > 0 || self.has_valid_journal(chunk, data))
    }

    fn has_valid_journal(&self, chunk: u32, data: ZoneId) -> bool {
        let (start, end) = (self.lba(chunk, 0), self.lba(chunk + 1, 0));
        self.options.journal_ranges.iter().any(|range| {
            let (first, last) = (range.start.max(start), range.end.min(end));
            let blocks = || narrow(first - start)..narrow(last - start);
            first < last && self.meta.first_valid(data, blocks()).is_some()
        })
    }
}
