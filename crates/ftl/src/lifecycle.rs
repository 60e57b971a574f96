//! The life of a superblock: taken from the free list, headed, filled, closed with its tail.

use onefold_format::{
    HeadRecord, SlotKind, SpareRecord, SuperblockKind, TailMeter, TailRecord, checksum, encode_tail,
};
use onefold_nand::{At, ERASED_SPARE, Media, MediaError};
use onefold_units::convert::{index, low32};
use onefold_units::{Cause, Lpn, Seq, SuperblockId};

use crate::FtlError;
use crate::ftl::{Ftl, background};
use crate::superblock::State;

impl<M: Media> Ftl<M> {
    /// Opens the least worn free superblock of a pool as a frontier.
    #[cold]
    pub(crate) fn open(&mut self, at: At, pool: u32, frontier: u32) -> Result<(), FtlError> {
        let is_of_collection = frontier % self.layout.frontiers == self.layout.gc_frontier;
        if self.layout.mixes || !is_of_collection {
            self.secure_reserve(pool)?;
        }
        let superblock = self.take_free(at, pool, SuperblockKind::Data)?;
        let first = self.layout.data_begin;
        self.superblocks[superblock.index()].state = State::Open;
        let unit_bytes = self.nand.geometry().unit_bytes();
        let meter = self.config.metadata_pages.then(|| TailMeter::new(unit_bytes));
        self.frontiers[index(frontier)].open(superblock, first, meter);
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
            self.grow_old()?;
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

    /// Writes the header of an erased superblock. `false` if its head page failed.
    pub(crate) fn write_head(
        &mut self,
        at: At,
        superblock: SuperblockId,
        kind: SuperblockKind,
    ) -> Result<bool, FtlError> {
        if M::STORES && self.alloc >= self.epoch_limit {
            self.reserve_epochs()?;
        }
        if self.superblocks[superblock.index()].erasing {
            // Power failed after the erase, before NVRAM knew.
            self.note_wear(superblock)?;
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
    pub(crate) fn program_filler(
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

    /// Closes a full frontier: tail pages, and from now on a candidate for collection.
    #[cold]
    pub(crate) fn close(&mut self, at: At, pool: u32, frontier: u32) -> Result<(), FtlError> {
        let open = &mut self.frontiers[index(frontier)];
        let Some(superblock) = open.superblock.take() else { return Ok(()) };
        let tail = std::mem::take(&mut open.tail);
        let tail_units = open.meter.as_ref().map_or(0, TailMeter::units);
        self.superblocks[superblock.index()].tail_units = tail_units;
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
        let pool = &mut self.pools[index(pool)];
        pool.closed += 1;
        pool.victims.insert(place, valid);
    }

    /// Writes the tail pages of a superblock. `false` if a program failed: recovery then scans the
    /// spare areas.
    pub(crate) fn write_tail(
        &mut self,
        at: At,
        superblock: SuperblockId,
        tail: &[TailRecord],
    ) -> Result<bool, FtlError> {
        let geometry = *self.nand.geometry();
        let unit_bytes = geometry.unit_bytes();
        let slots = geometry.slots_per_program();
        let programs = self.tail_programs();
        let mut rest = tail;
        let mut data = vec![0; if M::STORES { index(slots * unit_bytes) } else { 0 }];
        for program in programs {
            for unit in data.chunks_exact_mut(index(unit_bytes)) {
                rest = &rest[encode_tail(rest, unit)..];
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
}

pub(crate) fn tail_record(kind: SlotKind, lpn: u32, seq: u64) -> TailRecord {
    TailRecord { kind: Some(kind), lpn: Lpn::new(lpn), seq: Seq::new(seq) }
}
