//! Blocks that members have in common.

use std::collections::{BTreeMap, BTreeSet};

use onefold_format::volume::DirectoryEntry;
use onefold_units::convert::u64_from;
use onefold_units::{Lba, Location};

use super::Spot;
use crate::map::{Map, Ready};
use crate::snapshots::{Life, MemberId, Members};

/// Whether some member's entry points at a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Yes,
    No,
    /// A page of the map that may point at it cannot be read.
    Unread,
}

impl Spot {
    /// Its LBA as the map counts.
    #[inline]
    pub(crate) const fn in_map(self) -> Lba {
        Map::lba_of(self.slot, self.lba)
    }
}

impl Members {
    /// Whether a member has this image of a page.
    pub(crate) fn has_image(&self, map: &Map, page: usize, image: DirectoryEntry) -> bool {
        self.slots().any(|slot| map.image(Map::key(slot, page)) == image)
    }

    /// Images and directory blocks of a member that no other one has.
    pub(crate) fn named_by_it_alone(&self, map: &Map, slot: usize, alone: &mut Vec<Location>) {
        for page in 0..map.pages_of(slot) {
            let image = map.image(Map::key(slot, page));
            if image.page.is_block() && !self.has_image(map, page, image) {
                alone.extend([image.page, image.sums]);
            }
        }
        for (at, place) in self.of(slot).directory.iter().enumerate() {
            if place.location.is_block() && !self.has_directory(at, *place) {
                alone.push(place.location);
            }
        }
    }

    /// The keys of a page whose images are older than what they map: those that cannot be read, and the others.
    pub(crate) fn changed(&self, map: &Map, page: usize) -> (Vec<usize>, Vec<usize>) {
        let keys = self.slots().map(|slot| Map::key(slot, page));
        keys.filter(|key| map.differs(*key)).partition(|key| map.ready(*key) == Ready::Damaged)
    }

    /// A member whose directory has this block.
    pub(crate) fn has_directory_at(&self, block: usize, at: Location) -> Option<usize> {
        self.slots().find(|slot| {
            let place = self.of(*slot).directory.get(block);
            place.is_some_and(|place| place.location == at)
        })
    }

    /// What members map a block to, each place once, with one of them.
    pub(crate) fn entries_of(&self, map: &Map, lba: Lba) -> BTreeMap<Location, (MemberId, u32)> {
        let mut entries = BTreeMap::new();
        for slot in self.slots() {
            let entry = map.peek(Map::lba_of(slot, lba));
            if entry.at.is_block() {
                entries.entry(entry.at).or_insert_with(|| (self.id_of(slot), entry.crc));
            }
        }
        entries
    }

    /// Blocks that members map and that are known to be lost.
    pub(crate) fn lost_blocks(&self, map: &Map) -> u64 {
        let lbas = (0..self.largest()).map(Lba::new);
        let lost = |lba: &Lba| {
            let mut entries = self.slots().map(|slot| map.peek(Map::lba_of(slot, *lba)));
            entries.any(|entry| entry.at == Location::LOST)
        };
        u64_from(lbas.filter(lost).count())
    }

    /// What the members point at from one page of the map, and where that lies, each place once. `None` if a page is not
    /// in memory.
    pub(crate) fn places_at(&self, map: &Map, page: usize) -> Option<BTreeSet<Location>> {
        let mut places = BTreeSet::new();
        for slot in self.slots() {
            let key = Map::key(slot, page);
            match map.ready(key) {
                Ready::Yes => {
                    places.extend(map.page(key)?.entries.iter().map(|entry| entry.at));
                }
                Ready::Empty => {}
                Ready::Missing | Ready::Loading | Ready::Damaged => return None,
            }
            let image = map.image(key);
            places.extend([image.page, image.sums]);
        }
        Some(places)
    }

    /// A member whose pages are being unmapped, and the next one: those in order, then what could not be read and may be by now.
    pub(crate) fn deleted_member(&self, map: &Map) -> Option<(usize, usize)> {
        self.slots().find_map(|slot| {
            let member = self.of(slot);
            let Life::Deleted { next } = member.life else { return None };
            let in_order = Some(next).filter(|next| *next < map.pages_of(slot));
            let readable = |page: &&usize| map.ready(Map::key(slot, **page)) != Ready::Damaged;
            Some((slot, in_order.or_else(|| member.unread.iter().find(readable).copied())?))
        })
    }

    /// The keys of a page whose image lies there.
    pub(crate) fn keys_at(
        &self,
        map: &Map,
        page: usize,
        at: Location,
    ) -> impl Iterator<Item = usize> {
        let slots = self.slots().filter(move |slot| page < map.pages_of(*slot));
        slots.map(move |slot| Map::key(slot, page)).filter(move |key| {
            let image = map.image(*key);
            image.page == at || image.sums == at
        })
    }
}
