//! Writing units: choosing a place, programming, and changing the map.
//!
//! The way of a unit is compiled into its few callers as a whole (`inline(always)`): the functions on it
//! have many arguments, and handing those on takes as long as the work.
#![expect(clippy::inline_always, reason = "the way of a unit, see above")]

use onefold_format::SlotKind;
use onefold_nand::{At, Grant, Media, MediaError};
use onefold_units::convert::index;
use onefold_units::{Cause, Lpn, Ppn, SuperblockId};

use crate::FtlError;
use crate::frontier::Entry;
use crate::ftl::Ftl;
use crate::layout::NO_OWNER;
use crate::lifecycle::tail_record;
use crate::staging::Resume;
use crate::superblock::{State, stored};
use crate::unit::Unit;

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
    #[inline(always)]
    pub fn write(
        &mut self,
        at: At,
        lpn: Lpn,
        pages: u64,
        stream: u32,
        data: &[u8],
    ) -> Result<Grant, FtlError> {
        let at = At { ready: self.translate(at, lpn.raw(), true)?, ..at };
        self.seq += 1;
        let entry = Entry { kind: SlotKind::Data, cause: Cause::User, pages };
        let unit = Unit { lpn: lpn.raw(), seq: self.seq, entry, data, moves_from: None };
        self.put_here(at, unit, stream)
    }

    /// The same for another reason than that the host wrote it.
    ///
    /// # Errors
    /// As [`Ftl::write`].
    #[inline]
    pub fn write_for(
        &mut self,
        cause: Cause,
        at: At,
        lpn: Lpn,
        pages: u64,
        stream: u32,
        data: &[u8],
    ) -> Result<Grant, FtlError> {
        let lpn = lpn.raw();
        let at = At { ready: self.translate(at, lpn, true)?, ..at };
        self.seq += 1;
        let entry = Entry { kind: SlotKind::Data, cause, pages };
        let unit = Unit { lpn, seq: self.seq, entry, data, moves_from: None };
        self.put(at, unit, stream)
    }

    /// Puts a unit of the host on a frontier.
    #[inline(never)]
    pub(crate) fn put(&mut self, at: At, unit: Unit<'_>, stream: u32) -> Result<Grant, FtlError> {
        self.put_here(at, unit, stream)
    }

    #[inline(always)]
    fn put_here(&mut self, at: At, unit: Unit<'_>, stream: u32) -> Result<Grant, FtlError> {
        if !self.moving.is_empty() {
            self.moving.remove(&unit.lpn);
        }
        if self.nand.geometry().slots_per_program() > 1
            && let Some(grant) = self.rewrite_staged(at, unit)
        {
            return Ok(grant);
        }
        let stream = stream.min(self.config.streams - 1);
        let mut pool = self.next_pool();
        let mut frontier = pool * self.layout.frontiers + stream;
        if self.frontiers[index(frontier)].superblock.is_none() {
            pool = self.make_room(at, pool, stream)?;
            frontier = pool * self.layout.frontiers + stream;
        }
        let grant = self.append_here(at, pool, frontier, unit)?;
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
        let pools = self.nand.geometry().pools();
        for _ in 0..pools {
            let pool = self.turn;
            self.turn = if pool + 1 == pools { 0 } else { pool + 1 };
            if self.pools[index(pool)].valid < self.layout.pool_valid_max {
                return pool;
            }
        }
        self.turn
    }

    /// Sees to it that the frontier of a stream has a slot to give out, and returns in which pool: a pool whose
    /// superblocks went bad may be full while others are not.
    #[cold]
    fn make_room(&mut self, at: At, first: u32, stream: u32) -> Result<u32, FtlError> {
        let mut pool = first;
        for _ in 1..self.pools.len() {
            match self.open_for_host(at, pool, stream) {
                Err(FtlError::NoSpace) => pool = self.next_pool(),
                opened => return opened.map(|()| pool),
            }
        }
        self.open_for_host(at, pool, stream).map(|()| pool)
    }

    /// Opens the frontier of a stream, waiting for collection if the pool is low.
    fn open_for_host(&mut self, at: At, pool: u32, stream: u32) -> Result<(), FtlError> {
        let frontier = pool * self.layout.frontiers + stream;
        if self.frontiers[index(frontier)].superblock.is_some() {
            return Ok(());
        }
        self.collect_until_above_stop(at.now, pool)?;
        if self.frontiers[index(frontier)].superblock.is_some() {
            // Collection shares this frontier and has opened it.
            return Ok(());
        }
        self.open(at, pool, frontier)
    }

    /// Appends a unit to a frontier, on another superblock if a program fails. Opens a superblock if
    /// the frontier has none, without collecting.
    #[inline(never)]
    pub(crate) fn append(
        &mut self,
        at: At,
        pool: u32,
        frontier: u32,
        unit: Unit<'_>,
    ) -> Result<Grant, FtlError> {
        self.append_here(at, pool, frontier, unit)
    }

    #[inline(always)]
    pub(crate) fn append_here(
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
    #[inline(always)]
    pub(crate) fn place(
        &mut self,
        at: At,
        pool: u32,
        frontier: u32,
        superblock: SuperblockId,
        unit: Unit<'_>,
    ) -> Result<Grant, FtlError> {
        let spare = self.spare(superblock, unit.entry.kind, unit.lpn, unit.seq, unit.data);
        let open = &mut self.frontiers[index(frontier)];
        let slot = open.next;
        let grant = self.nand.program(at, superblock, slot, &[spare], unit.data)?;
        open.next = slot + 1;
        open.programmed = slot + 1;
        if open.meter.is_some() {
            // Without bytes the number of a copy is not known: the meter takes any there is.
            let known = M::STORES || unit.seq > 0 || slot.is_multiple_of(2);
            let seq = if known { unit.seq } else { self.seq };
            open.note(tail_record(unit.entry.kind, unit.lpn, seq), M::STORES);
        }
        self.programmed_at = self.programmed_at.max(grant.done);
        let pages = self.nand.geometry().pages_per_unit();
        self.stats.programs.add(unit.entry.cause, unit.entry.pages);
        if unit.entry.pages < pages {
            self.stats.programs.add(Cause::Padding, pages - unit.entry.pages);
        }
        let old = self.point(pool, superblock, slot, unit.lpn);
        if let (Some(from), Some(contents)) = (unit.moves_from, &mut self.contents) {
            contents.moved(from, self.nand.geometry().ppn(superblock, slot));
        }
        if let Some(old) = old {
            self.end_mapping(unit.lpn, old);
            self.invalidate(old);
        }
        if slot + 1 == self.layout.data_end {
            self.close(at, pool, frontier)?;
        }
        if let Some(from) = unit.moves_from {
            self.follow(at.now, from, self.nand.geometry().ppn(superblock, slot))?;
        }
        Ok(grant)
    }

    /// Points a logical unit at a slot, which is valid now. Returns the slot that it was stored in, if any.
    #[inline(always)]
    pub(crate) fn point(
        &mut self,
        pool: u32,
        superblock: SuperblockId,
        slot: u32,
        lpn: u32,
    ) -> Option<Ppn> {
        let ppn = self.nand.geometry().ppn(superblock, slot);
        self.map.p2l.set(ppn.index(), lpn);
        self.valid.set(superblock, slot);
        let block = &mut self.superblocks[superblock.index()];
        block.valid += 1;
        self.pools[index(pool)].valid += 1;
        if let Some(remap) = &mut self.remap {
            if lpn == NO_OWNER {
                // The paper's null owner: nobody maps to the new slot yet.
                return None;
            }
            remap.refs.add(ppn);
        }
        stored(self.map.l2p.replace(index(lpn), ppn.raw()))
    }

    /// A unit does not map to a slot any more. Without any, it holds no current content.
    #[inline(always)]
    pub(crate) fn invalidate(&mut self, ppn: Ppn) {
        if let Some(remap) = &mut self.remap
            && remap.refs.sub(ppn) > 0
        {
            return;
        }
        self.vacate(ppn);
    }

    /// A slot that nothing refers to is not valid any more.
    #[inline(always)]
    pub(crate) fn vacate(&mut self, ppn: Ppn) {
        if let Some(contents) = &mut self.contents {
            contents.forget(ppn);
        }
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
}
