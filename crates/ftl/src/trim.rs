//! Unmapping ranges of units.

use onefold_format::{SlotKind, TrimRecord};
use onefold_nand::{At, Media};
use onefold_units::convert::index;
use onefold_units::{Lpn, Nanos, Seq};

use crate::FtlError;
use crate::ftl::Ftl;
use crate::layout::UNMAPPED;

impl<M: Media> Ftl<M> {
    /// Unmaps `count` units from `first`. They read as zeroes from now on, also after a power cut:
    /// the record is in NVRAM before the map changes.
    ///
    /// # Errors
    /// What the medium reported; nothing was unmapped then.
    pub fn trim(&mut self, at: At, first: Lpn, count: u32) -> Result<Nanos, FtlError> {
        let first = first.raw();
        let end = first.saturating_add(count).min(self.layout.host_units);
        let Some((begin, count)) = self.mapped_within(first, end) else { return Ok(at.ready) };
        if self.trim_log.is_full() {
            self.checkpoint_now(at.now)?;
        }
        self.seq += 1;
        self.log_trim(begin, count)?;
        let mut ready = at.ready;
        for lpn in begin..begin + count {
            if self.map.l2p.get(index(lpn)) != UNMAPPED {
                ready = ready.max(self.translate(at, lpn, true)?);
                self.unmap(lpn);
            }
        }
        self.checkpoint_after_trim(at.now)?;
        Ok(ready)
    }

    /// Writes zeroes to one unit by unmapping it. It reads as zeroes from now on, also after a power
    /// cut: an older content of it never comes back.
    ///
    /// # Errors
    /// As [`Ftl::trim`]; the unit is as it was then.
    pub fn write_zeroes(&mut self, at: At, lpn: Lpn) -> Result<Nanos, FtlError> {
        let done = self.trim(at, lpn, 1)?;
        self.stats.saved.zero += self.nand.geometry().pages_per_unit();
        Ok(done)
    }

    /// The units from the first to the last mapped one of a range: first and count. A record covers only
    /// those, so that trimming nothing costs nothing.
    pub(crate) fn mapped_within(&self, first: u32, end: u32) -> Option<(u32, u32)> {
        let mapped = |lpn: &u32| self.map.l2p.get(index(*lpn)) != UNMAPPED;
        let begin = (first..end).find(mapped)?;
        let last = (begin..end).rev().find(mapped).unwrap_or(begin);
        Some((begin, last + 1 - begin))
    }

    pub(crate) fn log_trim(&mut self, lpn: u32, count: u32) -> Result<(), FtlError> {
        let offset = self.trim_log.append();
        self.stats.trim_records += 1;
        if M::STORES {
            let record = TrimRecord { seq: Seq::new(self.seq), lpn: Lpn::new(lpn), count };
            self.nand.media_mut().nvram_write(offset, &record.encode())?;
        }
        Ok(())
    }

    pub(crate) fn unmap(&mut self, lpn: u32) {
        let stored = self.map.stored(lpn);
        self.map.l2p.set(index(lpn), UNMAPPED);
        let Some(ppn) = stored else { return };
        if let Some((frontier, place)) = self.find_staged(ppn) {
            // The slot is programmed with its page, but holds nothing; what it would have replaced
            // is dead by the trim record.
            let staged = &mut self.frontiers[frontier].staged[place];
            let unit = staged.clone();
            staged.entry.kind = SlotKind::Filler;
            staged.lpn = 0;
            if let Some(old) = staged.replaces.take() {
                self.end_replaced(&unit, old);
            }
        }
        self.end_mapping(lpn, ppn);
        self.invalidate(ppn);
    }
}
