//! When a journal that has zones of its own rests in the cache.
//!
//! In sequential zones a journal takes nothing from the cache, but it is as slow as one of them; in a pinned chunk it is as fast as
//! the cache, which is a zone smaller then. So it rests in its chunks while there is room for all: until the cache gave out, and again
//! when half of it is free. What then lies there is never copied, it stays until the ring has come around. That must not cost much:
//! the chunks are a tenth of the cache at most, and the journal is a third of what is written or more, so that the ring is fast.
//!
//! Beyond zoned.md, section 5, which has one or the other for good (docs/zoned-studies.md has what that costs).

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
    /// The journal was found, moved or lost: it has so many chunks, in a cache of so many zones, and may lie there or not.
    pub(crate) const fn place(&mut self, may: bool, chunks: u32, cache: u32) {
        self.fits = may && CACHE_PART * chunks <= cache;
    }

    /// The host writes blocks: of the journal, and all. What counts is about the last lap of a ring of `lap` blocks.
    pub(crate) const fn count(&mut self, journal: u64, all: u64, lap: u64) {
        if !self.fits {
            return;
        }
        self.journal += journal;
        self.all += all;
        if self.all > 2 * lap {
            self.journal /= 2;
            self.all /= 2;
        }
    }

    /// A chunk found no zone.
    pub(crate) const fn cache_gave_out(&mut self) {
        self.gave_out = true;
    }

    /// A zone was given back: so many are free now.
    pub(crate) const fn cache_has_room(&mut self, (free, all): (u32, u32)) {
        if self.gave_out && free * 100 >= all * ROOM_PERCENT {
            self.gave_out = false;
        }
    }

    /// Whether the journal is to go to its chunks.
    pub(crate) const fn is_due(self) -> bool {
        self.fits && !self.gave_out && WRITTEN_PART * self.journal >= self.all
    }
}
