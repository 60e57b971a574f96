//! Power-off recovery: rebuilding the map from what is on flash and in NVRAM (remap.md sections 7, 8).
//!
//! 1. The label of the newest checkpoint, the synchronisation mark, the wear table; the headers of
//!    all superblocks.
//! 2. The map pages of the checkpoint.
//! 3. Every slot programmed after the cut is a *candidate*: slots of superblocks allocated since, and
//!    those past the frontiers noted at the cut. Superblocks that may have been incomplete on the
//!    medium at the power cut are verified slot by slot; slots that fail stay out, for ever: their
//!    superblock is verified again after each power cut until it is erased.
//! 4. Per unit, the highest sequence number among candidates and trim records wins; without any, the
//!    entry of the checkpoint stands. Equal numbers are copies of collection: the older place wins
//!    (that of the checkpoint is the oldest) if it is intact, so that an unfinished collection
//!    leaves a superblock without valid slots, and an unfinished erase loses nothing. A superblock
//!    all of whose winners have copies elsewhere gives way to them, so that a finished collection
//!    does, too.
//! 5. An entry that leads nowhere is reported and stays an error; it never becomes older data.
//!
//! Recovery writes nothing (but for a checkpoint if both areas of the trim log count), so it can be
//! cut and repeated at will.

use std::collections::BTreeMap;

use onefold_format::{
    CheckpointLabel, EpochLimit, HeadRecord, HeadState, SlotKind, SpareState, SuperblockKind,
    SyncMark, TRIM_RECORD_BYTES, checksum,
};
use onefold_nand::{Media, MediaError, Nand};
use onefold_units::convert::{index, u32_from};
use onefold_units::{Lpn, Nanos, Seq, SuperblockId};

use crate::ftl::Ftl;
use crate::layout::{ERASING_BIT, LOST, RETIRED_BIT, UNMAPPED};
use crate::remap::FoundLog;
use crate::superblock::State;
use crate::trim_log::TrimLog;
use crate::{FtlConfig, FtlError, OnLogDamage, RecoverError, RecoveryReport};

pub(crate) struct Recovery<M> {
    pub(crate) ftl: Ftl<M>,
    pub(crate) heads: Vec<Option<HeadRecord>>,
    pub(crate) mark: SyncMark,
    /// Winning sequence number by unit; 0 = the checkpoint's entry stands.
    pub(crate) best: Vec<u64>,
    /// Units that won with the older of two equal copies, and the place of the newer.
    pub(crate) copies: BTreeMap<u32, u32>,
    /// Numbers of atomic commands that power failed in: their records do not count.
    pub(crate) aborted: Vec<u64>,
    pub(crate) log: FoundLog,
    pub(crate) on_log_damage: OnLogDamage,
    pub(crate) report: RecoveryReport,
}

impl<M: Media> Ftl<M> {
    /// Rebuilds the FTL of a device from its medium. `bad_superblocks` is what [`Ftl::new`] got.
    ///
    /// # Errors
    /// The configuration does not fit the array, a page of the remap log is damaged, or the medium failed.
    pub fn recover(
        nand: Nand<M>,
        config: FtlConfig,
        bad_superblocks: u32,
    ) -> Result<(Self, RecoveryReport), RecoverError> {
        Self::recover_with(nand, config, bad_superblocks, OnLogDamage::Refuse)
    }

