//! Freeing what a deleted member has alone: page after page, like a trim (`crate::snapshots`, invariant 3).
//!
//! A root between says how far that went, because the pages are unmapped in its runs: whoever opens the volume then goes on
//! from the first page, and finds those that were unmapped empty. A page that cannot be read is passed, and tried again later.

use onefold_units::convert::u64_from;
use onefold_units::{Lba, Location, Nanos};

use crate::map::page::PAGE_ENTRIES_U64;
use crate::map::{Map, Ready};
use crate::range::Range;
use crate::snapshots::{Life, MemberState, Spot};
use crate::volume::Volume;

/// Pages that are unmapped at once.
const PAGES_AT_ONCE: usize = 256;

impl Volume {
    /// Whether what deleted members had is being freed.
    #[must_use]
    pub fn is_freeing(&self) -> bool {
        let stays = |member: &MemberState| match member.life {
            Life::Here | Life::Coming { .. } => true,
            Life::Deleted { next } => next == member.pages() && !member.unread.is_empty(),
            Life::Doomed { .. } | Life::Marking { .. } | Life::Going => false,
        };
        !self.members.all().all(stays)
    }

    /// Whether pages can be unmapped without waiting for anything.
    pub(crate) const fn deletes_on(&self) -> bool {
        self.members.deletes_on()
    }

    /// When to go back to a page that could not be read.
    pub(crate) fn deletion_deadline(&self) -> Option<Nanos> {
        let unread = self.members.slots().filter(|slot| !self.members.of(*slot).unread.is_empty());
        unread.filter_map(|slot| self.damage_deadline(self.map.keys_of(slot))).min()
    }

    /// Unmaps some pages of a deleted member.
    pub(crate) fn step_deletion(&mut self) {
        self.members.set_deletes_on(false);
        if self.frozen.is_some() || self.checkpoint.is_closing() || !self.is_counted() {
            return;
        }
        for _ in 0..PAGES_AT_ONCE {
            let Some((slot, page)) = self.members.deleted_member(&self.map) else { return };
            if !self.unmap_page(slot, page) {
                return;
            }
            let pages = self.map.pages_of(slot);
            let member = self.members.of_mut(slot);
            if member.life == (Life::Deleted { next: page }) {
                member.life = Life::Deleted { next: page + 1 };
            } else {
                member.unread.remove(&page);
            }
            if member.life == (Life::Deleted { next: pages }) {
                self.checkpoint.want();
            }
        }
        self.members.set_deletes_on(true);
    }

    /// Unmaps a page of a deleted member. `false` if that has to wait.
    fn unmap_page(&mut self, slot: usize, page: usize) -> bool {
        let key = Map::key(slot, page);
        let same =
            self.members.others(slot).any(|other| self.map.is_same(key, Map::key(other, page)));
        match self.map.ready(key) {
            Ready::Empty => return true,
            Ready::Loading => return false,
            Ready::Yes if self.map.maps_nothing(key) => return true,
            Ready::Damaged => {
                self.members.of_mut(slot).unread.insert(page);
                return true;
            }
            _ if same => {}
            Ready::Missing => {
                self.load_page(key);
                return false;
            }
            Ready::Yes => {
                let lba = Lba::new(u64_from(page) * PAGE_ENTRIES_U64);
                if self.need_sharers(slot, Range { lba, blocks: PAGE_ENTRIES_U64 }).is_err() {
                    return false;
                }
                self.unlink_page(slot, lba);
            }
        }
        let resident = self.map.page(key).is_some();
        if !resident && !self.make_room(1) {
            return false;
        }
        self.map.clear(key);
        self.loads.forget(key);
        true
    }

    fn unlink_page(&mut self, slot: usize, first: Lba) {
        for lba in (first.raw()..first.raw() + PAGE_ENTRIES_U64).map(Lba::new) {
            let here = Spot { slot, lba };
            let at = self.map.peek(here.in_map()).at;
            if at != Location::UNMAPPED {
                self.unlink(here, at);
            }
        }
    }
}
