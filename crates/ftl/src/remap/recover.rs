//! What recovery takes from the remap log (remap.md section 8).

use std::collections::BTreeSet;

use onefold_format::{
    RemapEntry, SlotKind, SpareState, SuperblockKind, decode_segment, unpack_log_page,
};
use onefold_nand::{Media, MediaError, Spare};
use onefold_units::convert::{index, low32, u32_from};
use onefold_units::{Lpn, Ppn, Seq, SuperblockId};

use super::found::FoundGroup;
use super::groups::{LogPage, Segment};
use super::room::For;
use crate::ftl::Ftl;
use crate::layout::{LOST, NO_OWNER};
use crate::recovery::Recovery;
use crate::{OnLogDamage, RecoverError};

impl<M: Media> Recovery<M> {
    /// Reads segments and log pages. Those of superblocks that were erased since do not count.
    pub(crate) fn read_log(&mut self) -> Result<(), RecoverError> {
        let Some(remap) = &self.ftl.remap else { return self.refuse_log() };
        remap.config.check_storable()?;
        self.log.groups = vec![FoundGroup::default(); self.heads.len()];
        self.read_segments()?;
        for at in 0..u32_from(self.heads.len()) {
            self.read_log_pages(SuperblockId::new(at))?;
        }
        for group in &mut self.log.groups {
            group.finish();
        }
        match (self.on_log_damage, self.report.log_damage) {
            (OnLogDamage::Refuse, Some(damage)) => Err(RecoverError::DamagedLog(damage)),
            _ => Ok(()),
        }
    }

    /// Without remapping nobody knows what log pages are about.
    fn refuse_log(&self) -> Result<(), RecoverError> {
        let log = self.heads.iter().flatten().find(|head| head.kind == SuperblockKind::Log);
        log.map_or(Ok(()), |head| {
            Err(RecoverError::ForeignLog { superblock: head.superblock.raw() })
        })
    }

    fn read_segments(&mut self) -> Result<(), RecoverError> {
        let Some(remap) = &self.ftl.remap else { return Ok(()) };
        let (total, bytes) = (remap.segments.total, remap.config.segment_bytes);
        let mut image = vec![0; index(bytes)];
        for id in 0..total {
            let offset = self.ftl.layout.nvram.segment(id);
            self.ftl.nand.media_mut().nvram_read(offset, &mut image)?;
            self.report.nvram_bytes += u64::from(bytes);
            let Some((head, entries)) = decode_segment(&image) else { continue };
            // Numbers that were given out are never given out again.
            self.ftl.alloc = self.ftl.alloc.max(head.life + 1);
            self.note_numbers(&entries);
            if !self.is_current(head.superblock, head.epoch) {
                continue;
            }
            self.report.log_entries += u64::from(u32_from(entries.len()));
            let written = Some(u32_from(entries.len()));
            let segment = Segment { id, life: head.life, entries, written, sealed: true };
            self.log.groups[head.superblock.index()].segments.push(segment);
        }
        Ok(())
    }

    /// Notes the numbers that were given out.
    fn note_numbers(&mut self, entries: &[RemapEntry]) {
        let newest = entries.iter().map(|entry| entry.seq.raw()).max();
        self.ftl.seq = self.ftl.seq.max(newest.unwrap_or(0));
    }

    /// Reads the command ring.
    pub(crate) fn read_commands(&mut self) -> Result<(), RecoverError> {
        if !self.ftl.config.remap.scheme.is_local() {
            return Ok(());
        }
        let found = self.ftl.read_ring()?;
        let newest = found.iter().flatten().map(|slot| slot.seq.raw()).max();
        self.ftl.seq = self.ftl.seq.max(newest.unwrap_or(0));
        let covered = self.ftl.checkpoints.label.seq;
        self.aborted = self.ftl.ring.resume(&found, covered);
        self.report.aborted_commands = self.aborted.len().try_into().unwrap_or(u64::MAX);
        Ok(())
    }

    fn is_current(&self, superblock: SuperblockId, epoch: u64) -> bool {
        self.head(superblock, SuperblockKind::Data).is_some_and(|head| head.epoch == epoch)
    }

