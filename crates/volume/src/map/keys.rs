//! Slots of the directory, by member and page.

use std::ops::Range;

use onefold_format::volume::{DIRECTORY_ENTRIES, DirectoryEntry};
use onefold_units::Lba;
use onefold_units::convert::u64_from;

use super::{ABSENT, Map, Slot};
use crate::map::page::PAGE_ENTRIES_U64;

/// Bits of the number of a page in its key. The location of a block has 32 bits, and a thin volume exports at most 2^4 times what
/// its log can hold, in pages of 2^10 blocks.
const PAGE_BITS: u32 = 26;

impl Map {
    /// Pages of a member.
    pub(crate) fn pages_of(&self, member: usize) -> usize {
        self.slots.get(member).map_or(0, Vec::len)
    }

    /// Pages of the largest member.
    pub(crate) fn pages(&self) -> usize {
        self.slots.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The key of a page of a member. Those of a member lie below that of page 0 of the next one.
    pub(crate) const fn key(member: usize, page: usize) -> usize {
        (member << PAGE_BITS) + page
    }

    /// The member and the page of a key.
    pub(crate) const fn of_key(key: usize) -> (usize, usize) {
        (key >> PAGE_BITS, key & ((1 << PAGE_BITS) - 1))
    }

    /// Keys of a member.
    pub(crate) fn keys_of(&self, member: usize) -> Range<usize> {
        let first = Self::key(member, 0);
        first..first + self.pages_of(member)
    }

    /// Keys of all members from one on.
    pub(crate) fn keys_from(&self, first: usize) -> impl Iterator<Item = usize> + '_ {
        let members = Self::of_key(first).0..self.slots.len();
        members.flat_map(move |member| {
            let keys = self.keys_of(member);
            keys.start.max(first)..keys.end
        })
    }

    /// Pages of all members.
    pub(crate) fn pages_of_all(&self) -> usize {
        self.slots.iter().map(Vec::len).sum()
    }

    /// A block of a member among the blocks of all of them, as the map counts.
    pub(crate) const fn lba_of(member: usize, lba: Lba) -> Lba {
        Lba::new(u64_from(Self::key(member, 0)) * PAGE_ENTRIES_U64 + lba.raw())
    }

    pub(super) fn slot(&self, key: usize) -> &Slot {
        let (member, page) = Self::of_key(key);
        self.slots.get(member).and_then(|slots| slots.get(page)).unwrap_or(&Slot::ABSENT)
    }

    pub(super) fn slot_mut(&mut self, key: usize) -> &mut Slot {
        let (member, page) = Self::of_key(key);
        &mut self.slots[member][page]
    }

    /// Gives a member slots of so many pages, or those of `parent`: what changed there has to be captured.
    pub(crate) fn add_member(&mut self, member: usize, pages: usize, parent: Option<usize>) {
        let mut slots = vec![Slot::ABSENT; pages];
        for (slot, of) in slots.iter_mut().zip(parent.iter().flat_map(|of| &self.slots[*of])) {
            *slot = Slot { page: ABSENT, ..*of };
        }
        let places = self.slots.len().max(member + 1);
        self.slots.resize(places, Vec::new());
        self.slots[member] = slots;
    }

    /// Takes the slots of a member away. Nothing of it is being read.
    pub(crate) fn drop_member(&mut self, member: usize) {
        self.resize(member, 0, 0);
        self.slots[member] = Vec::new();
    }

    /// Another number of pages of a member; those that go map nothing, have no image and are not being read. Runs below
    /// `behind` may have records of new ones.
    pub(crate) fn resize(&mut self, member: usize, pages: usize, behind: u64) {
        (pages..self.pages_of(member)).for_each(|page| self.leave(Self::key(member, page)));
        self.slots[member].resize(pages, Slot { behind, ..Slot::ABSENT });
    }

    /// The pages of a directory block of a member.
    pub(crate) fn directory_images(
        &self,
        slot: usize,
        at: usize,
    ) -> impl Iterator<Item = DirectoryEntry> + '_ {
        let end = ((at + 1) * DIRECTORY_ENTRIES).min(self.pages_of(slot));
        (at * DIRECTORY_ENTRIES..end).map(move |page| self.image(Self::key(slot, page)))
    }
}
