//! What a buffer with foresight holds.

use std::collections::BTreeMap;

use super::next::NEVER;
use crate::Stats;

/// Neighbouring pages with the same next use. The tenant that wrote them if they are dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) n: u32,
    pub(super) owner: Option<u8>,
}

/// Pages by their next use.
///
/// A page that a request accesses next is found by the number of that request, so no page is looked
/// up. *Dead* pages have no next use; they matter only because a TRIM may still discard their data.
/// Extents are disjoint.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// By next use (number of the request, then first page: the order in which they are used).
    live: BTreeMap<(u32, u32), Extent>,
    /// By first page.
    dead: BTreeMap<u32, Extent>,
    free: u32,
    /// Pages programmed so far.
    pub(super) programs: u64,
    pub(super) stats: Stats,
}

impl Kept {
    pub(super) fn new(slots: u32) -> Self {
        let stats = Stats::new(&[]);
        Self { live: BTreeMap::new(), dead: BTreeMap::new(), free: slots, programs: 0, stats }
    }

    /// Pages for which there is room.
    pub(super) const fn free(&self) -> u32 {
        self.free
    }

    /// Inserts pages, for which there is room.
    pub(super) fn insert(&mut self, next: u32, lpn: u32, extent: Extent) {
        if extent.n == 0 {
            return;
        }
        self.free -= extent.n;
        let before = if next == NEVER {
            self.dead.insert(lpn, extent)
        } else {
            self.live.insert((next, lpn), extent)
        };
        assert!(before.is_none(), "page {lpn} is buffered twice");
    }

    /// The first page that request `number` uses.
    pub(super) fn due(&self, number: u32) -> Option<u32> {
        let ((next, lpn), _) = self.live.first_key_value()?;
        (*next == number).then_some(*lpn)
    }

    /// Takes out pages that request `number` uses, from the first one on, at most `most` of them.
    pub(super) fn take_due(&mut self, number: u32, most: u32) -> Option<Extent> {
        let first = self.live.first_entry().filter(|first| first.key().0 == number)?;
        let (_, lpn) = *first.key();
        let Extent { n, owner } = first.remove();
        let taken = n.min(most);
        if taken < n {
            self.live.insert((number, lpn + taken), Extent { n: n - taken, owner });
        }
        self.free += taken;
        Some(Extent { n: taken, owner })
    }

    /// Takes out dead pages from `first` to `last`, some at a time.
    pub(super) fn take_dead(&mut self, first: u32, last: u32) -> Option<Extent> {
        let (at, Extent { n, owner }) =
            self.dead.range(..=last).next_back().map(|(at, extent)| (*at, *extent))?;
        let end = at + (n - 1);
        let (from, to) = (at.max(first), end.min(last));
        if to < from {
            return None;
        }
        self.dead.remove(&at);
        if from > at {
            self.dead.insert(at, Extent { n: from - at, owner });
        }
        if to < end {
            self.dead.insert(to + 1, Extent { n: end - to, owner });
        }
        let n = to - from + 1;
        self.free += n;
        Some(Extent { n, owner })
    }

    /// Evicts dead pages, the lowest first, `most` at most and only below page `below` if that is
    /// given. Returns how many.
    pub(super) fn evict_dead(&mut self, most: u32, below: Option<u32>) -> u32 {
        let mut gone = 0;
        while gone < most
            && let Some(first) = self.dead.first_entry()
            && below.is_none_or(|below| *first.key() < below)
        {
            let (at, Extent { n, owner }) = first.remove_entry();
            let left = n.min(most - gone);
            if left < n {
                self.dead.insert(at + left, Extent { n: n - left, owner });
            }
            gone += left;
            self.evicted(Extent { n: left, owner });
        }
        gone
    }

    /// Evicts pages used later than page `than.1` of request `than.0`, the farthest first, `most` at
    /// most. Returns how many.
    pub(super) fn evict_farther(&mut self, most: u32, than: (u32, u32)) -> u32 {
        let mut gone = 0;
        while gone < most
            && let Some(mut last) = self.live.last_entry()
            && *last.key() > than
        {
            let Extent { n, owner } = *last.get();
            let left = n.min(most - gone);
            if left < n {
                last.get_mut().n -= left;
            } else {
                last.remove();
            }
            gone += left;
            self.evicted(Extent { n: left, owner });
        }
        gone
    }

    fn evicted(&mut self, extent: Extent) {
        self.free += extent.n;
        self.programmed(extent);
    }

    /// Pages were written.
    pub(super) fn written(&mut self, tenant: u8, n: u32) {
        self.stats.tenant_mut(tenant).dirty += u64::from(n);
    }

    /// Pages leave, or do not enter: what is dirty is programmed.
    pub(super) fn programmed(&mut self, extent: Extent) {
        if let Some(owner) = extent.owner {
            let tenant = self.stats.tenant_mut(owner);
            tenant.pages_programmed += u64::from(extent.n);
            tenant.programs += u64::from(extent.n);
            self.programs += u64::from(extent.n);
            tenant.dirty -= u64::from(extent.n);
        }
    }

    /// Pages are written again.
    pub(super) fn overwritten(&mut self, extent: Extent) {
        if let Some(owner) = extent.owner {
            let tenant = self.stats.tenant_mut(owner);
            tenant.overwritten += u64::from(extent.n);
            tenant.dirty -= u64::from(extent.n);
        }
    }

    /// Pages are trimmed.
    pub(super) fn discarded(&mut self, extent: Extent) {
        if let Some(owner) = extent.owner {
            let tenant = self.stats.tenant_mut(owner);
            tenant.trim_discards += u64::from(extent.n);
            tenant.dirty -= u64::from(extent.n);
        }
    }
}
