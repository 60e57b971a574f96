//! Writing units: choosing a place, programming, and changing the map.

use onefold_format::{
    EpochLimit, HeadRecord, SlotKind, SpareRecord, SuperblockKind, TailRecord, checksum,
    encode_tail, tail_records_per_unit,
};
use onefold_nand::{At, Delay, ERASED_SPARE, Grant, Media, MediaError};
use onefold_units::convert::{index, low32, u32_from};
use onefold_units::{Cause, Lpn, Nanos, Ppn, Seq, SuperblockId};

use crate::FtlError;
use crate::frontier::{Entry, Staged};
use crate::ftl::{Ftl, background};
use crate::layout::UNMAPPED;
use crate::superblock::State;

/// Which staged units go to another superblock after a failed program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// All of them.
    All,
    /// The caller appends the last one again by itself.
    AllButLast,
}

/// A unit on its way to flash.
#[derive(Clone, Copy)]
pub(crate) struct Unit<'a> {
    pub(crate) lpn: u32,
    pub(crate) seq: u64,
    pub(crate) entry: Entry,
    pub(crate) data: &'a [u8],
    /// The slot it leaves, where the caller knows it: a lookup is a cache miss.
    pub(crate) moves_from: Option<Ppn>,
}

impl<M: Media> Ftl<M> {
    /// Writes one unit. `data` is the whole unit, or empty where no bytes are carried; `pages` is
    /// how many 4 KiB pages of it the host wrote, the rest counts as padding. Placement `stream`s
    /// beyond the configured ones share the last.
    ///
    /// The answer is when the write is complete: programmed, or, where a flash page holds several
    /// units, taken into the staged page or moved to the die.
    ///
    /// # Errors
    /// [`FtlError::NoSpace`] if superblocks ran out, or what the medium reported.
    #[inline]
    pub fn write(
        &mut self,
        at: At,
        lpn: Lpn,
        pages: u64,
        stream: u32,
        data: &[u8],
    ) -> Result<Grant, FtlError> {
        let lpn = lpn.raw();
        let at = At { ready: self.translate(at, lpn, true)?, ..at };
        self.seq += 1;
        let entry = Entry { kind: SlotKind::Data, cause: Cause::User, pages };
        let unit = Unit { lpn, seq: self.seq, entry, data, moves_from: None };
        if let Some(grant) = self.rewrite_staged(at, unit) {
            return Ok(grant);
        }
        let pool = self.next_pool();
        let frontier = pool * self.layout.frontiers + stream.min(self.config.streams - 1);
        self.make_room(at, pool, frontier)?;
        let grant = self.append(at, pool, frontier, unit)?;
        if self.hungry > 0 {
            self.collect_paced(at.now, pool)?;
        }
        self.checkpoint_after_write(at.now)?;
        Ok(grant)
    }

    /// The pool whose turn it is. A pool that holds far more than its share of valid data passes:
    /// collecting it would cost most.
    #[inline]
    fn next_pool(&mut self) -> u32 {
        let pools = u32_from(self.pools.len());
        if pools == 1 {
            return 0;
        }
        for _ in 0..pools {
            let pool = self.turn;
            self.turn = if pool + 1 == pools { 0 } else { pool + 1 };
            if self.pools[index(pool)].valid < self.layout.pool_valid_max {
                return pool;
            }
        }
        self.turn
    }

    /// Sees to it that a frontier has a slot to give out, waiting for collection if the pool is low.
    #[inline]
    fn make_room(&mut self, at: At, pool: u32, frontier: u32) -> Result<(), FtlError> {
        if self.frontiers[index(frontier)].superblock.is_some() {
            return Ok(());
        }
        self.collect_until_above_stop(at.now, pool)?;
        if self.frontiers[index(frontier)].superblock.is_some() {
            // Collection shares this frontier and has opened it.
            return Ok(());
        }
        self.secure_reserve(pool)?;
        self.open(at, pool, frontier)
    }

    /// Opens the least worn free superblock of a pool as a frontier.
    pub(crate) fn open(&mut self, at: At, pool: u32, frontier: u32) -> Result<(), FtlError> {
        let superblock = self.take_free(at, pool, SuperblockKind::Data)?;
        let first = self.layout.data_begin;
        self.superblocks[superblock.index()].state = State::Open;
        self.frontiers[index(frontier)].open(superblock, first);
        self.judge_hunger(pool);
        Ok(())
    }

    /// Takes a free superblock of a pool, erased and with its header written.
    pub(crate) fn take_free(
        &mut self,
        at: At,
        pool: u32,
        kind: SuperblockKind,
    ) -> Result<SuperblockId, FtlError> {
        loop {
            let place = self.pools[index(pool)].pop_free().ok_or(FtlError::NoSpace)?;
            let superblock = self.nand.geometry().superblock_of_pool(pool, place);
            if self.superblocks[superblock.index()].dirty && !self.erase(at.now, superblock)? {
                continue;
            }
            if self.write_head(at, superblock, kind)? {
                return Ok(superblock);
            }
        }
    }

