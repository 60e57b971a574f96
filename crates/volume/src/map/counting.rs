//! Making live counts exact after a recovery.
//!
//! Recovery makes a run without reading the map, so it does not know what the records replaced; the counts are too high
//! until the pages of that run were read (`crate::map::runs`, invariant 2).
//!
//! 1. What was replaced at a page is judged once, when the page of every member is there: a block is dead if no member's
//!    entry points at it. Until all is judged, a volume with several members takes no changes (`Volume::check_change`), so
//!    the order of judging does not matter.

use std::collections::{BTreeMap, BTreeSet};

use onefold_units::Nanos;

use crate::map::images::Replaced;

/// What has to be counted.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    /// Pages that recovery changed in some member.
    pages: Vec<usize>,
    /// Pages that were judged.
    judged: BTreeSet<usize>,
    /// By key.
    replaced: BTreeMap<usize, Vec<Replaced>>,
    /// Doubtful counts are looked at again then (`crate::volume::map::doubts`).
    doubts_until: Nanos,
}

impl Counting {
    /// Pages that recovery changed: they have to be judged.
    pub(crate) fn add(&mut self, pages: impl IntoIterator<Item = usize>) {
        // Those of an opening before that was cut may be among those of this one, and no page is read twice at once.
        self.pages.extend(pages);
        self.pages.sort_unstable();
        self.pages.dedup();
    }

    /// Pages that may have to be judged.
    pub(crate) const fn waiting(&self) -> usize {
        self.pages.len()
    }

    /// One of them.
    pub(crate) fn page(&self, at: usize) -> usize {
        self.pages[at]
    }

    /// One of them was judged.
    pub(crate) fn pass(&mut self, at: usize) {
        self.pages.swap_remove(at);
    }

    pub(crate) fn is_judged(&self, page: usize) -> bool {
        self.judged.contains(&page)
    }

    /// Records of recovery replaced these blocks in a page.
    pub(crate) fn note(&mut self, key: usize, replaced: Vec<Replaced>) {
        self.replaced.insert(key, replaced);
    }

    /// A page is judged: what was replaced there in any member, each block once.
    pub(crate) fn judge(&mut self, page: usize, keys: &[usize]) -> BTreeSet<Replaced> {
        self.judged.insert(page);
        keys.iter().filter_map(|key| self.replaced.remove(key)).flatten().collect()
    }

    /// Every page was judged.
    pub(crate) fn clear(&mut self) {
        *self = Self { doubts_until: self.doubts_until, ..Self::default() };
    }

    /// When doubtful counts are looked at again.
    pub(crate) const fn doubts_until(&self) -> Nanos {
        self.doubts_until
    }

    pub(crate) const fn leave_doubts(&mut self, until: Nanos) {
        self.doubts_until = until;
    }
}
