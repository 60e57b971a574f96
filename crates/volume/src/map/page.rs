//! Pages of the map in memory.

use onefold_units::convert::u64_from;
use onefold_units::{Lba, Location};

/// The first block of a page of a member.
pub(crate) fn first_lba(page: usize) -> Lba {
    Lba::new(u64_from(page) * u64_from(PAGE_ENTRIES))
}

/// Where a block lies and the checksum of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) at: Location,
    pub(crate) crc: u32,
}

impl Entry {
    pub(crate) const UNMAPPED: Self = Self { at: Location::UNMAPPED, crc: 0 };
    pub(crate) const LOST: Self = Self { at: Location::LOST, crc: 0 };
}

/// Entries of a map page.
pub(crate) const PAGE_ENTRIES: usize = 1024;

pub(crate) const PAGE_ENTRIES_U64: u64 = 1024;

/// The entries of a page.
pub(crate) type Entries = Box<[Entry; PAGE_ENTRIES]>;

/// A page that maps nothing.
pub(crate) fn blank_entries() -> Entries {
    Box::new([Entry::UNMAPPED; PAGE_ENTRIES])
}

/// A page in memory.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) entries: Entries,
    /// What changed since the last capture, one bit per entry.
    pub(crate) dirty: [u64; PAGE_ENTRIES / 64],
    pub(crate) index: u32,
    /// The checkpoint that has to be committed before the page may leave (invariant 2).
    pub(crate) keep_until: u64,
    pub(crate) referenced: bool,
    pub(crate) image: ImageOf,
}

/// What the image of a page that a checkpoint is to write is made of.
#[derive(Debug)]
pub(crate) enum ImageOf {
    /// None is to be written.
    Nothing,
    /// What the page has: it did not change since the capture.
    Page,
    /// What it had.
    Copy(Entries),
}

impl Page {
    pub(crate) fn copy(&self) -> Entries {
        self.entries.clone()
    }

    /// Its entries are about to change.
    #[inline]
    pub(crate) fn will_change(&mut self) {
        if matches!(self.image, ImageOf::Page) {
            self.image = ImageOf::Copy(self.copy());
        }
    }

    /// The image that is to be written.
    pub(crate) fn take_image(&mut self) -> Option<Entries> {
        match std::mem::replace(&mut self.image, ImageOf::Nothing) {
            ImageOf::Nothing => None,
            ImageOf::Page => Some(self.copy()),
            ImageOf::Copy(entries) => Some(entries),
        }
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty.iter().any(|word| *word != 0)
    }

    pub(crate) fn maps_nothing(&self) -> bool {
        self.entries.iter().all(|entry| entry.at == Location::UNMAPPED)
    }
}

#[cfg(test)]
mod tests {
    use onefold_units::{Lba, Location};

    use super::{Entry, ImageOf, Page};
    use crate::map::Map;

    /// What changes while an image waits to be written does not get into it: its place may not be durable with the root.
    #[test]
    fn an_image_is_of_the_capture() {
        let at = |place| Entry { at: Location::new(place), crc: 0 };
        let mut map = Map::new(2, 2);
        let lba = Lba::new(1024);
        for all in [false, true] {
            map.set(lba, at(7));
            map.page_mut(1).expect("a page").image = ImageOf::Page;
            if all {
                map.clear(1);
            } else {
                map.set(lba, Entry::UNMAPPED);
            }
            assert_eq!(map.peek(lba), Entry::UNMAPPED);
            let image = map.page_mut(1).and_then(Page::take_image).expect("an image");
            assert_eq!(image[0], at(7));
            assert!(map.page_mut(1).and_then(Page::take_image).is_none(), "it is taken once");
        }
    }
}