    /// Notes in NVRAM that more epochs may be in use. A power cut of the host may take headers whose
    /// slots are still there; if their epoch was given out again, an erase that is lost as well would
    /// revive them.
    fn reserve_epochs(&mut self) -> Result<(), FtlError> {
        const EPOCHS_AT_ONCE: u64 = 1024;
        self.epoch_limit = self.alloc + EPOCHS_AT_ONCE;
        let limit = EpochLimit { epoch: self.epoch_limit };
        self.nand.media_mut().nvram_write(self.layout.nvram.epoch_limit, &limit.encode())?;
        self.sync()
    }

    /// Writes the header of an erased superblock. `false` if its head page failed.
    fn write_head(
        &mut self,
        at: At,
        superblock: SuperblockId,
        kind: SuperblockKind,
    ) -> Result<bool, FtlError> {
        if M::STORES && self.alloc >= self.epoch_limit {
            self.reserve_epochs()?;
        }
        let block = &mut self.superblocks[superblock.index()];
        block.epoch = self.alloc;
        block.valid = 0;
        self.alloc += 1;
        if M::STORES {
            let head = HeadRecord {
                kind,
                superblock,
                erases: block.erases,
                epoch: block.epoch,
                seq: Seq::new(self.seq),
                geometry: self.geometry_id,
            };
            self.nand.media_mut().program_head(superblock, &head.encode())?;
        }
        if !self.config.metadata_pages {
            return Ok(true);
        }
        let at = At { work: onefold_nand::Work::Background, ..at };
        self.program_filler(at, superblock, 0, Cause::Metadata)
    }

