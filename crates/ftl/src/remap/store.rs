//! Rewriting groups: within NVRAM (compaction), to flash (destaging), within flash (collection of log
//! superblocks).
//!
//! A rewritten group is on the medium before what it replaces is given back. Entries that are there
//! twice do no harm: they say the same.

use onefold_format::RemapEntry;
use onefold_nand::Media;
use onefold_units::convert::{index, u32_from, u64_from};
use onefold_units::{Cause, Nanos, SuperblockId};

use super::groups::{Group, LogPage, Segment};
use super::room::For;
use crate::FtlError;
use crate::ftl::Ftl;

impl<M: Media> Ftl<M> {
    /// Rewrites a group within NVRAM without its dead entries, oldest segment first, so that two spare
    /// segments suffice. `false` if that gave none back.
    pub(crate) fn compact(
        &mut self,
        now: Nanos,
        superblock: SuperblockId,
    ) -> Result<bool, FtlError> {
        self.write_log(now)?;
        let Some(remap) = &mut self.remap else { return Ok(false) };
        let group = &mut remap.groups[superblock.index()];
        if group.nvram.live > 0 && !remap.segments.has_spare() {
            // A power cut took the reserve: it revived groups that had been given up.
            return Ok(false);
        }
        remap.stats.compactions += 1;
        let (live, ended) = (group.nvram.live, std::mem::take(&mut group.ended));
        let old = remap.change(superblock, Group::take_segments);
        let read = remap.read_segments(now, &old);
        let (live, units) = self.take_live_segments(superblock, &old, &ended, live, false);
        let gain = self.refill(read, superblock, &live, old)?;
        if let Some(remap) = &mut self.remap {
            remap.change(superblock, |group| group.nvram.live = units);
        }
        Ok(gain)
    }

    /// Writes entries that were taken out of `old` segments to new ones; the old are given back.
    fn refill(
        &mut self,
        now: Nanos,
        superblock: SuperblockId,
        live: &[RemapEntry],
        old: Vec<Segment>,
    ) -> Result<bool, FtlError> {
        let before = old.len();
        let mut old = old.into_iter();
        let Some(remap) = &self.remap else { return Ok(false) };
        let per_segment = index(remap.per_segment());
        for part in live.chunks(per_segment) {
            if self.remap.as_ref().is_some_and(|remap| remap.segments.free.is_empty()) {
                // What the first segments held is in the new ones by now.
                self.write_log(now)?;
                self.sync()?;
            }
            let mut segment = self.take_segment()?;
            segment.entries.extend_from_slice(part);
            let Some(remap) = &mut self.remap else { return Ok(false) };
            remap.change(superblock, |group| group.push_segment(segment));
            remap.unwritten.push(superblock);
            self.write_log(now)?;
            // As many are full now as were read through: the rest is still needed if power fails.
            self.give_back(old.next());
        }
        self.write_log(now)?;
        self.give_back(old);
        Ok(live.len().div_ceil(per_segment) < before)
    }

    /// Moves the entries of a group from NVRAM to log pages. `false` if there is no room on flash.
    pub(crate) fn destage(
        &mut self,
        now: Nanos,
        superblock: SuperblockId,
        whom: For,
    ) -> Result<bool, FtlError> {
        self.write_log(now)?;
        let Some(remap) = &self.remap else { return Ok(false) };
        let group = &remap.groups[superblock.index()];
        let merged = group.pages.last().filter(|page| remap.merges(page, group));
        let count: usize = group.segments.iter().map(|segment| segment.entries.len()).sum();
        let count = count + merged.map_or(0, |page| page.entries.len());
        let pages = u32_from(count).div_ceil(remap.page_entries_min());
        if !self.reserve_log_pages(now, pages, whom)? {
            return Ok(false);
        }
        self.destage_reserved(now, superblock)?;
        Ok(true)
    }

    fn destage_reserved(&mut self, now: Nanos, superblock: SuperblockId) -> Result<(), FtlError> {
        // Making room may have collected: look again.
        self.write_log(now)?;
        let Some(remap) = &mut self.remap else { return Ok(()) };
        remap.stats.destages += 1;
        let group = &remap.groups[superblock.index()];
        let short = usize::from(group.pages.last().is_some_and(|page| remap.merges(page, group)));
        let group = &mut remap.groups[superblock.index()];
        let merged = group.pop_pages(group.pages.len() - short);
        let (live_units, ended) = (group.nvram.live, std::mem::take(&mut group.ended));
        let old = remap.change(superblock, Group::take_segments);
        let mut read = remap.read_segments(now, &old);
        for page in &merged {
            read = read.max(self.charge_log_read(now, page, Cause::Rmm));
        }
        let entries: Vec<_> = merged.iter().flat_map(|page| &page.entries).copied().collect();
        let (mut live, _) = self.take_live(superblock, &entries, true, true);
        let (moved, units) = self.take_live_segments(superblock, &old, &ended, live_units, true);
        live.extend(moved);
        if let Some(remap) = &mut self.remap {
            remap.groups[superblock.index()].flash.live += units;
        }
        self.write_pages(read, superblock, live, Cause::Rmm)?;
        self.give_up_pages(&merged);
        self.give_back(old);
        Ok(())
    }

