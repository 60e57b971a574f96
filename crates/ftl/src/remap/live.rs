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

    /// The same for all entries that a group has in NVRAM, of which `live` units are known to be live.
    /// As long as no more look so, no unit is there twice, and none has to be set aside.
    pub(crate) fn take_live_segments(
        &mut self,
        superblock: SuperblockId,
        segments: &[Segment],
        live: u32,
        to_flash: bool,
    ) -> (Vec<RemapEntry>, u32) {
        let first_ppn = self.nand.geometry().ppn(superblock, 0).raw();
        let entries = || segments.iter().flat_map(|segment| &segment.entries);
        let mut kept = Vec::with_capacity(index(live));
        let mut units = 0;
        for entry in entries() {
            if let Some((first, last, found)) = self.live_ends(entry, first_ppn, false) {
                kept.push(cut(entry, first, last));
                units += found;
            }
        }
        if units != live {
            let entries: Vec<_> = entries().copied().collect();
            return self.take_live(superblock, &entries, false, to_flash);
        }
        if to_flash {
            for entry in &kept {
                let first = entry.target.raw();
                for (lpn, ppn) in
                    (first..first + u32::from(entry.len)).zip(first_ppn + entry.slot..)
                {
                    if self.is_live(lpn, ppn, false) {
                        self.put_unit(lpn, true);
                    }
                }
            }
        }
        (kept, units)
    }

    /// The first and the last live unit of an entry, and how many are live.
    #[inline]
    fn live_ends(
        &self,
        entry: &RemapEntry,
        first_ppn: u32,
        in_flash: bool,
    ) -> Option<(u16, u16, u32)> {
        let mut ends: Option<(u16, u16, u32)> = None;
        for n in 0..entry.len {
            let lpn = entry.target.raw() + u32::from(n);
            if self.is_live(lpn, first_ppn + entry.slot + u32::from(n), in_flash) {
                ends = Some(ends.map_or((n, n, 1), |(first, _, found)| (first, n, found + 1)));
            }
        }
        ends
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
            for n in 0..entry.len {
                let lpn = entry.target.raw() + u32::from(n);
                if self.is_live(lpn, first_ppn + entry.slot + u32::from(n), in_flash) {
                    self.take_unit(lpn);
                    taken.push(lpn);
                    ends = Some((ends.map_or(n, |(first, _)| first), n));
                }
            }
            if let Some((first, last)) = ends
                && is_wanted(at)
            {
                kept.push(cut(entry, first, last));
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

/// The part of an entry from its unit `first` to its unit `last`.
fn cut(entry: &RemapEntry, first: u16, last: u16) -> RemapEntry {
    RemapEntry {
        seq: entry.seq,
        target: onefold_units::Lpn::new(entry.target.raw() + u32::from(first)),
        slot: entry.slot + u32::from(first),
        len: last - first + 1,
    }
}
