//! Recounting what remapping keeps: I4, I6, I7 and I8 of remap.md section 10.

use std::collections::BTreeMap;

use onefold_nand::Media;
use onefold_units::convert::{index, u32_from};
use onefold_units::{Ppn, SuperblockId};

use super::groups::NO_SEGMENT;
use crate::Violation;
use crate::ftl::Ftl;
use crate::layout::LOST;
use crate::superblock::State;

impl<M: Media> Ftl<M> {
    pub(crate) fn check_remap(&self) -> Result<(), Violation> {
        if self.remap.is_none() {
            return Ok(());
        }
        self.check_references()?;
        self.check_entries()?;
        self.check_segments()?;
        self.check_log_superblocks()
    }

    fn check_references(&self) -> Result<(), Violation> {
        let Some(remap) = &self.remap else { return Ok(()) };
        let slots = self.map.p2l.len();
        let mut found = vec![0_u32; slots];
        let replaced = self.frontiers.iter().flat_map(|frontier| &frontier.staged);
        let replaced = replaced.filter_map(|unit| unit.replaces.map(Ppn::raw));
        for ppn in self.map.l2p.iter().filter(|ppn| *ppn < LOST).chain(replaced) {
            found[index(ppn)] += 1;
        }
        for (ppn, found) in (0..).zip(found) {
            let counted = remap.refs.get(Ppn::new(ppn));
            let (superblock, slot) = self.nand.geometry().split(Ppn::new(ppn));
            if counted != found || self.valid.get(superblock, slot) != (found > 0) {
                return Err(Violation::References { ppn, counted, found });
            }
        }
        Ok(())
    }

    /// Each remapped unit has one live entry, in the group of its slot and the store its bit names,
    /// and the newest of those that say so; groups count their live units.
    fn check_entries(&self) -> Result<(), Violation> {
        let Some(remap) = &self.remap else { return Ok(()) };
        let mut live: BTreeMap<u32, u32> = BTreeMap::new();
        for (at, group) in (0..).zip(&remap.groups) {
            let first_ppn = self.nand.geometry().ppn(SuperblockId::new(at), 0).raw();
            let mut here: BTreeMap<(u32, bool), u32> = BTreeMap::new();
            for (entry, in_flash) in group.entries() {
                for (lpn, slot) in entry.units() {
                    if self.is_live(lpn, first_ppn + slot, in_flash) {
                        *here.entry((lpn, in_flash)).or_default() += 1;
                    }
                }
            }
            let found = u32_from(here.len());
            let counted = group.nvram.live + group.flash.live;
            if counted != found {
                return Err(Violation::GroupCount { superblock: at, counted, found });
            }
            if self.superblocks[index(at)].state == State::Free && !group.is_empty() {
                return Err(Violation::GroupCount { superblock: at, counted, found: 0 });
            }
            for (lpn, _) in here.keys() {
                *live.entry(*lpn).or_default() += 1;
            }
        }
        for lpn in 0..u32_from(self.map.l2p.len()) {
            let live = live.get(&lpn).copied().unwrap_or(0);
            if remap.units.has(lpn) && live != 1 || live > 1 {
                return Err(Violation::Entries { lpn, live });
            }
        }
        Ok(())
    }

    fn check_segments(&self) -> Result<(), Violation> {
        let Some(remap) = &self.remap else { return Ok(()) };
        let mut uses = vec![0; index(remap.segments.total)];
        let in_groups = remap.groups.iter().flat_map(|group| &group.segments).map(|s| s.id);
        let idle = remap.segments.free.iter().chain(&remap.segments.waiting).copied();
        for id in in_groups.chain(idle).filter(|id| *id != NO_SEGMENT) {
            uses[index(id)] += 1;
        }
        match (0..).zip(uses).find(|(_, uses)| *uses != 1) {
            Some((segment, uses)) => Err(Violation::Segment { segment, uses }),
            None => Ok(()),
        }
    }

    fn check_log_superblocks(&self) -> Result<(), Violation> {
        let Some(remap) = &self.remap else { return Ok(()) };
        let mut pages = vec![0; self.superblocks.len()];
        for page in remap.groups.iter().flat_map(|group| &group.pages) {
            pages[self.nand.geometry().split(page.ppn).0.index()] += 1;
        }
        for (superblock, found) in (0..).zip(pages) {
            let counted = remap.superblocks.live[index(superblock)];
            let is_log = self.superblocks[index(superblock)].state == State::Log;
            if counted != found || found > 0 && !is_log {
                return Err(Violation::LogPages { superblock, counted, found });
            }
        }
        Ok(())
    }
}
