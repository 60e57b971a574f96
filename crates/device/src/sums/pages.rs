//! Checksums in memory, of as many regions as are worth it.

use std::collections::BTreeMap;
use std::ops::Bound;

use onefold_format::CACHE_BLOCK_BYTES;
use onefold_units::convert::u64_from;

/// Pages in memory, unless the device takes none back: 16 MiB, which is all of them up to 16 GiB.
const PAGES_MAX: usize = 4096;

/// The checksums of a region.
pub(super) struct Page {
    pub(super) sums: Vec<u32>,
    /// The device has others.
    pub(super) is_dirty: bool,
    /// It was used since the hand came by.
    is_used: bool,
}

impl Page {
    pub(super) const fn new(sums: Vec<u32>) -> Self {
        Self { sums, is_dirty: false, is_used: true }
    }
}

/// Pages by region. One that is not used for a lap of the hand goes first.
pub(super) struct Pages {
    all: BTreeMap<u64, Page>,
    hand: u64,
    max: usize,
}

impl Default for Pages {
    fn default() -> Self {
        Self { all: BTreeMap::new(), hand: 0, max: PAGES_MAX }
    }
}

impl Pages {
    #[cfg(test)]
    pub(super) fn set_max(&mut self, max: usize) {
        self.max = max;
    }

    pub(super) fn get(&mut self, region: u64) -> Option<&mut Page> {
        let page = self.all.get_mut(&region)?;
        page.is_used = true;
        Some(page)
    }

    pub(super) fn insert(&mut self, region: u64, page: Page) {
        self.all.insert(region, page);
    }

    /// The page to go before another one comes, if there are too many.
    pub(super) fn victim(&mut self, stays: impl Fn(u64) -> bool) -> Option<u64> {
        if self.all.len() < self.max {
            return None;
        }
        // Two laps find one, unless all stay.
        for _ in 0..2 * self.all.len() {
            let next = self.all.range_mut((Bound::Excluded(self.hand), Bound::Unbounded)).next();
            let (region, page) = match next {
                Some(found) => found,
                None => self.all.iter_mut().next()?,
            };
            self.hand = *region;
            if !stays(*region) && !std::mem::take(&mut page.is_used) {
                return Some(*region);
            }
        }
        None
    }

    /// Takes a page from memory that the device has.
    pub(super) fn remove_clean(&mut self, region: u64) {
        if self.all.get(&region).is_some_and(|page| !page.is_dirty) {
            self.all.remove(&region);
        }
    }

    /// Bytes that they take.
    pub(super) fn bytes(&self) -> u64 {
        u64_from(self.all.len() * CACHE_BLOCK_BYTES)
    }
}