    fn read_log_pages(&mut self, log: SuperblockId) -> Result<(), RecoverError> {
        let Some(head) = self.head(log, SuperblockKind::Log) else { return Ok(()) };
        if self.ftl.superblocks[log.index()].erasing {
            // None of its pages counts, and power may have failed in its erase.
            return Ok(());
        }
        let spares = self.ftl.nand.media_mut().read_spares(log)?;
        let page_of = |spare: &Spare| match SpareState::decode(spare) {
            SpareState::Programmed(record) if record.epoch_low == low32(head.epoch) => Some(record),
            _ => None,
        };
        let pages = spares.iter().filter_map(page_of);
        let first =
            pages.filter(|record| record.kind == SlotKind::Log).map(|record| record.seq).next();
        // What is before an intact page was programmed before it.
        let mut programmed_by = None;
        for (slot, spare) in spares.iter().enumerate().rev() {
            let slot = u32_from(slot);
            let record = match SpareState::decode(spare) {
                SpareState::Programmed(record) if record.epoch_low == low32(head.epoch) => record,
                SpareState::Erased => continue,
                SpareState::Damaged | SpareState::Programmed(_) => {
                    let before = self.was_whole(&head, slot, programmed_by, first);
                    self.judge_damage(log, slot, before);
                    continue;
                }
            };
            if record.kind != SlotKind::Log {
                continue;
            }
            programmed_by = Some(record.seq);
            self.ftl.seq = self.ftl.seq.max(record.seq.raw());
            self.report.log_pages += 1;
            let unit = self.read_verified(log, slot, record.data_crc)?;
            let Some((page, entries)) = unit.and_then(|unit| unpack_log_page(&unit)) else {
                let about = SuperblockId::new(record.lpn.raw());
                let before = self.was_whole(&head, slot, programmed_by, first);
                let before = before.filter(|_| self.is_used_since(about, record.seq));
                self.judge_damage(log, slot, before);
                continue;
            };
            self.note_numbers(&entries);
            if self.is_current(page.superblock, page.epoch) {
                self.report.log_entries += u64::from(u32_from(entries.len()));
                let ppn = self.ftl.nand.geometry().ppn(log, slot);
                // The order of writing: superblocks as they were taken, slots ascending.
                let written = head.epoch << 32 | u64::from(slot);
                let group = &mut self.log.groups[page.superblock.index()];
                group.pages.push((written, LogPage { ppn, entries }));
            }
        }
        Ok(())
    }

    /// The entries of a superblock that may be newer than the checkpoint: of changes since, or about
    /// slots programmed since.
    pub(crate) fn log_candidates(
        &mut self,
        superblock: SuperblockId,
        first: Option<u32>,
        whole: bool,
    ) -> Result<Vec<(u32, u64, u32)>, RecoverError> {
        let covered = self.ftl.checkpoints.label.seq;
        let Some(group) = self.log.groups.get(superblock.index()) else { return Ok(Vec::new()) };
        let mut candidates = Vec::new();
        for entry in group.entries() {
            for (lpn, slot) in entry.units() {
                if entry.seq > covered || first.is_some_and(|first| slot >= first) {
                    candidates.push((lpn, entry.seq.raw(), slot));
                }
            }
        }
        if whole {
            return Ok(candidates);
        }
        // The slots may not have reached the medium.
        let mut kept = Vec::new();
        for candidate in candidates {
            if self.is_whole(superblock, candidate.2)? {
                kept.push(candidate);
            } else {
                // Never to be believed, as with slots themselves.
                self.ftl.superblocks[superblock.index()].unverified = true;
            }
        }
        Ok(kept)
    }

