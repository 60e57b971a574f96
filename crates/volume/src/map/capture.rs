//! What a checkpoint takes from the map, and gives back if it comes to nothing.

use onefold_format::volume::RunRecord;
use onefold_units::Lba;
use onefold_units::convert::{index, u64_from};

use super::{DAMAGED, Map};
use crate::checkpoint::SweptPage;
use crate::map::page::{Entry, PAGE_ENTRIES_U64, Page, first_lba};

impl Map {
    /// Takes the changes of a page: each entry with its new content, by the LBA in its member. The page stays in memory until checkpoint
    /// `number` is committed.
    pub(crate) fn capture(&mut self, page: usize, number: u64, mut each: impl FnMut(Lba, Entry)) {
        let (slot, first) = (self.slot(page).page, Self::of_key(page).1);
        if slot >= DAMAGED {
            return;
        }
        let Some(resident) = self.pages[index(slot)].as_mut() else { return };
        if !resident.is_dirty() {
            return;
        }
        resident.keep_until = number;
        self.dirty_pages -= 1;
        let first = u64_from(first) * PAGE_ENTRIES_U64;
        for (word, bits) in resident.dirty.iter_mut().enumerate() {
            let mut rest = std::mem::take(bits);
            self.dirty_entries -= u64::from(rest.count_ones());
            while rest != 0 {
                let at = word * 64 + index(rest.trailing_zeros());
                rest &= rest - 1;
                each(Lba::new(first + u64_from(at)), resident.entries[at]);
            }
        }
    }

    /// Whether a page in memory changed since the last capture.
    pub(crate) fn is_dirty(&self, page: usize) -> bool {
        self.page(page).is_some_and(Page::is_dirty)
    }

    /// Whether a page in memory maps nothing.
    pub(crate) fn maps_nothing(&self, page: usize) -> bool {
        self.page(page).is_none_or(Page::maps_nothing)
    }

    /// Marks what a record of a member says as changed, for a checkpoint that came to nothing. What changed is still in memory; the other
    /// records were those of a page that cannot be read, and the runs that have them stay.
    pub(crate) fn touch(&mut self, member: usize, record: &RunRecord) {
        let blocks = if record.is_page_gone() { PAGE_ENTRIES_U64 } else { 1 };
        let first = Self::lba_of(member, record.lba).raw();
        if self.page(Self::place(Lba::new(first)).0).is_none() {
            return;
        }
        for lba in (first..first + blocks).map(Lba::new) {
            let entry = self.get(lba);
            self.set(lba, entry);
        }
    }

    /// Keeps a page in memory until checkpoint `number` is committed.
    pub(crate) fn keep(&mut self, page: usize, number: u64) {
        if let Some(page) = self.page_mut(page) {
            page.keep_until = page.keep_until.max(number);
        }
    }

    /// The changes of a member in the order of blocks, for a run of a checkpoint. A page that maps nothing any more is one record.
    pub(crate) fn capture_member(
        &mut self,
        slot: usize,
        (number, run): (u64, u64),
        records: &mut Vec<RunRecord>,
    ) {
        for key in self.keys_of(slot) {
            if !self.is_dirty(key) {
                continue;
            }
            let from = records.len();
            self.capture(key, number, |lba, entry| {
                records.push(RunRecord { lba, birth: 0, location: entry.at, crc: entry.crc });
            });
            if self.maps_nothing(key) {
                records.truncate(from);
                records.push(RunRecord::page_gone(first_lba(Self::of_key(key).1)));
            }
            self.mark_stale(key, run + 1);
        }
    }

    /// The images that a page takes, and whose they are.
    pub(crate) fn images(&self, keys: &[usize]) -> Vec<SweptPage> {
        let mapped = |key: usize| self.page(key).filter(|page| !page.maps_nothing());
        let entries = |key: usize| mapped(key).map(|page| &page.entries);
        let mut images: Vec<SweptPage> = Vec::new();
        for key in keys {
            match images.iter_mut().find(|image| entries(image[0]) == entries(*key)) {
                Some(image) => image.push(*key),
                None => images.push(vec![*key]),
            }
        }
        images
    }
}
