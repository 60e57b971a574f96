//! Units that wait for their flash page: slots given out and not programmed yet (invariant 4).
//!
//! Only where a flash page holds several units. A failed program sends them to another superblock.

use onefold_format::{SlotKind, TailRecord};
use onefold_nand::{At, Delay, Grant, Media};
use onefold_units::convert::{index, u32_from};
use onefold_units::{Cause, Nanos, Ppn, SuperblockId};

use crate::FtlError;
use crate::frontier::Staged;
use crate::ftl::Ftl;
use crate::layout::UNMAPPED;
use crate::lifecycle::tail_record;
use crate::superblock::State;
use crate::unit::Unit;

/// Which staged units go to another superblock after a failed program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// All of them.
    All,
    /// The caller appends the last one again by itself.
    AllButLast,
}

impl<M: Media> Ftl<M> {
    /// Gives a slot to a unit and programs the flash page once it is full.
    #[inline(never)]
    pub(crate) fn stage(
        &mut self,
        at: At,
        pool: u32,
        frontier: u32,
        superblock: SuperblockId,
        unit: Unit<'_>,
    ) -> Result<Grant, FtlError> {
        let slot = self.frontiers[index(frontier)].next;
        let remapped = self.remap.as_mut().and_then(|remap| remap.units.take(unit.lpn));
        let before = self.point(pool, superblock, slot, unit.lpn);
        let replaces = unit.moves_from.or(before);
        let unit_bytes = index(self.nand.geometry().unit_bytes());
        let open = &mut self.frontiers[index(frontier)];
        open.next = slot + 1;
        if !unit.data.is_empty() {
            // Units before it may carry no bytes: markers of lost ones.
            open.staged_data.resize(open.staged.len() * unit_bytes, 0);
            open.staged_data.extend_from_slice(unit.data);
        }
        let Unit { lpn, seq, entry, moves_from, .. } = unit;
        let is_copy = moves_from.is_some();
        open.staged.push(Staged { lpn, seq, entry, replaces, remapped, is_copy });
        if open.next - open.programmed < self.nand.geometry().slots_per_program() {
            return Ok(Grant { done: at.ready, delay: Delay::None });
        }
        let grant = self.program_staged(at, pool, frontier)?;
        // The host has its answer when the die has taken the data, as with any staging buffer; a
        // busy die holds it back.
        let cell = self.nand.timelines().spec().program.iter().min().unwrap_or(Nanos::ZERO);
        Ok(Grant { done: grant.done.saturating_sub(cell).max(at.ready), ..grant })
    }

    /// A unit that waits in a staged page is replaced in place: no second slot.
    #[inline(never)]
    pub(crate) fn rewrite_staged(&mut self, at: At, unit: Unit<'_>) -> Option<Grant> {
        let slot = self.map.stored(unit.lpn)?;
        let (frontier, place) = self.find_staged(slot)?;
        if let Some(contents) = &mut self.contents {
            contents.forget(slot);
        }
        let unit_bytes = index(self.nand.geometry().unit_bytes());
        let open = &mut self.frontiers[frontier];
        let staged = &mut open.staged[place];
        staged.seq = unit.seq;
        staged.entry = unit.entry;
        staged.is_copy = false;
        if !unit.data.is_empty() {
            let end = (place + 1) * unit_bytes;
            if open.staged_data.len() < end {
                open.staged_data.resize(end, 0);
            }
            open.staged_data[end - unit_bytes..end].copy_from_slice(unit.data);
        }
        Some(Grant { done: at.ready, delay: Delay::None })
    }

    /// Frontier and place of a slot that is staged but not programmed.
    #[inline]
    pub(crate) fn find_staged(&self, ppn: Ppn) -> Option<(usize, usize)> {
        if self.nand.geometry().slots_per_program() == 1 {
            return None;
        }
        self.find_in_frontiers(ppn)
    }

    #[inline(never)]
    fn find_in_frontiers(&self, ppn: Ppn) -> Option<(usize, usize)> {
        let (superblock, slot) = self.nand.geometry().split(ppn);
        if self.superblocks[superblock.index()].state != State::Open {
            return None;
        }
        let pool = self.nand.geometry().pool_of(superblock);
        let first = index(pool * self.layout.frontiers);
        let frontiers = &self.frontiers[first..first + index(self.layout.frontiers)];
        let open = frontiers.iter().position(|open| open.superblock == Some(superblock))?;
        let place = slot.checked_sub(frontiers[open].programmed)?;
        Some((first + open, index(place)))
    }

    /// Programs the staged page of a frontier, filled up with fillers if it is not full.
    pub(crate) fn program_staged(
        &mut self,
        at: At,
        pool: u32,
        frontier: u32,
    ) -> Result<Grant, FtlError> {
        let open = &self.frontiers[index(frontier)];
        let Some(superblock) = open.superblock.filter(|_| !open.staged.is_empty()) else {
            return Ok(Grant { done: at.ready, delay: Delay::None });
        };
        let slots = self.nand.geometry().slots_per_program();
        let first = open.programmed;
        self.fill_staged_page(frontier, superblock, slots);
        let open = &mut self.frontiers[index(frontier)];
        let data = std::mem::take(&mut open.staged_data);
        let spares = std::mem::take(&mut open.spares);
        let result = self.nand.program(at, superblock, first / slots, &spares, &data);
        let open = &mut self.frontiers[index(frontier)];
        open.staged_data = data;
        open.spares = spares;
        let grant = result?;
        self.programmed_at = self.programmed_at.max(grant.done);
        self.settle_staged(at, frontier, superblock, slots)?;
        if first + slots == self.layout.data_end {
            self.close(at, pool, frontier)?;
        }
        Ok(grant)
    }