    /// The same with a choice about damaged pages of the remap log. Units that are given up are lost for
    /// good when this returns: the device recovers without that choice from then on.
    ///
    /// # Errors
    /// As [`Ftl::recover`]; no room for a checkpoint, if units are given up.
    pub fn recover_with(
        nand: Nand<M>,
        config: FtlConfig,
        bad_superblocks: u32,
        on_log_damage: OnLogDamage,
    ) -> Result<(Self, RecoveryReport), RecoverError> {
        let mut ftl = Self::blank(nand, &config)?;
        ftl.retire_factory_bad(bad_superblocks)?;
        let units = ftl.map.l2p.len();
        let mut recovery = Recovery {
            ftl,
            heads: Vec::new(),
            mark: SyncMark::default(),
            best: vec![0; units],
            copies: BTreeMap::new(),
            aborted: Vec::new(),
            log: FoundLog::default(),
            on_log_damage,
            report: RecoveryReport::default(),
        };
        recovery.read_nvram()?;
        recovery.read_commands()?;
        recovery.read_heads()?;
        recovery.read_log()?;
        recovery.load_checkpoint()?;
        recovery.apply_candidates()?;
        recovery.apply_trims()?;
        recovery.leave_drained();
        recovery.give_up();
        recovery.adopt_log();
        recovery.rebuild();
        let strays = recovery.strays();
        let Recovery { mut ftl, report, .. } = recovery;
        ftl.log_strays(&strays)?;
        if report.log_damage.is_some() {
            // From now on the checkpoint tells what is lost, and the damage is older than it.
            ftl.checkpoint_now(Nanos::ZERO)?;
        } else if ftl.trim_log.both_count() {
            match ftl.checkpoint_now(Nanos::ZERO) {
                // A worn-out device without room for it can still be read.
                Ok(()) | Err(FtlError::NoSpace) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // A die that has failed says so when it is used.
        let _ = ftl.grow_old();
        Ok((ftl, report))
    }
}

impl<M: Media> Recovery<M> {
    fn read_nvram(&mut self) -> Result<(), RecoverError> {
        let nvram = self.ftl.layout.nvram;
        let media = self.ftl.nand.media_mut();
        let mut mark = [0; SyncMark::BYTES];
        media.nvram_read(nvram.mark, &mut mark)?;
        self.mark = SyncMark::decode(&mark);
        let mut limit = [0; EpochLimit::BYTES];
        media.nvram_read(nvram.epoch_limit, &mut limit)?;
        let limit = EpochLimit::decode(&limit);
        let mut newest = CheckpointLabel::default();
        for offset in nvram.labels {
            let mut bytes = vec![0; onefold_units::convert::index64(nvram.label_bytes)];
            media.nvram_read(offset, &mut bytes)?;
            if let Some(label) = CheckpointLabel::decode(&bytes)
                && label.generation > newest.generation
            {
                newest = label;
            }
        }
        self.report.checkpoint = newest.generation;
        self.ftl.seq = newest.seq.raw();
        // No epoch is ever given out again, even if the superblock that had it is erased by now:
        // those below the mark count as whole, and others may be left in slots without header.
        self.ftl.alloc = newest.alloc.max(self.mark.epoch).max(limit.epoch).max(1);
        self.ftl.checkpoints.label = newest;
        let mut wear = vec![0; self.ftl.superblocks.len() * 4];
        media.nvram_read(nvram.wear, &mut wear)?;
        let (entries, _) = wear.as_chunks::<4>();
        for (block, entry) in self.ftl.superblocks.iter_mut().zip(entries) {
            let entry = u32::from_le_bytes(*entry);
            block.erases = entry & !(RETIRED_BIT | ERASING_BIT);
            if entry & ERASING_BIT != 0 {
                block.erasing = true;
            }
            if entry & RETIRED_BIT != 0 {
                block.state = State::Retired;
            }
        }
        Ok(())
    }

    fn read_heads(&mut self) -> Result<(), RecoverError> {
        for at in 0..u32_from(self.ftl.superblocks.len()) {
            let superblock = SuperblockId::new(at);
            let bytes = self.ftl.nand.media_mut().read_head(superblock)?;
            let head = HeadState::decode(&bytes, superblock, self.ftl.geometry_id);
            let clean = head == HeadState::Erased && self.is_blank(superblock)?;
            if !clean {
                self.ftl.nand.close_short(superblock);
                self.ftl.superblocks[superblock.index()].dirty = true;
            }
            let opened = match head {
                HeadState::Opened(head) => Some(head),
                HeadState::Erased | HeadState::Damaged => None,
            };
            if let Some(head) = opened {
                let block = &mut self.ftl.superblocks[superblock.index()];
                block.epoch = head.epoch;
                block.holds_log = head.kind == SuperblockKind::Log;
                block.erases = block.erases.max(head.erases);
                self.ftl.alloc = self.ftl.alloc.max(head.epoch + 1);
                self.ftl.seq = self.ftl.seq.max(head.seq.raw());
            }
            self.heads.push(opened);
        }
        Ok(())
    }

    /// Whether every slot of a superblock without header is erased: an erase may have been cut.
    fn is_blank(&mut self, superblock: SuperblockId) -> Result<bool, RecoverError> {
        let spares = self.ftl.nand.media_mut().read_spares(superblock)?;
        Ok(spares.iter().all(|spare| SpareState::decode(spare) == SpareState::Erased))
    }

    pub(crate) fn head(
        &self,
        superblock: SuperblockId,
        kind: SuperblockKind,
    ) -> Option<HeadRecord> {
        self.heads.get(superblock.index()).copied().flatten().filter(|head| head.kind == kind)
    }

    /// Step 2. A map page that is missing or damaged makes its units lost, unless a candidate wins.
    fn load_checkpoint(&mut self) -> Result<(), RecoverError> {
        let label = self.ftl.checkpoints.label.clone();
        if label.generation == 0 {
            return Ok(());
        }
        let entries = self.ftl.layout.entries_per_unit;
        self.ftl.map.l2p.fill(LOST);
        for superblock in label.superblocks {
            if self.head(superblock, SuperblockKind::Checkpoint).is_none() {
                continue;
            }
            let spares = self.ftl.nand.media_mut().read_spares(superblock)?;
            for (slot, spare) in (0..).zip(&spares) {
                let SpareState::Programmed(record) = SpareState::decode(spare) else { continue };
                let ours = record.kind == SlotKind::Map && record.seq == Seq::new(label.generation);
                if !ours {
                    continue;
                }
                let Some(bytes) = self.read_verified(superblock, slot, record.data_crc)? else {
                    continue;
                };
                let first = index(record.lpn.raw()) * index(entries);
                let (words, _) = bytes.as_chunks::<4>();
                let map = &mut self.ftl.map.l2p;
                for (lpn, word) in (first..map.len()).zip(words) {
                    map.set(lpn, u32::from_le_bytes(*word));
                }
            }
        }
        Ok(())
    }

    /// The data of a slot, if its checksum is right.
    pub(crate) fn read_verified(
        &mut self,
        superblock: SuperblockId,
        slot: u32,
        data_crc: u32,
    ) -> Result<Option<Vec<u8>>, RecoverError> {
        let mut bytes = vec![0; index(self.ftl.nand.geometry().unit_bytes())];
        let ppn = self.ftl.nand.geometry().ppn(superblock, slot);
        match self.ftl.nand.media_mut().read(ppn, &mut bytes) {
            Ok(_) => Ok((checksum(&bytes) == data_crc).then_some(bytes)),
            Err(MediaError::Unreadable) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn apply_trims(&mut self) -> Result<(), RecoverError> {
        let covered = self.ftl.checkpoints.label.seq;
        let mut used = [0; 2];
        let mut newest = (Seq::default(), 0);
        for (which, end) in used.iter_mut().enumerate() {
            let (offset, capacity) = self.ftl.trim_log.area(which);
            let mut bytes = vec![0; index(capacity) * TRIM_RECORD_BYTES];
            self.ftl.nand.media_mut().nvram_read(offset, &mut bytes)?;
            for (place, record) in (1..).zip(TrimLog::decode(&bytes)) {
                let Some(record) = record.filter(|record| record.seq > covered) else { continue };
                let aborted = self.aborted.contains(&record.seq.raw());
                *end = place;
                newest = newest.max((record.seq, which));
                self.ftl.seq = self.ftl.seq.max(record.seq.raw());
                self.report.trim_records += 1;
                if aborted {
                    continue;
                }
                self.unmap_before(record.seq, record.lpn, record.count);
            }
        }
        self.ftl.trim_log.resume(used, newest.1);
        Ok(())
    }

    fn unmap_before(&mut self, seq: Seq, lpn: Lpn, count: u32) {
        let range = lpn.index()..index(lpn.raw().saturating_add(count));
        let end = range.end.min(self.best.len());
        for lpn in range.start..end {
            if seq.raw() > self.best[lpn] {
                self.best[lpn] = seq.raw();
                self.ftl.map.l2p.set(lpn, UNMAPPED);
            }
        }
    }

    /// Rebuilds everything else from the map, and says what every superblock is.
    fn rebuild(&mut self) {
        let total = self.ftl.nand.geometry().total_slots();
        for lpn in 0..u32_from(self.ftl.map.l2p.len()) {
            let entry = self.ftl.map.l2p.get(index(lpn));
            if entry == UNMAPPED {
                continue;
            }
            let leads_somewhere = u64::from(entry) < total && self.accept(lpn, entry);
            if leads_somewhere {
                self.report.mapped_units += 1;
            } else {
                self.ftl.map.l2p.set(index(lpn), LOST);
                self.report.lost_units += 1;
            }
        }
        for at in 0..u32_from(self.ftl.superblocks.len()) {
            self.assign(SuperblockId::new(at));
        }
        for pool in 0..self.ftl.nand.geometry().pools() {
            self.ftl.judge_hunger(pool);
        }
    }

    /// Enters a mapping into the tables. `false` if its superblock holds no data any more (step 5).
    fn accept(&mut self, lpn: u32, entry: u32) -> bool {
        let ppn = onefold_units::Ppn::new(entry);
        let (superblock, slot) = self.ftl.nand.geometry().split(ppn);
        let Some(head) = self.head(superblock, SuperblockKind::Data) else { return false };
        // The checkpoint's entry, but the superblock was allocated anew: whatever the unit was, it
        // is not there.
        let label = &self.ftl.checkpoints.label;
        let from_checkpoint = self.best[index(lpn)] == 0;
        if from_checkpoint && head.epoch >= label.alloc {
            return false;
        }
        if self.ftl.remap.is_some() {
            self.accept_shared(lpn, ppn);
            return true;
        }
        if self.ftl.valid.get(superblock, slot) {
            return false;
        }
        let (pool, _) = self.ftl.place_in_pool(superblock);
        self.ftl.point(pool, superblock, slot, lpn);
        true
    }

    fn assign(&mut self, superblock: SuperblockId) {
        let (pool, _) = self.ftl.place_in_pool(superblock);
        let remap = self.ftl.remap.as_ref();
        let holds_log = remap.is_some_and(|remap| remap.superblocks.live[superblock.index()] > 0);
        let block = &mut self.ftl.superblocks[superblock.index()];
        let holds_checkpoint = self.ftl.checkpoints.label.superblocks.contains(&superblock);
        if block.valid > 0 {
            if block.state == State::Retired {
                block.failing = true;
            }
            self.ftl.make_candidate(pool, superblock);
        } else if holds_log {
            block.failing |= block.state == State::Retired;
            block.state = State::Log;
        } else if block.state == State::Retired {
            // Stays out of use.
        } else if holds_checkpoint {
            block.state = State::Checkpoint;
        } else {
            self.ftl.release(superblock);
        }
    }
}
