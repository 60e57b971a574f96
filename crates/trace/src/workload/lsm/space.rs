//! The part of the device that holds files: next-fit allocation of extents.

use std::collections::BTreeMap;

/// A piece of a file: consecutive pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) start: u32,
    pub(super) pages: u32,
}

impl Extent {
    const fn end(self) -> u32 {
        self.start + self.pages
    }

    /// Takes up to `pages` pages off the front.
    pub(super) fn take(&mut self, pages: u32) -> Self {
        let part = Self { pages: pages.min(self.pages), ..*self };
        self.start += part.pages;
        self.pages -= part.pages;
        part
    }
}

/// Pages of extents.
pub(super) fn total<'a>(extents: impl IntoIterator<Item = &'a Extent>) -> u64 {
    extents.into_iter().map(|extent| u64::from(extent.pages)).sum()
}

/// `count` pages of a file from its page `first` on.
pub(super) fn part(extents: &[Extent], first: u32, count: u32) -> impl Iterator<Item = Extent> {
    let (mut skip, mut left) = (first, count);
    extents.iter().filter_map(move |extent| {
        let before = skip.min(extent.pages);
        skip -= before;
        let pages = (extent.pages - before).min(left);
        left -= pages;
        (pages > 0).then_some(Extent { start: extent.start + before, pages })
    })
}

/// Free pages as maximal holes. Everything is a multiple of `align` pages, relative to the start of
/// the space, except the length of the last extent of a file, which is rounded up in here.
#[derive(Clone, Debug)]
pub(super) struct Space {
    align: u32,
    holes: BTreeMap<u32, u32>,
    free: u32,
    /// Where the last extent handed out ended: the search goes on there.
    cursor: u32,
}

impl Space {
    /// Pages `start..end`, all free; both are multiples of `align`.
    pub(super) fn new(start: u32, end: u32, align: u32) -> Self {
        let free = end - start;
        Self { align, holes: BTreeMap::from([(start, free)]), free, cursor: start }
    }

    /// Room for `pages` pages: the first hole after the last extent that takes them all, or the
    /// next holes together if there is none. `None` if too little is free.
    pub(super) fn allocate(&mut self, pages: u32) -> Option<Vec<Extent>> {
        let needed = pages.next_multiple_of(self.align);
        if needed > self.free {
            return None;
        }
        let hole = self.search().find(|hole| hole.pages >= needed);
        if let Some(hole) = hole {
            self.take(Extent { start: hole.start, pages: needed });
            return Some(vec![Extent { start: hole.start, pages }]);
        }
        let mut extents = Vec::new();
        let mut missing = pages;
        while missing > 0 {
            let hole = self.search().next()?;
            let used = missing.min(hole.pages);
            self.take(Extent { start: hole.start, pages: used.next_multiple_of(self.align) });
            extents.push(Extent { start: hole.start, pages: used });
            missing -= used;
        }
        Some(extents)
    }

    /// Gives back an extent of a file.
    pub(super) fn release(&mut self, extent: Extent) {
        let mut hole = Extent { pages: extent.pages.next_multiple_of(self.align), ..extent };
        self.free += hole.pages;
        if let Some((start, pages)) = self.hole_before(hole.start)
            && start + pages == hole.start
        {
            hole = Extent { start, pages: pages + hole.pages };
        }
        if let Some(pages) = self.holes.remove(&hole.end()) {
            hole.pages += pages;
        }
        self.holes.insert(hole.start, hole.pages);
    }

    /// Free pages.
    #[cfg(test)]
    pub(super) const fn free_pages(&self) -> u32 {
        self.free
    }