    /// Programs a whole program of fillers. `false` if it failed, which retires the superblock.
    fn program_filler(
        &mut self,
        at: At,
        superblock: SuperblockId,
        program: u32,
        cause: Cause,
    ) -> Result<bool, FtlError> {
        let slots = self.nand.geometry().slots_per_program();
        let pages = self.nand.geometry().pages_per_unit();
        let spare = self.spare(superblock, SlotKind::Filler, 0, 0, &[]);
        let spares = vec![spare; index(slots)];
        self.stats.programs.add(cause, pages * u64::from(slots));
        match self.nand.program(at, superblock, program, &spares, &[]) {
            Ok(grant) => {
                self.programmed_at = self.programmed_at.max(grant.done);
                Ok(true)
            }
            Err(MediaError::ProgramFailed) => {
                self.stats.media_failures += 1;
                self.superblocks[superblock.index()].state = State::Retired;
                self.note_wear(superblock)?;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn spare(
        &self,
        superblock: SuperblockId,
        kind: SlotKind,
        lpn: u32,
        seq: u64,
        data: &[u8],
    ) -> onefold_nand::Spare {
        if !M::STORES {
            return ERASED_SPARE;
        }
        SpareRecord {
            kind,
            lpn: Lpn::new(lpn),
            seq: Seq::new(seq),
            data_crc: if data.is_empty() { 0 } else { checksum(data) },
            epoch_low: low32(self.superblocks[superblock.index()].epoch),
        }
        .encode()
    }

    /// Appends a unit to a frontier, on another superblock if a program fails. Opens a superblock if
    /// the frontier has none, without collecting.
    #[inline]
    pub(crate) fn append(
        &mut self,
        at: At,
        pool: u32,
        frontier: u32,
        unit: Unit<'_>,
    ) -> Result<Grant, FtlError> {
        loop {
            let Some(superblock) = self.frontiers[index(frontier)].superblock else {
                self.open(at, pool, frontier)?;
                continue;
            };
            let placed = if self.nand.geometry().slots_per_program() == 1 {
                self.place(at, pool, frontier, superblock, unit)
            } else {
                self.stage(at, pool, frontier, superblock, unit)
            };
            match placed {
                Err(FtlError::Media(MediaError::ProgramFailed)) => {
                    self.abandon(at, pool, frontier, Resume::AllButLast)?;
                }
                other => return other,
            }
        }
    }

    /// Programs a unit that fills a program by itself.
    #[inline]
    fn place(
        &mut self,
        at: At,
        pool: u32,
        frontier: u32,
        superblock: SuperblockId,
        unit: Unit<'_>,
    ) -> Result<Grant, FtlError> {
        let slot = self.frontiers[index(frontier)].next;
        let grant = if M::STORES {
            let spare = self.spare(superblock, unit.entry.kind, unit.lpn, unit.seq, unit.data);
            self.nand.program(at, superblock, slot, &[spare], unit.data)?
        } else {
            self.nand.program(at, superblock, slot, &[], &[])?
        };
        self.programmed_at = self.programmed_at.max(grant.done);
        let pages = self.nand.geometry().pages_per_unit();
        self.stats.programs.add(unit.entry.cause, unit.entry.pages);
        if unit.entry.pages < pages {
            self.stats.programs.add(Cause::Padding, pages - unit.entry.pages);
        }
        let old = unit.moves_from.or_else(|| self.map.stored(unit.lpn));
        self.point(pool, superblock, slot, unit.lpn);
        if let Some(old) = old {
            self.invalidate(old);
        }
        let open = &mut self.frontiers[index(frontier)];
        open.next = slot + 1;
        open.programmed = slot + 1;
        if M::STORES && self.config.metadata_pages {
            open.tail.push(tail_record(unit.entry.kind, unit.lpn, unit.seq));
        }
        if slot + 1 == self.layout.data_end {
            self.close(at, pool, frontier)?;
        }
        Ok(grant)
    }

    /// Gives a slot to a unit and programs the flash page once it is full.
    fn stage(
        &mut self,
        at: At,
        pool: u32,
        frontier: u32,
        superblock: SuperblockId,
        unit: Unit<'_>,
    ) -> Result<Grant, FtlError> {
        let slot = self.frontiers[index(frontier)].next;
        let replaces = unit.moves_from.or_else(|| self.map.stored(unit.lpn));
        self.point(pool, superblock, slot, unit.lpn);
        let unit_bytes = index(self.nand.geometry().unit_bytes());
        let open = &mut self.frontiers[index(frontier)];
        open.next = slot + 1;
        if !unit.data.is_empty() {
            // Units before it may carry no bytes: markers of lost ones.
            open.staged_data.resize(open.staged.len() * unit_bytes, 0);
            open.staged_data.extend_from_slice(unit.data);
        }
        open.staged.push(Staged { lpn: unit.lpn, seq: unit.seq, entry: unit.entry, replaces });
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
    #[inline]
    fn rewrite_staged(&mut self, at: At, unit: Unit<'_>) -> Option<Grant> {
        if self.nand.geometry().slots_per_program() == 1 {
            return None;
        }
        let (frontier, place) = self.find_staged(self.map.stored(unit.lpn)?)?;
        let unit_bytes = index(self.nand.geometry().unit_bytes());
        let open = &mut self.frontiers[frontier];
        let staged = &mut open.staged[place];
        staged.seq = unit.seq;
        staged.entry = unit.entry;
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
    pub(crate) fn find_staged(&self, ppn: Ppn) -> Option<(usize, usize)> {
        if self.nand.geometry().slots_per_program() == 1 {
            return None;
        }
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
        self.settle_staged(frontier, slots);
        if first + slots == self.layout.data_end {
            self.close(at, pool, frontier)?;
        }
        Ok(grant)
    }

    /// Prepares spare areas and filler data of the staged page.
    fn fill_staged_page(&mut self, frontier: u32, superblock: SuperblockId, slots: u32) {
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
    fn settle_staged(&mut self, frontier: u32, slots: u32) {
        let pages = self.nand.geometry().pages_per_unit();
        let open = &mut self.frontiers[index(frontier)];
        let staged = std::mem::take(&mut open.staged);
        let fillers = slots - u32_from(staged.len());
        open.staged_data.clear();
        open.programmed += slots;
        open.next = open.programmed;
        if M::STORES && self.config.metadata_pages {
            for unit in &staged {
                open.tail.push(tail_record(unit.entry.kind, unit.lpn, unit.seq));
            }
            for _ in 0..fillers {
                open.tail.push(tail_record(SlotKind::Filler, 0, 0));
            }
        }
        self.stats.programs.add(Cause::Padding, pages * u64::from(fillers));
        for unit in &staged {
            self.stats.programs.add(unit.entry.cause, unit.entry.pages);
            self.stats.programs.add(Cause::Padding, pages - unit.entry.pages);
            if let Some(old) = unit.replaces {
                self.invalidate(old);
            }
        }
        // Keeps the allocation for the next page.
        let mut staged = staged;
        staged.clear();
        self.frontiers[index(frontier)].staged = staged;
    }

    /// Points a logical unit at a slot, which is valid now.
    #[inline]
    pub(crate) fn point(&mut self, pool: u32, superblock: SuperblockId, slot: u32, lpn: u32) {
        let ppn = self.nand.geometry().ppn(superblock, slot);
        self.map.p2l[ppn.index()] = lpn;
        self.valid.set(superblock, slot);
        let block = &mut self.superblocks[superblock.index()];
        block.valid += 1;
        self.pools[index(pool)].valid += 1;
        self.map.l2p[index(lpn)] = ppn.raw();
    }

    /// A slot holds no current content any more.
    #[inline]
    pub(crate) fn invalidate(&mut self, ppn: Ppn) {
        let (superblock, slot) = self.nand.geometry().split(ppn);
        self.valid.clear(superblock, slot);
        let block = &mut self.superblocks[superblock.index()];
        block.valid -= 1;
        let (valid, state) = (block.valid, block.state);
        let (pool, place) = self.place_in_pool(superblock);
        let pool = &mut self.pools[index(pool)];
        pool.valid -= 1;
        if state == State::Closed {
            pool.victims.changed(place, valid);
        }
    }

    /// Pool of a superblock and its place in it.
    #[inline]
    pub(crate) fn place_in_pool(&self, superblock: SuperblockId) -> (u32, u32) {
        self.nand.geometry().pool_and_place(superblock)
    }

    /// Closes a full frontier: tail pages, and from now on a candidate for collection.
    fn close(&mut self, at: At, pool: u32, frontier: u32) -> Result<(), FtlError> {
        let open = &mut self.frontiers[index(frontier)];
        let Some(superblock) = open.superblock.take() else { return Ok(()) };
        let tail = std::mem::take(&mut open.tail);
        let written = if self.config.metadata_pages {
            self.write_tail(background(at.now), superblock, &tail)?
        } else {
            true
        };
        self.frontiers[index(frontier)].tail = tail;
        if !written {
            self.superblocks[superblock.index()].failing = true;
        }
        self.make_candidate(pool, superblock);
        Ok(())
    }

    /// A superblock takes no more data and may be collected.
    pub(crate) fn make_candidate(&mut self, pool: u32, superblock: SuperblockId) {
        let (_, place) = self.place_in_pool(superblock);
        let block = &mut self.superblocks[superblock.index()];
        block.state = State::Closed;
        block.closed_at = self.seq;
        let valid = block.valid;
        self.pools[index(pool)].victims.insert(place, valid);
    }

    /// Writes the tail pages of a superblock. `false` if a program failed: recovery then scans the
    /// spare areas.
    fn write_tail(
        &mut self,
        at: At,
        superblock: SuperblockId,
        tail: &[TailRecord],
    ) -> Result<bool, FtlError> {
        let geometry = *self.nand.geometry();
        let unit_bytes = geometry.unit_bytes();
        let per_unit = index(tail_records_per_unit(unit_bytes));
        let slots = geometry.slots_per_program();
        let programs = self.tail_programs();
        let mut chunks = tail.chunks(per_unit);
        let mut data = vec![0; if M::STORES { index(slots * unit_bytes) } else { 0 }];
        for program in programs {
            for unit in data.chunks_exact_mut(index(unit_bytes)) {
                encode_tail(chunks.next().unwrap_or_default(), unit);
            }
            let spares: Vec<_> = (0..index(slots))
                .map(|n| {
                    let unit = data.chunks_exact(index(unit_bytes)).nth(n).unwrap_or_default();
                    self.spare(superblock, SlotKind::Tail, 0, 0, unit)
                })
                .collect();
            let pages = geometry.pages_per_unit() * u64::from(slots);
            self.stats.programs.add(Cause::Metadata, pages);
            match self.nand.program(at, superblock, program, &spares, &data) {
                Ok(grant) => self.programmed_at = self.programmed_at.max(grant.done),
                Err(MediaError::ProgramFailed) => {
                    self.stats.media_failures += 1;
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// The programs that hold the tail of a superblock.
    pub(crate) fn tail_programs(&self) -> std::ops::Range<u32> {
        let geometry = self.nand.geometry();
        let slots = geometry.slots_per_program();
        self.layout.data_end / slots..geometry.slots() / slots
    }

    /// A program of a frontier failed: its superblock is closed short and retired once it is
    /// empty, and what was staged goes to a new one.
    pub(crate) fn abandon(
        &mut self,
        at: At,
        pool: u32,
        frontier: u32,
        resume: Resume,
    ) -> Result<(), FtlError> {
        self.stats.media_failures += 1;
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
            let Staged { lpn, seq, entry, .. } = *unit;
            let again = Unit { lpn, seq, entry, data: bytes, moves_from: None };
            self.append(at, pool, frontier, again)?;
        }
        Ok(())
    }

    /// Takes back a staged slot: its unit points again at what it would have replaced.
    fn unstage(&mut self, superblock: SuperblockId, slot: u32, unit: &Staged) {
        let ppn = self.nand.geometry().ppn(superblock, slot);
        if !self.valid.get(superblock, slot) {
            return;
        }
        self.invalidate(ppn);
        self.map.l2p[index(unit.lpn)] = unit.replaces.map_or(UNMAPPED, Ppn::raw);
    }
}

fn tail_record(kind: SlotKind, lpn: u32, seq: u64) -> TailRecord {
    TailRecord { kind: Some(kind), lpn: Lpn::new(lpn), seq: Seq::new(seq) }
}
