//! Log pages on flash, and the superblocks they are in (RMM pages and RMM superblocks of Wu 2022).

use onefold_format::{
    LogPageHead, RemapEntry, SlotKind, SuperblockKind, log_page_capacity, pack_log_page,
};
use onefold_nand::{Geometry, Media, MediaError};
use onefold_units::convert::{index, narrow, u32_from, u64_from};
use onefold_units::{Cause, Nanos, SuperblockId};

use super::groups::{Group, LogPage};
use super::room::For;
use crate::FtlError;
use crate::ftl::{Ftl, background};
use crate::superblock::State;

/// Entries that fit a log page of 4 KiB at least, whatever they say.
const PAGE_ENTRIES_MIN: u32 = 160;

/// Entries of the paper's 4 KiB log page (remap.md section 3).
const PAPER_PAGE_ENTRIES: u32 = 255;

/// Most superblocks for the log beyond what its entries need, unless configured (`O_max` of remap.md
/// section 6).
const LOG_SUPERBLOCKS_EXTRA: u32 = 4;

/// So many spare superblocks of the device allow the log one of them beyond what its entries need.
/// Differs from Wu 2022, sec. IV-D, which has as many as half the units need, 4 in its example. At 576
/// superblocks it hardly matters: each costs 0.1 % of write amplification (docs/papers/wu2022.md, "Other
/// settings"). The number is a configuration.
const SPARE_PER_LOG_SUPERBLOCK: u32 = 64;

impl<M: Media> Ftl<M> {
    /// Packs entries into pages and adds them to the group. Room for them was reserved.
    pub(crate) fn write_pages(
        &mut self,
        now: Nanos,
        superblock: SuperblockId,
        mut entries: Vec<RemapEntry>,
        cause: Cause,
    ) -> Result<(), FtlError> {
        // Stable: entries of one unit stay in their order.
        entries.sort_by_key(|entry| entry.slot);
        let slots = index(self.nand.geometry().slots_per_program());
        let mut rest = &entries[..];
        while !rest.is_empty() {
            let mut parts = Vec::new();
            while !rest.is_empty() && parts.len() < slots {
                let (part, after) = rest.split_at(self.page_capacity(rest));
                parts.push(part);
                rest = after;
            }
            self.program_log_pages(now, superblock, &parts, cause)?;
        }
        Ok(())
    }

    fn page_capacity(&self, entries: &[RemapEntry]) -> usize {
        let paper = self.remap.as_ref().is_some_and(|remap| remap.config.paper);
        let unit_bytes = self.nand.geometry().unit_bytes();
        if paper {
            entries.len().min(index(PAPER_PAGE_ENTRIES * (unit_bytes / 4096).max(1)))
        } else {
            log_page_capacity(entries, unit_bytes).clamp(1, entries.len())
        }
    }

