//! The map: where each block of the exported device lies, and its checksum.
//!
//! A *map page* holds 1,024 entries, so it stands for 4 MiB of the exported device. The *directory* has one slot per
//! page: where its image lies on the backing, and whether it is in memory. Each member has slots of its own, as
//! many as its size takes, so a page is named by a *key*: its number and that of its member ([`Map::key`]).
//!
//! 1. The state of a page is its image, with the records of all runs applied in order, with the changes since the last
//!    checkpoint. Applying a run to an image that is newer than the run gives the same result, because what changed
//!    after the run is in a later one. So images can be written at any checkpoint.
//! 2. A page may leave memory when nothing in it changed since the last checkpoint that is committed.
//! 3. A slot without image whose page is in no run maps nothing. It takes no memory. Nor does what is behind the end, of which
//!    the log may know from before the device shrank.

mod capture;
pub(crate) mod counting;
pub(crate) mod images;
mod keys;
pub(crate) mod loads;
pub(crate) mod page;
pub(crate) mod preload;
pub(crate) mod runs;
pub(crate) mod slices;

use onefold_format::volume::DirectoryEntry;
use onefold_units::Lba;
use onefold_units::convert::{index, index64, u32_from};

use crate::map::page::{
    Entries, Entry, ImageOf, PAGE_ENTRIES, PAGE_ENTRIES_U64, Page, blank_entries,
};

const ABSENT: u32 = u32::MAX;

const LOADING: u32 = u32::MAX - 1;

const DAMAGED: u32 = u32::MAX - 2;

#[derive(Clone, Copy, Debug)]
struct Slot {
    image: DirectoryEntry,
    /// Index of the page in memory, or one of the words above.
    page: u32,
    /// Runs below this number have or may have records that the image has not; 0 if none has.
    behind: u64,
}

impl Slot {
    const ABSENT: Self = Self { image: DirectoryEntry::ABSENT, page: ABSENT, behind: 0 };
}

/// Whether the entries of a page can be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// In memory.
    Yes,
    /// Nothing is mapped (invariant 3).
    Empty,
    /// On the backing.
    Missing,
    /// Being read.
    Loading,
    /// Cannot be read.
    Damaged,
}

/// The maps of all members.
#[derive(Debug)]
pub(crate) struct Map {
    /// By place of the member.
    slots: Vec<Vec<Slot>>,
    pages: Vec<Option<Page>>,
    free: Vec<u32>,
    resident: usize,
    limit: usize,
    hand: usize,
    dirty_entries: u64,
    dirty_pages: usize,
    admitted: u64,
}

impl Map {
    pub(crate) fn new(pages: usize, limit: usize) -> Self {
        Self {
            slots: vec![vec![Slot::ABSENT; pages]],
            pages: Vec::new(),
            free: Vec::new(),
            resident: 0,
            limit,
            hand: 0,
            dirty_entries: 0,
            dirty_pages: 0,
            admitted: 0,
        }
    }

    /// Takes a page out of memory, with what changed in it.
    fn leave(&mut self, key: usize) {
        let slot = self.slot(key).page;
        assert!(slot != LOADING, "page {key} is being read");
        if slot >= DAMAGED {
            return;
        }
        if let Some(page) = self.pages[index(slot)].take() {
            let dirty: u32 = page.dirty.iter().map(|word| word.count_ones()).sum();
            self.dirty_entries -= u64::from(dirty);
            self.dirty_pages -= usize::from(dirty > 0);
            self.free.push(slot);
            self.slot_mut(key).page = ABSENT;
            self.resident -= 1;
        }
    }

    /// Unmaps a page as a whole; it need not be in memory, nor need it be readable.
    pub(crate) fn clear(&mut self, key: usize) {
        assert!(self.slot(key).page != LOADING, "page {key} is being read");
        if self.slot(key).page >= DAMAGED {
            self.slot_mut(key).page = ABSENT;
            self.admit(key, blank_entries());
        }
        let at = index(self.slot(key).page);
        let page = self.pages[at].as_mut().expect("a resident page");
        page.will_change();
        page.entries.fill(Entry::UNMAPPED);
        if !page.is_dirty() {
            self.dirty_pages += 1;
            self.dirty_entries += 1;
            page.dirty[0] = 1;
        }
    }

    /// The page of a block and its entry there.
    pub(crate) fn place(lba: Lba) -> (usize, usize) {
        (index64(lba.raw() / PAGE_ENTRIES_U64), index64(lba.raw() % PAGE_ENTRIES_U64))
    }

    pub(crate) fn ready(&self, page: usize) -> Ready {
        let slot = self.slot(page);
        match slot.page {
            ABSENT if !slot.image.page.is_block() && slot.behind == 0 => Ready::Empty,
            ABSENT => Ready::Missing,
            LOADING => Ready::Loading,
            DAMAGED => Ready::Damaged,
            _ => Ready::Yes,
        }
    }

    /// The entry of a block whose page is ready.
    #[inline]
    pub(crate) fn get(&mut self, lba: Lba) -> Entry {
        let (page, at) = Self::place(lba);
        match self.page_mut(page) {
            Some(page) => page.entries[at],
            None => Entry::UNMAPPED,
        }
    }

    /// The entry of a block whose page is ready, without keeping the page in memory for that.
    #[inline]
    pub(crate) fn peek(&self, lba: Lba) -> Entry {
        let (page, at) = Self::place(lba);
        self.page(page).map_or(Entry::UNMAPPED, |page| page.entries[at])
    }

