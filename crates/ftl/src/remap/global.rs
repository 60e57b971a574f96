//! Global logs, for comparison (GF and GN of Wu 2022): all entries in one log, which collection reads
//! as a whole.
//!
//! Only their cost is modelled: capacity, scans, programs. What they hold is in the groups.

use std::ops::Range;

use onefold_nand::Media;
use onefold_units::convert::{narrow, u32_from};
use onefold_units::{Cause, Nanos, Ppn, SuperblockId};

use super::RemapScheme;
use crate::ftl::{Ftl, background};

/// Entries of a 4 KiB log page (remap.md section 4).
const PAGE_ENTRIES: u64 = 255;

impl<M: Media> Ftl<M> {
    /// Reads all pages of the log on flash; returns when they are there. They are striped over the
    /// dies, so they contend with everything else.
    pub(crate) fn read_global_log(&mut self, now: Nanos) -> Nanos {
        let Some(remap) = &self.remap else { return now };
        let pages = remap.global_entries.div_ceil(PAGE_ENTRIES);
        let slots = self.nand.geometry().total_slots();
        let mut known = now;
        for page in 0..pages {
            // Any slots will do, as long as they are on all dies in turn.
            let ppn = Ppn::new(narrow(page % slots));
            known = known.max(self.charge_read(background(now), ppn));
        }
        self.count_read(Cause::Rmm, pages);
        known
    }

    /// Programs the log pages that entries appended by now fill. Entries wait for that in a protected
    /// buffer, so nobody waits for the programs.
    pub(crate) fn program_global_pages(&mut self, now: Nanos) {
        let Some(remap) = &mut self.remap else { return };
        if remap.config.scheme != RemapScheme::Gf {
            return;
        }
        let pages = remap.global_entries / PAGE_ENTRIES;
        let programmed = std::mem::replace(&mut remap.global_pages, pages);
        self.charge_global_pages(now, programmed..pages, Cause::Rmm);
    }

    /// Charges the programs of some log pages; which ones decides on what dies.
    fn charge_global_pages(&mut self, now: Nanos, pages: Range<u64>, cause: Cause) {
        let geometry = *self.nand.geometry();
        let slots = geometry.total_slots();
        let at_once = u64::from(geometry.slots_per_program()) * geometry.pages_per_unit();
        for page in pages {
            self.nand.charge_program(background(now), Ppn::new(narrow(page % slots)));
            self.stats.programs.add(cause, 1);
            self.stats.programs.add(Cause::Padding, at_once - 1);
        }
    }

    /// Rewrites the log without its dead entries.
    pub(crate) fn compact_global(&mut self, now: Nanos) {
        let Some(remap) = &mut self.remap else { return };
        remap.stats.compactions += 1;
        let before = remap.global_entries;
        let superblocks = u32_from(remap.groups.len());
        let flash = remap.config.scheme == RemapScheme::Gf;
        if flash {
            self.read_global_log(now);
        }
        for at in 0..superblocks {
            self.clean_group(SuperblockId::new(at));
        }
        let Some(remap) = &mut self.remap else { return };
        let groups = remap.groups.iter();
        remap.global_entries = groups.map(|group| u64::from(group.nvram.entries)).sum();
        let live = remap.global_entries;
        remap.global_pages = live / PAGE_ENTRIES;
        if flash {
            // The last page waits in the buffer until it is full.
            self.charge_global_pages(now, 0..live / PAGE_ENTRIES, Cause::RmmGc);
        } else {
            let entry_bytes = u64::from(remap.config.entry_bytes());
            let read = remap.port.read(now, before * entry_bytes);
            remap.port.write(read, live * entry_bytes);
        }
    }

    /// Drops the dead entries of a group that has no place of its own.
    pub(crate) fn clean_group(&mut self, superblock: SuperblockId) {
        let Some(remap) = &mut self.remap else { return };
        let group = &mut remap.groups[superblock.index()];
        if group.nvram.live == group.nvram.units {
            return;
        }
        let segments = group.take_segments();
        let entries: Vec<_> = segments.iter().flat_map(|s| &s.entries).copied().collect();
        let (live, units) = self.take_live(superblock, &entries, false, false);
        let Some(remap) = &mut self.remap else { return };
        let group = &mut remap.groups[superblock.index()];
        if let Some(mut segment) = segments.into_iter().next() {
            segment.entries.clear();
            segment.written = None;
            group.segments.push(segment);
        }
        for entry in live {
            group.push(entry);
        }
        group.nvram.live = units;
    }
}