    /// Whether a slot is programmed and its data is what it was.
    pub(crate) fn is_whole(
        &mut self,
        superblock: SuperblockId,
        slot: u32,
    ) -> Result<bool, RecoverError> {
        let Some(head) = self.head(superblock, SuperblockKind::Data) else { return Ok(false) };
        if slot >= self.ftl.nand.geometry().slots() {
            return Ok(false);
        }
        let ppn = self.ftl.nand.geometry().ppn(superblock, slot);
        let spare = match self.ftl.nand.media_mut().read(ppn, &mut []) {
            Ok(spare) => spare,
            Err(MediaError::Unreadable) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let SpareState::Programmed(record) = SpareState::decode(&spare) else { return Ok(false) };
        let holds = matches!(record.kind, SlotKind::Data | SlotKind::Lost)
            && record.epoch_low == low32(head.epoch);
        let carries = record.kind == SlotKind::Data && record.data_crc != 0;
        Ok(holds && (!carries || self.read_verified(superblock, slot, record.data_crc)?.is_some()))
    }

    /// Finds out which units are mapped by entries, and adopts the groups.
    pub(crate) fn adopt_log(&mut self) {
        if self.ftl.remap.is_none() {
            return;
        }
        let mut newest = vec![0_u64; self.ftl.map.l2p.len()];
        let groups = std::mem::take(&mut self.log.groups);
        for (at, group) in (0..).zip(&groups) {
            let first_ppn = self.ftl.nand.geometry().ppn(SuperblockId::new(at), 0).raw();
            for entry in group.entries() {
                for (lpn, slot) in entry.units() {
                    let lpn = index(lpn);
                    if self.ftl.map.l2p.find(lpn) == Some(first_ppn + slot) {
                        newest[lpn] = newest[lpn].max(entry.seq.raw());
                    }
                }
            }
        }
        for (at, group) in (0..).zip(groups) {
            self.adopt_group(SuperblockId::new(at), group, &newest);
        }
        self.adopt_segments();
    }

    /// Takes over the pages and segments that something live is in. What was rewritten is still there in its
    /// old places, too: the newest counts, and those places are free.
    fn adopt_group(&mut self, superblock: SuperblockId, group: FoundGroup, newest: &[u64]) {
        let mut pages = Vec::new();
        for (_, page) in group.pages.into_iter().rev() {
            let live = self.adopt_entries(superblock, &page.entries, true, newest);
            if live > 0 {
                pages.push((page, live));
            }
        }
        let mut segments = Vec::new();
        for segment in group.segments.into_iter().rev() {
            let live = self.adopt_entries(superblock, &segment.entries, false, newest);
            if live > 0 {
                segments.push((segment, live));
            }
        }
        let geometry = *self.ftl.nand.geometry();
        let Some(remap) = &mut self.ftl.remap else { return };
        let group = &mut remap.groups[superblock.index()];
        for (page, live) in pages.into_iter().rev() {
            let (log, _) = geometry.split(page.ppn);
            group.push_page(page);
            group.flash.live += live;
            remap.superblocks.live[log.index()] += 1;
        }
        remap.change(superblock, |group| {
            for (segment, live) in segments.into_iter().rev() {
                group.restore_segment(segment, live);
            }
        });
    }

    /// Marks the units that entries map and that no newer part of the log maps, and counts them.
    fn adopt_entries(
        &mut self,
        superblock: SuperblockId,
        entries: &[RemapEntry],
        in_flash: bool,
        newest: &[u64],
    ) -> u32 {
        let first_ppn = self.ftl.nand.geometry().ppn(superblock, 0).raw();
        let Some(remap) = &mut self.ftl.remap else { return 0 };
        let mut live = 0;
        for entry in entries {
            for (lpn, slot) in entry.units() {
                let mapped = self.ftl.map.l2p.find(index(lpn)) == Some(first_ppn + slot);
                let counts = newest.get(index(lpn)) == Some(&entry.seq.raw());
                if mapped && counts && !remap.units.has(lpn) {
                    remap.units.set(lpn, in_flash);
                    live += 1;
                }
            }
        }
        live
    }

    /// Says which segments and log superblocks are in use.
    fn adopt_segments(&mut self) {
        let Some(remap) = &mut self.ftl.remap else { return };
        let segments = remap.groups.iter().flat_map(|group| &group.segments);
        let used: BTreeSet<u32> = segments.map(|segment| segment.id).collect();
        remap.segments.free.retain(|id| !used.contains(id));
        // If only a process died, what replaced their entries may not be durable yet.
        remap.segments.waiting = std::mem::take(&mut remap.segments.free);
        let live = remap.superblocks.live.iter().enumerate().filter(|(_, pages)| **pages > 0);
        remap.superblocks.closed = live.map(|(at, _)| SuperblockId::new(u32_from(at))).collect();
    }

    /// Enters a mapping to a slot that others may map to as well. A second unit without an entry is a
    /// stray.
    pub(crate) fn accept_shared(&mut self, lpn: u32, ppn: Ppn) {
        let (superblock, slot) = self.ftl.nand.geometry().split(ppn);
        let (pool, _) = self.ftl.place_in_pool(superblock);
        let Some(remap) = &self.ftl.remap else { return };
        let by_entry = remap.units.has(lpn);
        if !self.ftl.valid.get(superblock, slot) {
            let owner = if by_entry { NO_OWNER } else { lpn };
            self.ftl.point(pool, superblock, slot, owner);
            if !by_entry {
                return;
            }
        } else if !by_entry {
            let owners = &mut self.ftl.map.p2l;
            if owners.get(ppn.index()) == NO_OWNER {
                owners.set(ppn.index(), lpn);
            } else {
                self.log.strays.push(lpn);
            }
        }
        if let Some(remap) = &mut self.ftl.remap {
            remap.refs.add(ppn);
        }
    }

    /// Units whose entry was in a damaged part of the log, and whose mapping the checkpoint has.
    pub(crate) fn strays(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.log.strays)
    }
}

impl<M: Media> Ftl<M> {
    /// Gives units entries again whose own were damaged. Which of those that map to a slot owns it is
    /// in the spare area.
    pub(crate) fn log_strays(&mut self, strays: &[u32]) -> Result<(), RecoverError> {
        for &lpn in strays {
            let Some(ppn) = self.map.stored(lpn) else { continue };
            let owner = self.map.p2l.get(ppn.index());
            let written =
                match self.nand.media_mut().read(ppn, &mut []).map(|s| SpareState::decode(&s)) {
                    Ok(SpareState::Programmed(record)) => record.lpn.raw(),
                    _ => owner,
                };
            self.map.p2l.set(ppn.index(), written);
            let stray = if written == lpn { owner } else { lpn };
            let (superblock, slot) = self.nand.geometry().split(ppn);
            let needs = [(superblock, 1)];
            if !self.reserve_log(onefold_units::Nanos::ZERO, &needs, For::Host)? {
                self.unmap(stray);
                self.map.l2p.set(index(stray), LOST);
                continue;
            }
            self.seq += 1;
            let (seq, target) = (Seq::new(self.seq), Lpn::new(stray));
            self.append_entry(superblock, RemapEntry::single(seq, target, slot))?;
            if let Some(remap) = &mut self.remap {
                remap.units.set(stray, false);
            }
            self.write_log(onefold_units::Nanos::ZERO)?;
        }
        Ok(())
    }
}