    /// Prepares spare areas and filler data of the staged page.
    pub(crate) fn fill_staged_page(&mut self, frontier: u32, superblock: SuperblockId, slots: u32) {
        let unit_bytes = index(self.nand.geometry().unit_bytes());
        let mut spares = std::mem::take(&mut self.frontiers[index(frontier)].spares);
        spares.clear();
        let open = &self.frontiers[index(frontier)];
        for (place, staged) in open.staged.iter().enumerate() {
            let data = open.staged_data.get(place * unit_bytes..(place + 1) * unit_bytes);
            let data = data.unwrap_or_default();
            spares.push(self.spare(superblock, staged.entry.kind, staged.lpn, staged.seq, data));
        }
        let filler = self.spare(superblock, SlotKind::Filler, 0, 0, &[]);
        spares.resize(index(slots), filler);
        let open = &mut self.frontiers[index(frontier)];
        if !open.staged_data.is_empty() {
            open.staged_data.resize(index(slots) * unit_bytes, 0);
        }
        open.spares = spares;
    }

    /// The staged page is on flash: what its units replace is dead now (invariant 4).
    pub(crate) fn settle_staged(
        &mut self,
        at: At,
        frontier: u32,
        superblock: SuperblockId,
        slots: u32,
    ) -> Result<(), FtlError> {
        let pages = self.nand.geometry().pages_per_unit();
        let open = &mut self.frontiers[index(frontier)];
        let staged = std::mem::take(&mut open.staged);
        let fillers = slots - u32_from(staged.len());
        let first = open.programmed;
        open.staged_data.clear();
        open.programmed += slots;
        open.next = open.programmed;
        let mut filler = tail_record(SlotKind::Filler, 0, 0);
        for unit in &staged {
            let record = tail_record(unit.entry.kind, unit.lpn, unit.seq);
            // Fillers say nothing: they repeat what takes no room.
            filler = TailRecord { kind: filler.kind, ..record };
            open.note(record, M::STORES);
        }
        for _ in 0..fillers {
            open.note(filler, M::STORES);
        }
        self.stats.programs.add(Cause::Padding, pages * u64::from(fillers));
        for (slot, unit) in (first..).zip(&staged) {
            if let (Some(old), true, Some(contents)) =
                (unit.replaces, unit.is_copy, &mut self.contents)
            {
                contents.moved(old, self.nand.geometry().ppn(superblock, slot));
            }
            self.stats.programs.add(unit.entry.cause, unit.entry.pages);
            self.stats.programs.add(Cause::Padding, pages - unit.entry.pages);
            if let Some(old) = unit.replaces {
                self.end_replaced(unit, old);
            }
        }
        for (slot, unit) in (first..).zip(&staged) {
            if let Some(old) = unit.replaces.filter(|_| unit.is_copy) {
                self.follow(at.now, old, self.nand.geometry().ppn(superblock, slot))?;
            }
        }
        // Keeps the allocation for the next page.
        let mut staged = staged;
        staged.clear();
        self.frontiers[index(frontier)].staged = staged;
        Ok(())
    }

    /// What a staged unit replaces is dead now.
    pub(crate) fn end_replaced(&mut self, unit: &Staged, old: Ppn) {
        if let (Some(in_flash), Some(remap)) = (unit.remapped, &mut self.remap) {
            let (superblock, _) = self.nand.geometry().split(old);
            remap.note_dead(superblock, unit.lpn, in_flash);
        }
        self.invalidate(old);
    }

    /// A program of a frontier failed: its superblock is closed short and retired once it is
    /// empty, and what was staged goes to a new one.
    #[cold]
    pub(crate) fn abandon(
        &mut self,
        at: At,
        pool: u32,
        frontier: u32,
        resume: Resume,
    ) -> Result<(), FtlError> {
        self.stats.media_failures += 1;
        // The program is used up and holds nothing.
        let geometry = self.nand.geometry();
        let pages = geometry.pages_per_unit() * u64::from(geometry.slots_per_program());
        self.stats.programs.add(Cause::Padding, pages);
        let unit_bytes = index(self.nand.geometry().unit_bytes());
        let open = &mut self.frontiers[index(frontier)];
        let Some(superblock) = open.superblock.take() else { return Ok(()) };
        let (mut staged, data) =
            (std::mem::take(&mut open.staged), std::mem::take(&mut open.staged_data));
        let first = open.programmed;
        self.superblocks[superblock.index()].failing = true;
        for (slot, unit) in (first..).zip(&staged) {
            self.unstage(superblock, slot, unit);
        }
        if resume == Resume::AllButLast {
            staged.pop();
        }
        self.make_candidate(pool, superblock);
        for (place, unit) in staged.iter().enumerate() {
            let bytes = data.get(place * unit_bytes..(place + 1) * unit_bytes).unwrap_or_default();
            if unit.entry.kind == SlotKind::Filler {
                continue;
            }
            let Staged { lpn, seq, entry, replaces, is_copy, .. } = *unit;
            let moves_from = replaces.filter(|_| is_copy);
            let again = Unit { lpn, seq, entry, data: bytes, moves_from };
            self.append(at, pool, frontier, again)?;
        }
        Ok(())
    }

    /// Takes back a staged slot: its unit points again at what it would have replaced.
    pub(crate) fn unstage(&mut self, superblock: SuperblockId, slot: u32, unit: &Staged) {
        let ppn = self.nand.geometry().ppn(superblock, slot);
        if !self.valid.get(superblock, slot) {
            return;
        }
        self.invalidate(ppn);
        self.map.l2p.set(index(unit.lpn), unit.replaces.map_or(UNMAPPED, Ppn::raw));
        if let (Some(in_flash), Some(remap)) = (unit.remapped, &mut self.remap) {
            remap.units.set(unit.lpn, in_flash);
        }
    }
}