    /// The holes in the order of the search: from the cursor to the end, then all from the start.
    fn search(&self) -> impl Iterator<Item = Extent> {
        let cursor = self.cursor;
        let split = self.hole_before(cursor).map(|(start, pages)| start + pages);
        let rest = split.filter(|end| *end > cursor);
        let rest = rest.map(|end| Extent { start: cursor, pages: end - cursor });
        let later = self.holes.range(cursor..).chain(self.holes.range(..cursor));
        rest.into_iter().chain(later.map(|(start, pages)| Extent { start: *start, pages: *pages }))
    }

    fn hole_before(&self, page: u32) -> Option<(u32, u32)> {
        self.holes.range(..page).next_back().map(|(start, pages)| (*start, *pages))
    }

    /// Takes a part of one hole away.
    fn take(&mut self, part: Extent) {
        let (start, pages) = self.hole_before(part.start + 1).unwrap_or((part.start, part.pages));
        debug_assert!(start <= part.start && part.end() <= start + pages, "{part:?} is not free");
        self.holes.remove(&start);
        if start < part.start {
            self.holes.insert(start, part.start - start);
        }
        if part.end() < start + pages {
            self.holes.insert(part.end(), start + pages - part.end());
        }
        self.free -= part.pages;
        self.cursor = part.end();
    }
}

#[cfg(test)]
mod tests {
    use super::{Extent, Space};
    use onefold_units::Rng;
    use onefold_units::convert::{index, index64, narrow, u64_from};

    #[test]
    fn goes_on_behind_the_last_extent() {
        let mut space = Space::new(256, 1280, 256);
        let extent = |start, pages| Extent { start, pages };
        assert_eq!(space.allocate(200), Some(vec![extent(256, 200)]));
        assert_eq!(space.allocate(256), Some(vec![extent(512, 256)]));
        space.release(extent(256, 200));
        assert_eq!(space.allocate(256), Some(vec![extent(768, 256)]), "not the first hole");
        // 256 pages at the end and 256 at the start: no hole is large enough.
        assert_eq!(space.allocate(300), Some(vec![extent(1024, 256), extent(256, 44)]));
        assert_eq!(space.allocate(1), None);
        space.release(extent(256, 44));
        assert_eq!(space.free_pages(), 256);
    }

    /// Random files against a map of every page: no page has two owners, and none is lost.
    #[test]
    fn every_page_has_one_owner() {
        let (start, end, align) = (64, 64 + 16 * 100, 16);
        let mut rng = Rng::new(5);
        let mut space = Space::new(start, end, align);
        let mut used = vec![false; index(end)];
        let mut files: Vec<Vec<Extent>> = Vec::new();
        let mut fragmented = 0;
        for _ in 0..20_000 {
            if files.is_empty() || rng.below(100) < 53 {
                let pages = 1 + narrow(rng.below(160));
                let Some(extents) = space.allocate(pages) else {
                    assert!(space.free_pages() < pages.next_multiple_of(align));
                    continue;
                };
                assert_eq!(extents.iter().map(|extent| extent.pages).sum::<u32>(), pages);
                fragmented += usize::from(extents.len() > 1);
                mark(&mut used, &extents, align, true);
                files.push(extents);
            } else {
                let extents = files.swap_remove(index64(rng.below(u64_from(files.len()))));
                for extent in &extents {
                    space.release(*extent);
                }
                mark(&mut used, &extents, align, false);
            }
            let free = used[index(start)..].iter().filter(|used| !**used).count();
            assert_eq!(free, index(space.free_pages()));
        }
        assert!(fragmented > 100, "{fragmented} files of several extents");
        files.into_iter().flatten().for_each(|extent| space.release(extent));
        assert_eq!(space.holes, [(start, end - start)].into());
    }

    fn mark(used: &mut [bool], extents: &[Extent], align: u32, now: bool) {
        for extent in extents {
            assert!(extent.start.is_multiple_of(align));
            let end = index(extent.start + extent.pages.next_multiple_of(align));
            for page in &mut used[index(extent.start)..end] {
                assert_ne!(*page, now, "{extent:?}");
                *page = now;
            }
        }
    }
}