    /// Gives back superblocks that the log has more of than it may: entries died, or power cuts closed
    /// superblocks short.
    pub(crate) fn shrink_log(&mut self, now: Nanos) -> Result<(), FtlError> {
        self.erase_dead_log_superblocks(now)?;
        let holds = self.remap.as_ref().map_or(0, |remap| remap.superblocks.count());
        if holds > self.log_superblocks_max() {
            self.collect_log(now)?;
        }
        Ok(())
    }

    /// Erases log superblocks that no group refers to.
    pub(crate) fn erase_dead_log_superblocks(&mut self, now: Nanos) -> Result<(), FtlError> {
        loop {
            let Some(remap) = &mut self.remap else { return Ok(()) };
            let log = &mut remap.superblocks;
            let dead = log.closed.iter().position(|at| log.live[at.index()] == 0);
            let Some(dead) = dead else { return Ok(()) };
            let superblock = log.closed.swap_remove(dead);
            if self.erase(now, superblock)? {
                self.release(superblock);
            }
        }
    }

    /// Collects the closed log superblock whose live entries take fewest pages, estimated by the share
    /// of live ones in their groups (remap.md, H16): each group compacts its pages there. It needs
    /// neither NVRAM nor other collection (remap.md section 6). `false` if it gains little, or cannot
    /// be done with the pages that are ready.
    pub(crate) fn collect_log(&mut self, now: Nanos) -> Result<bool, FtlError> {
        let Some(remap) = &self.remap else { return Ok(false) };
        let geometry = *self.nand.geometry();
        let is_in = |at: SuperblockId| move |page: &LogPage| geometry.split(page.ppn).0 == at;
        // First those that power failed in: a damaged page in them says nothing about its age.
        let torn = &remap.superblocks.torn;
        if torn.is_empty() && remap.dead < remap.collect_from {
            return Ok(false);
        }
        let whole = |at: &SuperblockId| torn.iter().all(|(torn, _)| torn != at);
        let needed = remap.pages_after(&geometry);
        let log = remap.superblocks.closed.iter();
        let fewest = log.map(|at| (whole(at), needed[at.index()], at.raw(), *at)).min();
        let Some((whole, needed, _, victim)) = fewest else { return Ok(false) };
        let worth_it = self.layout.data_slots() * 9 / 10;
        if whole && needed > worth_it {
            // Each unit that dies saves a page at most, and most save none: looking costs more than
            // a little delay.
            let missing = (needed - worth_it).max(self.layout.data_slots() / 2);
            if let Some(remap) = &mut self.remap {
                remap.collect_from = remap.dead + u64::from(missing);
            }
            return Ok(false);
        }
        let is_in_victim = is_in(victim);
        let groups: Vec<SuperblockId> = (0..)
            .zip(&remap.groups)
            .filter(|(_, group)| group.pages.iter().any(is_in_victim))
            .map(|(at, _)| SuperblockId::new(at))
            .collect();
        // If all turned out to be live, each page would take one again.
        if remap.superblocks.live[victim.index()] > self.log_pages_ready() {
            return Ok(false);
        }
        for superblock in groups {
            self.rewrite_pages(now, superblock, is_in_victim)?;
        }
        if let Some(remap) = &mut self.remap {
            remap.stats.log_collections += 1;
        }
        self.erase_dead_log_superblocks(now)?;
        Ok(true)
    }

    /// Rewrites some pages of a group without their dead entries, behind the others. An entry that a
    /// page which stays supersedes is dead, so those behind are the newest of their units.
    fn rewrite_pages(
        &mut self,
        now: Nanos,
        superblock: SuperblockId,
        is_old: impl Fn(&LogPage) -> bool,
    ) -> Result<(), FtlError> {
        let Some(remap) = &mut self.remap else { return Ok(()) };
        let group = &mut remap.groups[superblock.index()];
        let each = |page: &LogPage| vec![is_old(page); page.entries.len()];
        let moves: Vec<bool> = group.pages.iter().flat_map(each).collect();
        let all = group.pages.iter().flat_map(|page| &page.entries);
        let entries: Vec<RemapEntry> = all.copied().collect();
        let old = group.take_pages(is_old);
        let mut read = now;
        for page in &old {
            read = read.max(self.charge_log_read(now, page, Cause::RmmGc));
        }
        let (live, _) = self.take_live_of(superblock, &entries, |at| moves[at], true, true);
        self.write_pages(read, superblock, live, Cause::RmmGc)?;
        self.give_up_pages(&old);
        Ok(())
    }
}

impl super::Remap {
    /// Reads segments of NVRAM for their time; returns when they are there.
    pub(crate) fn read_segments(&mut self, now: Nanos, segments: &[Segment]) -> Nanos {
        let bytes = u64_from(segments.len()) * u64::from(self.config.segment_bytes);
        self.port.read(now, bytes)
    }
}
