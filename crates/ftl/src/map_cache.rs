//! Which translation pages are in DRAM when the map is demand-paged (ssd.md 1.2; DFTL, Gupta 2009).

use onefold_units::convert::{index, narrow, u32_from};

use crate::layout::Layout;

const NIL: u32 = u32::MAX;

/// What a lookup did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) hit: bool,
    /// A dirty page that has to be written back first.
    pub(crate) evicted: Option<u32>,
}

/// An LRU cache of page numbers with clean-first eviction: two lists, because the oldest clean page
/// leaves before any dirty one.
#[derive(Clone, Debug)]
pub(crate) struct MapCache {
    capacity: u32,
    len: u32,
    /// Links by page; `lists[dirty]` has a sentinel at `pages + dirty`.
    prev: Vec<u32>,
    next: Vec<u32>,
    state: Vec<PageState>,
    pages: u32,
}

onefold_units::keep!(MapCache { len, prev, next, state } but { capacity, pages });

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum PageState {
    #[default]
    Absent,
    Clean,
    Dirty,
}

onefold_units::keep_enum!(PageState { Absent, Clean, Dirty });

impl MapCache {
    pub(crate) fn new(bytes: u64, unit_bytes: u32, layout: &Layout) -> Self {
        let pages = layout.units - layout.data_units;
        let capacity = narrow((bytes / u64::from(unit_bytes)).clamp(1, u64::from(pages.max(1))));
        let nodes = index(pages) + 2;
        let mut cache = Self {
            capacity,
            len: 0,
            prev: vec![NIL; nodes],
            next: vec![NIL; nodes],
            state: vec![PageState::Absent; index(pages)],
            pages,
        };
        for sentinel in [pages, pages + 1] {
            cache.prev[index(sentinel)] = sentinel;
            cache.next[index(sentinel)] = sentinel;
        }
        cache
    }

    /// Uses a page; a write makes it dirty.
    pub(crate) fn access(&mut self, page: u32, dirty: bool) -> Access {
        if page >= u32_from(self.state.len()) {
            return Access { hit: true, evicted: None };
        }
        let was = self.state[index(page)];
        if was != PageState::Absent {
            self.unlink(page);
            let dirty = dirty || was == PageState::Dirty;
            self.link(page, dirty);
            return Access { hit: true, evicted: None };
        }
        let evicted = if self.len == self.capacity { self.evict() } else { None };
        self.link(page, dirty);
        self.len += 1;
        Access { hit: false, evicted }
    }

    /// The entry of a page changed without a lookup: dirty if it is here.
    pub(crate) fn mark_dirty(&mut self, page: u32) {
        if self.state.get(index(page)) == Some(&PageState::Clean) {
            self.unlink(page);
            self.link(page, true);
        }
    }

    fn evict(&mut self) -> Option<u32> {
        self.len -= 1;
        let oldest_clean = self.prev[index(self.pages)];
        if oldest_clean != self.pages {
            self.unlink(oldest_clean);
            self.state[index(oldest_clean)] = PageState::Absent;
            return None;
        }
        let oldest_dirty = self.prev[index(self.pages + 1)];
        self.unlink(oldest_dirty);
        self.state[index(oldest_dirty)] = PageState::Absent;
        Some(oldest_dirty)
    }

    fn link(&mut self, page: u32, dirty: bool) {
        let sentinel = self.pages + u32::from(dirty);
        let first = self.next[index(sentinel)];
        self.next[index(sentinel)] = page;
        self.prev[index(page)] = sentinel;
        self.next[index(page)] = first;
        self.prev[index(first)] = page;
        self.state[index(page)] = if dirty { PageState::Dirty } else { PageState::Clean };
    }

    fn unlink(&mut self, page: u32) {
        let (before, after) = (self.prev[index(page)], self.next[index(page)]);
        self.next[index(before)] = after;
        self.prev[index(after)] = before;
    }
}
