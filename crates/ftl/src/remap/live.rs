//! Which entries of a group still count.

use onefold_format::RemapEntry;
use onefold_nand::Media;
use onefold_units::SuperblockId;
use onefold_units::convert::{index, u32_from};

use super::groups::Segment;
use crate::ftl::Ftl;

impl<M: Media> Ftl<M> {
    /// Whether the mapping of a unit to a slot, which may still wait for a staged successor, is by an
    /// entry in that store.
    pub(crate) fn is_live(&self, lpn: u32, ppn: u32, in_flash: bool) -> bool {
        let Some(remap) = &self.remap else { return false };
        let Some(mapped) = self.map.stored(lpn) else { return false };
        if mapped.raw() == ppn {
            return remap.units.has(lpn) && remap.units.is_in_flash(lpn) == in_flash;
        }
        let Some((frontier, place)) = self.find_staged(mapped) else { return false };
        let staged = &self.frontiers[frontier].staged[place];
        staged.replaces.is_some_and(|old| old.raw() == ppn) && staged.remapped == Some(in_flash)
    }

    /// Reduces entries of one store, oldest first, to those that are live, cut to their live ends, and
    /// notes that they are in `to_flash` from now on. The second number is how many units are live.
    ///
    /// A unit that left a slot and came back has two entries that look live: the newest counts
    /// (remap.md, H26).
    pub(crate) fn take_live(
        &mut self,
        superblock: SuperblockId,
        entries: &[RemapEntry],
        in_flash: bool,
        to_flash: bool,
    ) -> (Vec<RemapEntry>, u32) {
        self.take_live_of(superblock, entries, |_| true, in_flash, to_flash)
    }

    /// The same for the segments of a group, of which `live` units are known to be live, and whose
    /// mappings that ended are known as well: the map, where each look is a cache miss, is not asked.
    /// After a power cut the segments say more than is known; then it is.
    pub(crate) fn take_live_segments(
        &mut self,
        superblock: SuperblockId,
        segments: &[Segment],
        ended: &[u32],
        live: u32,
        to_flash: bool,
    ) -> (Vec<RemapEntry>, u32) {
        let mut ended = Ended::new(ended);
        let entries = || segments.iter().flat_map(|segment| &segment.entries);
        // Segments lie anywhere: their cache lines are loaded first, side by side.
        let lines = segments.iter().flat_map(|segment| segment.entries.iter().step_by(2));
        std::hint::black_box(lines.fold(0, |sum, entry| sum ^ entry.target.raw()));
        let mut kept: Vec<RemapEntry> = Vec::with_capacity(index(live));
        let mut units = 0;
        // What ended between the ends of an entry that is kept: it is still to be told from live units.
        let mut inner = Vec::new();
        for entry in entries() {
            let mut ends: Option<(u16, u16)> = None;
            let (begin, mut holes) = (inner.len(), 0);
            for ((lpn, _), n) in entry.units().zip(0..) {
                if !ended.take(lpn) {
                    holes = inner.len();
                    ends = Some((ends.map_or(n, |(first, _)| first), n));
                    units += 1;
                } else if ends.is_some() {
                    inner.push(lpn);
                }
            }
            inner.truncate(holes.max(begin));
            kept.extend(ends.map(|(first, last)| entry.part(first, last)));
        }
        if units != live {
            let entries: Vec<_> = entries().copied().collect();
            return self.take_live(superblock, &entries, false, to_flash);
        }
        if to_flash {
            let first_ppn = self.nand.geometry().ppn(superblock, 0).raw();
            for entry in &kept {
                for (lpn, slot) in entry.units() {
                    if self.is_live(lpn, first_ppn + slot, false) {
                        self.put_unit(lpn, true);
                    }
                }
            }
        }
        if !to_flash && let Some(remap) = &mut self.remap {
            remap.groups[superblock.index()].ended = inner;
        }
        (kept, units)
    }

    /// The same, with only those of the live entries that are wanted, by their number.
    pub(crate) fn take_live_of(
        &mut self,
        superblock: SuperblockId,
        entries: &[RemapEntry],
        is_wanted: impl Fn(usize) -> bool,
        in_flash: bool,
        to_flash: bool,
    ) -> (Vec<RemapEntry>, u32) {
        let first_ppn = self.nand.geometry().ppn(superblock, 0).raw();
        let mut kept = Vec::new();
        let mut taken: Vec<u32> = Vec::new();
        for (at, entry) in entries.iter().enumerate().rev() {
            let mut ends: Option<(u16, u16)> = None;
            for ((lpn, slot), n) in entry.units().zip(0..) {
                if self.is_live(lpn, first_ppn + slot, in_flash) {
                    self.take_unit(lpn);
                    taken.push(lpn);
                    ends = Some((ends.map_or(n, |(first, _)| first), n));
                }
            }
            if let Some((first, last)) = ends
                && is_wanted(at)
            {
                kept.push(entry.part(first, last));
            }
        }
        for lpn in &taken {
            self.put_unit(*lpn, to_flash);
        }
        kept.reverse();
        (kept, u32_from(taken.len()))
    }

    /// Sets a live unit aside, so that an older entry does not find it.
    fn take_unit(&mut self, lpn: u32) {
        let staged = self.map.stored(lpn).and_then(|ppn| self.find_staged(ppn));
        if let Some((frontier, place)) = staged {
            self.frontiers[frontier].staged[place].remapped = None;
        } else if let Some(remap) = &mut self.remap {
            remap.units.clear(lpn);
        }
    }

    fn put_unit(&mut self, lpn: u32, in_flash: bool) {
        let staged = self.map.stored(lpn).and_then(|ppn| self.find_staged(ppn));
        if let Some((frontier, place)) = staged {
            self.frontiers[frontier].staged[place].remapped = Some(in_flash);
        } else if let Some(remap) = &mut self.remap {
            remap.units.set(lpn, in_flash);
        }
    }
}

/// How often each of some units is in a list: a hash table with linear probing, at most half full.
struct Ended {
    /// Unit, and one more than how often; 0 = free.
    places: Vec<(u32, u32)>,
    shift: u32,
}

impl Ended {
    fn new(units: &[u32]) -> Self {
        let places = (2 * units.len()).next_power_of_two().max(2);
        let mut table = Self { places: vec![(0, 0); places], shift: 32 - places.trailing_zeros() };
        for unit in units {
            let at = table.find(*unit);
            let (lpn, times) = &mut table.places[at];
            *lpn = *unit;
            *times = (*times).max(1) + 1;
        }
        table
    }

    /// Takes one of a unit away. `false` if there is none left.
    #[inline]
    fn take(&mut self, unit: u32) -> bool {
        let at = self.find(unit);
        let times = &mut self.places[at].1;
        let is_there = *times > 1;
        *times -= u32::from(is_there);
        is_there
    }

    /// The place of a unit, or the free one it would take.
    fn find(&self, unit: u32) -> usize {
        // Fibonacci hashing (Knuth, The Art of Computer Programming, vol. 3, sec. 6.4).
        let mut at = index(unit.wrapping_mul(0x9E37_79B1) >> self.shift);
        while self.places[at].1 != 0 && self.places[at].0 != unit {
            at = (at + 1) % self.places.len();
        }
        at
    }
}
