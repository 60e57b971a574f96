//! The two logs of the store: the write-ahead log and the journal of the file system below it.

use onefold_units::Rng;
use onefold_units::convert::narrow;

use super::space::Extent;

/// The write-ahead log of one memtable: appended in bursts, and because an append seldom ends at
/// the end of a page, a burst writes the last page of the one before again.
#[derive(Clone, Debug)]
pub(super) struct Wal {
    pub(super) extents: Vec<Extent>,
    pages: u32,
    written: u32,
}

impl Wal {
    pub(super) const fn new(extents: Vec<Extent>, pages: u32) -> Self {
        Self { extents, pages, written: 0 }
    }

    /// Starts again at the first page.
    pub(super) const fn recycle(&mut self) {
        self.written = 0;
    }

    pub(super) const fn is_full(&self) -> bool {
        self.written == self.pages
    }

    /// The share of the memtable that is logged, as a fraction of `whole`.
    pub(super) fn logged(&self, whole: u64) -> u64 {
        u64::from(self.written) * whole / u64::from(self.pages)
    }

    /// The next burst, which adds `pages` pages or as many as are left: the first page it writes,
    /// counted from the start of the log, how many it writes, and how many of them are new.
    pub(super) fn append(&mut self, pages: u32) -> (u32, u32, u32) {
        let added = pages.min(self.pages - self.written);
        let first = self.written.saturating_sub(1);
        self.written += added;
        (first, self.written - first, added)
    }
}

/// The journal of the file system: circular, and each commit ends in one write to the metadata
/// pages it protects.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    start: u32,
    pages: u32,
    next: u32,
    hot: Extent,
    rng: Rng,
}

impl Journal {
    pub(super) const fn new(journal: Extent, hot: Extent, rng: Rng) -> Self {
        Self { start: journal.start, pages: journal.pages, next: 0, hot, rng }
    }

    /// A commit of `pages` pages: up to two pieces of the journal, and the metadata page.
    pub(super) fn commit(&mut self, pages: u32) -> [Extent; 3] {
        let first = pages.min(self.pages - self.next);
        let at = Extent { start: self.start + self.next, pages: first };
        let wrapped = Extent { start: self.start, pages: pages - first };
        self.next = (self.next + pages) % self.pages;
        let page = narrow(self.rng.below(u64::from(self.hot.pages)));
        [at, wrapped, Extent { start: self.hot.start + page, pages: 1 }]
    }
}