    /// Programs log pages side by side in one program, on another superblock if it fails.
    fn program_log_pages(
        &mut self,
        now: Nanos,
        superblock: SuperblockId,
        parts: &[&[RemapEntry]],
        cause: Cause,
    ) -> Result<(), FtlError> {
        let geometry = *self.nand.geometry();
        let (slots, unit) = (geometry.slots_per_program(), index(geometry.unit_bytes()));
        // A number of its own tells whether the page was synchronised (recovery).
        self.seq += 1;
        loop {
            let (log, program) = self.log_frontier()?;
            let epoch = self.superblocks[superblock.index()].epoch;
            let mut data = vec![0; if M::STORES { index(slots) * unit } else { 0 }];
            let mut spares = Vec::new();
            for (part, bytes) in parts.iter().zip(data.chunks_exact_mut(unit)) {
                let head = LogPageHead { superblock, epoch };
                pack_log_page(&head, part, bytes);
                spares.push(self.spare(log, SlotKind::Log, superblock.raw(), self.seq, bytes));
            }
            spares.resize(index(slots), self.spare(log, SlotKind::Filler, 0, 0, &[]));
            let pages = geometry.pages_per_unit();
            let used = u64::from(u32_from(parts.len()));
            self.stats.programs.add(cause, pages * used);
            self.stats.programs.add(Cause::Padding, pages * (u64::from(slots) - used));
            match self.nand.program(background(now), log, program, &spares, &data) {
                Ok(grant) => self.programmed_at = self.programmed_at.max(grant.done),
                Err(MediaError::ProgramFailed) => {
                    self.stats.media_failures += 1;
                    self.superblocks[log.index()].failing = true;
                    self.close_log_frontier();
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            self.enter_pages(superblock, log, program * slots, parts);
            return Ok(());
        }
    }

    fn enter_pages(
        &mut self,
        superblock: SuperblockId,
        log: SuperblockId,
        first: u32,
        parts: &[&[RemapEntry]],
    ) {
        let geometry = *self.nand.geometry();
        let slots = geometry.slots_per_program();
        let end = self.layout.data_end;
        let Some(remap) = &mut self.remap else { return };
        for (slot, part) in (first..).zip(parts) {
            let page = LogPage { ppn: geometry.ppn(log, slot), entries: part.to_vec() };
            remap.groups[superblock.index()].push_page(page);
            remap.superblocks.live[log.index()] += 1;
        }
        if let Some((_, program)) = &mut remap.superblocks.open {
            *program += 1;
        }
        if first + slots >= end {
            self.close_log_frontier();
        }
    }

    /// The open log superblock and its next program.
    fn log_frontier(&mut self) -> Result<(SuperblockId, u32), FtlError> {
        let first = self.layout.data_begin / self.nand.geometry().slots_per_program();
        let Some(remap) = &mut self.remap else { return Err(FtlError::NoSpace) };
        let log = &mut remap.superblocks;
        if log.open.is_none() {
            log.open = log.ready.pop().map(|superblock| (superblock, first));
        }
        log.open.ok_or(FtlError::NoSpace)
    }

    fn close_log_frontier(&mut self) {
        if let Some(remap) = &mut self.remap
            && let Some((superblock, _)) = remap.superblocks.open.take()
        {
            remap.superblocks.closed.push(superblock);
        }
    }

    pub(crate) fn give_up_pages(&mut self, pages: &[LogPage]) {
        let Some(remap) = &mut self.remap else { return };
        for page in pages {
            let (log, _) = self.nand.geometry().split(page.ppn);
            remap.superblocks.live[log.index()] -= 1;
        }
    }

    /// Pages that can be programmed without another superblock.
    pub(crate) fn log_pages_ready(&self) -> u32 {
        let Some(remap) = &self.remap else { return 0 };
        let slots = self.nand.geometry().slots_per_program();
        let log = &remap.superblocks;
        let open = log.open.map_or(0, |(_, program)| self.layout.data_end - program * slots);
        // A page may take a whole program.
        (open + u32_from(log.ready.len()) * self.layout.data_slots()) / slots
    }

    /// Makes sure that so many log pages can be programmed. `false` if there is no room for them.
    pub(crate) fn reserve_log_pages(
        &mut self,
        now: Nanos,
        pages: u32,
        whom: For,
    ) -> Result<bool, FtlError> {
        self.erase_dead_log_superblocks(now)?;
        // Each round takes a superblock, or gives one back.
        for _ in 0..2 * self.nand.geometry().superblocks() {
            if self.log_pages_ready() >= pages {
                return Ok(true);
            }
            let Some(remap) = &self.remap else { return Ok(false) };
            let full = remap.superblocks.count() >= self.log_superblocks_max();
            if full && self.collect_log(now)? {
                continue;
            }
            if !self.take_log_superblock(now, whom)? {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Superblocks that the log may take (`R_max` of remap.md section 6): what its entries need, and a
    /// few to collect into. Counted in pages; the paper's formula counts bytes of full pages.
    pub(crate) fn log_superblocks_max(&self) -> u32 {
        let Some(remap) = &self.remap else { return 0 };
        let pages = remap.units.count().div_ceil(remap.page_entries_min());
        let slots = self.layout.data_slots();
        let superblocks = self.nand.geometry().superblocks();
        let spare = superblocks.saturating_sub(self.layout.units.div_ceil(slots));
        let extra = match remap.config.log_spare {
            0 => (spare / SPARE_PER_LOG_SUPERBLOCK).clamp(1, LOG_SUPERBLOCKS_EXTRA),
            extra => extra,
        };
        pages.div_ceil(slots) + extra
    }

    /// Takes a superblock for log pages from the pool that has most. The last free ones of a pool
    /// are for collection.
    pub(crate) fn take_log_superblock(&mut self, now: Nanos, whom: For) -> Result<bool, FtlError> {
        let pools = self.pools.iter().enumerate();
        let most = pools.max_by_key(|(at, pool)| (pool.free_count(), std::cmp::Reverse(*at)));
        let pool = u32_from(most.map_or(0, |(at, _)| at));
        if whom == For::Host {
            match self.collect_until_above_stop(now, pool) {
                Ok(()) => self.secure_reserve(pool)?,
                Err(FtlError::NoSpace) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        if self.pools[index(pool)].free_count() <= self.layout.collection_reserve {
            return Ok(false);
        }
        let superblock = self.take_free(background(now), pool, SuperblockKind::Log)?;
        let block = &mut self.superblocks[superblock.index()];
        block.state = State::Log;
        block.holds_log = true;
        self.judge_hunger(pool);
        if let Some(remap) = &mut self.remap {
            remap.superblocks.ready.push(superblock);
        }
        Ok(true)
    }

    /// Reads a log page for its time; returns when it is there.
    pub(crate) fn charge_log_read(&mut self, now: Nanos, page: &LogPage, cause: Cause) -> Nanos {
        self.count_read(cause, self.nand.geometry().pages_per_unit());
        self.charge_read(background(now), page.ppn)
    }
}

impl super::Remap {
    /// Whether the last page of a group is rewritten when its segments are moved to flash: if it is
    /// less than half full, or if that takes no further page.
    pub(crate) fn merges(&self, last: &LogPage, group: &Group) -> bool {
        let per_page = self.page_entries_min();
        let (old, new) = (u32_from(last.entries.len()), group.nvram.entries);
        old * 2 < per_page || (old + new).div_ceil(per_page) <= new.div_ceil(per_page)
    }

    /// Pages that the live entries in each superblock would take if each group compacted its own.
    pub(crate) fn pages_after(&self, geometry: &Geometry) -> Vec<u32> {
        let mut pages = vec![0; self.groups.len()];
        let mut entries: Vec<(SuperblockId, usize)> = Vec::new();
        for group in &self.groups {
            entries.clear();
            for page in &group.pages {
                let (log, _) = geometry.split(page.ppn);
                match entries.iter_mut().find(|(at, _)| *at == log) {
                    Some((_, sum)) => *sum += page.entries.len(),
                    None => entries.push((log, page.entries.len())),
                }
            }
            for (log, entries) in &entries {
                let live = u64_from(*entries) * u64::from(group.flash.live);
                let live = narrow(live.div_ceil(u64::from(group.flash.units.max(1))));
                pages[log.index()] += live.div_ceil(self.page_entries_min());
            }
        }
        pages
    }

    pub(crate) fn page_entries_min(&self) -> u32 {
        if self.config.paper { PAPER_PAGE_ENTRIES } else { PAGE_ENTRIES_MIN }
    }
}