    /// Changes the entry of a block whose page is ready; gives the old one.
    #[inline]
    pub(crate) fn set(&mut self, lba: Lba, entry: Entry) -> Entry {
        let (page, at) = Self::place(lba);
        if self.slot(page).page == ABSENT {
            assert!(self.ready(page) == Ready::Empty, "page {page} is not in memory");
            self.admitted += 1;
            self.admit(page, blank_entries());
        }
        let slot = self.slot(page).page;
        let page = self.pages[index(slot)].as_mut().expect("a resident page");
        page.referenced = true;
        let (word, bit) = (at / 64, 1 << (at % 64));
        if page.dirty[word] & bit == 0 {
            if !page.is_dirty() {
                self.dirty_pages += 1;
            }
            page.dirty[word] |= bit;
            self.dirty_entries += 1;
        }
        page.will_change();
        std::mem::replace(&mut page.entries[at], entry)
    }

    /// The page, if it is in memory.
    #[inline]
    pub(crate) fn page_mut(&mut self, page: usize) -> Option<&mut Page> {
        let slot = self.slot(page).page;
        if slot >= DAMAGED {
            return None;
        }
        let page = self.pages[index(slot)].as_mut()?;
        page.referenced = true;
        Some(page)
    }

    /// The page, if it is in memory.
    pub(crate) fn page(&self, page: usize) -> Option<&Page> {
        let slot = self.slot(page).page;
        if slot >= DAMAGED { None } else { self.pages[index(slot)].as_ref() }
    }

    pub(crate) fn image(&self, page: usize) -> DirectoryEntry {
        self.slot(page).image
    }

    pub(crate) fn is_stale(&self, page: usize) -> bool {
        self.slot(page).behind > 0
    }

    /// Runs below this number may have records that the image of a page has not.
    pub(crate) fn behind(&self, page: usize) -> u64 {
        self.slot(page).behind
    }

    /// Whether a page differs from its image.
    pub(crate) fn differs(&self, page: usize) -> bool {
        self.is_stale(page) || self.is_dirty(page)
    }

    /// Runs below a number may have records that the image of a page has not.
    pub(crate) fn mark_stale(&mut self, page: usize, behind: u64) {
        let slot = self.slot_mut(page);
        slot.behind = slot.behind.max(behind);
    }

    /// The image of a page is to be written anew, though it may have all.
    pub(crate) fn write_anew(&mut self, page: usize) {
        self.mark_stale(page, 1);
    }

    /// Sets where the image of a page lies, when a volume is opened or its page was written.
    pub(crate) fn set_image(&mut self, page: usize, image: DirectoryEntry, behind: u64) {
        let slot = self.slot_mut(page);
        slot.image = image;
        slot.behind = behind;
    }

    pub(crate) fn begin_load(&mut self, page: usize) {
        assert!(self.slot(page).page == ABSENT, "page {page} is loaded twice");
        self.slot_mut(page).page = LOADING;
    }

    pub(crate) fn fail_load(&mut self, page: usize) {
        self.slot_mut(page).page = DAMAGED;
    }

    /// A page that could not be read is read again when it is needed next.
    pub(crate) fn forget_damage(&mut self, page: usize) {
        if self.slot(page).page == DAMAGED {
            self.slot_mut(page).page = ABSENT;
        }
    }

    pub(crate) fn end_load(&mut self, page: usize, entries: Entries, in_runs: bool) {
        assert!(self.slot(page).page == LOADING, "page {page} was not asked for");
        let slot = self.slot_mut(page);
        // What has no image any more is to get one, whatever the runs say.
        slot.behind = if in_runs { slot.behind.max(1) } else { 0 };
        slot.page = ABSENT;
        self.admit(page, entries);
    }

    fn admit(&mut self, page: usize, entries: Entries) {
        let new = Page {
            entries,
            dirty: [0; PAGE_ENTRIES / 64],
            index: u32_from(page),
            keep_until: 0,
            referenced: true,
            image: ImageOf::Nothing,
        };
        let at = self.free.pop().unwrap_or_else(|| {
            self.pages.push(None);
            u32_from(self.pages.len() - 1)
        });
        self.pages[index(at)] = Some(new);
        self.slot_mut(page).page = at;
        self.resident += 1;
    }

    /// Entries that changed since the last capture.
    pub(crate) const fn dirty_entries(&self) -> u64 {
        self.dirty_entries
    }

    /// Pages that mapped nothing and were written since the volume was opened.
    pub(crate) const fn admitted(&self) -> u64 {
        self.admitted
    }

    /// Pages in memory.
    pub(crate) const fn resident(&self) -> usize {
        self.resident
    }

    /// Whether so much of the memory changed that a checkpoint has to make room.
    pub(crate) const fn wants_checkpoint(&self) -> bool {
        self.dirty_pages > self.limit / 2
    }

    /// Lets one page leave memory. `false` if every page has to stay (invariant 2). `committed` is the number of the last
    /// committed checkpoint.
    pub(crate) fn evict(&mut self, committed: u64) -> bool {
        for _ in 0..2 * self.pages.len() {
            self.hand = (self.hand + 1) % self.pages.len();
            let Some(page) = self.pages[self.hand].as_mut() else { continue };
            if std::mem::take(&mut page.referenced)
                || page.is_dirty()
                || page.keep_until > committed
            {
                continue;
            }
            let slot = index(page.index);
            self.pages[self.hand] = None;
            self.free.push(u32_from(self.hand));
            self.slot_mut(slot).page = ABSENT;
            self.resident -= 1;
            return true;
        }
        false
    }

    /// Whether two pages are the same: they have one image, and no run nor memory has anything else.
    pub(crate) fn is_same(&self, one: usize, other: usize) -> bool {
        let untouched = |key| !self.is_stale(key) && !self.is_dirty(key);
        let image = self.image(one);
        image.page.is_block() && image == self.image(other) && untouched(one) && untouched(other)
    }
}
