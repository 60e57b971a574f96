//! The page cache of the host: which pages a read does not ask the device for.

use onefold_units::convert::{index, index64, narrow, u32_from};

/// Pages in memory, replaced by CLOCK: a page that was used since the hand last passed stays for another
/// round. Writes go through at once, so no page is dirty.
#[derive(Clone, Debug)]
pub(super) struct PageCache {
    /// Page in each frame.
    pages: Vec<u32>,
    /// By page, one more than its frame; 0 = not in memory.
    frames: Vec<u32>,
    /// By frame, whether its page was used since the hand passed.
    used: Vec<bool>,
    hand: usize,
}

impl PageCache {
    /// A cache of `size` pages, warm: it holds the last pages of a range of `pages`. `None` without room for any.
    pub(super) fn new(size: u64, pages: u64) -> Option<Self> {
        let size = size.min(pages);
        if size == 0 {
            return None;
        }
        let first = pages - size;
        let mut frames = vec![0; index64(pages)];
        for frame in 0..size {
            frames[index64(first + frame)] = narrow(frame + 1);
        }
        Some(Self {
            pages: (first..pages).map(narrow).collect(),
            frames,
            used: vec![false; index64(size)],
            hand: 0,
        })
    }

    /// Uses a page, and brings it into memory if it was not there. Whether it was.
    pub(super) fn use_page(&mut self, page: u64) -> bool {
        if let Some(frame) = self.frames[index64(page)].checked_sub(1) {
            self.used[index(frame)] = true;
            return true;
        }
        while std::mem::take(&mut self.used[self.hand]) {
            self.advance();
        }
        self.frames[index(self.pages[self.hand])] = 0;
        self.pages[self.hand] = narrow(page);
        self.frames[index64(page)] = u32_from(self.hand) + 1;
        self.advance();
        false
    }

    fn advance(&mut self) {
        self.hand = (self.hand + 1) % self.pages.len();
    }
}

#[cfg(test)]
mod tests {
    use super::PageCache;

    #[test]
    fn a_page_that_is_used_stays_for_another_round() {
        let mut cache = PageCache::new(3, 6).unwrap();
        let mut was_there = |page| cache.use_page(page);
        assert!(was_there(3), "the last pages are there at first");
        assert!(!was_there(0), "the hand passes page 3, which was used, and replaces page 4");
        assert!(was_there(3) && was_there(5));
        assert!(!was_there(4), "the hand passes pages 5 and 3, and replaces page 0");
        assert!(was_there(3) && was_there(5) && was_there(4));
        assert!(!was_there(0));
    }

    #[test]
    fn a_cache_has_no_more_pages_than_there_are() {
        assert!(PageCache::new(0, 6).is_none());
        let mut cache = PageCache::new(100, 4).unwrap();
        assert!((0..4).all(|page| cache.use_page(page)));
    }
}
