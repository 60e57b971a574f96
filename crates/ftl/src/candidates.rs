//! Which slots may hold the content of a unit, and which of them wins: steps 3 and 4 of recovery.

use onefold_format::{SlotKind, SpareState, SuperblockKind, decode_tail};
use onefold_nand::{Media, MediaError};
use onefold_units::SuperblockId;
use onefold_units::convert::{index, low32};

use crate::RecoverError;
use crate::recovery::Recovery;

/// One slot that may hold the content of a unit.
struct Candidate {
    lpn: u32,
    seq: u64,
    slot: u32,
}

impl<M: Media> Recovery<M> {
    /// Steps 3 and 4.
    pub(crate) fn apply_candidates(&mut self) -> Result<(), RecoverError> {
        let mut order: Vec<(u64, u32)> = (0..)
            .zip(&self.heads)
            .filter_map(|(at, head)| {
                let head = head.filter(|head| head.kind == SuperblockKind::Data)?;
                Some((head.epoch, at))
            })
            .collect();
        order.sort_unstable();
        for (epoch, at) in order {
            let superblock = SuperblockId::new(at);
            let first = self.first_candidate(superblock, epoch);
            if let Some(first) = first {
                self.report.scanned_superblocks += 1;
                for candidate in self.candidates(superblock, epoch, first)? {
                    self.consider(superblock, &candidate)?;
                }
            }
            let whole = epoch < self.mark.epoch;
            for (lpn, seq, slot) in self.log_candidates(superblock, first, whole)? {
                self.consider(superblock, &Candidate { lpn, seq, slot })?;
            }
        }
        Ok(())
    }

    /// First slot of a superblock that was programmed after the cut, if any.
    fn first_candidate(&self, superblock: SuperblockId, epoch: u64) -> Option<u32> {
        let label = &self.ftl.checkpoints.label;
        if label.generation == 0 || epoch >= label.alloc {
            return Some(0);
        }
        let frontier = label.frontiers.iter().find(|cut| cut.superblock == superblock);
        frontier.map(|cut| cut.slots)
    }

    fn consider(
        &mut self,
        superblock: SuperblockId,
        candidate: &Candidate,
    ) -> Result<(), RecoverError> {
        self.report.candidates += 1;
        if self.aborted.contains(&candidate.seq) {
            return Ok(());
        }
        let lpn = index(candidate.lpn);
        let Some(&best) = self.best.get(lpn) else {
            self.report.torn_slots += 1;
            return Ok(());
        };
        if candidate.seq < best {
            return Ok(());
        }
        // Only an intact older copy wins: its superblock may be half erased.
        let is_copy = (best == 0 || best == candidate.seq)
            && self.holds(self.ftl.map.l2p.get(lpn), candidate, best == 0)?;
        self.best[lpn] = candidate.seq;
        let ppn = self.ftl.nand.geometry().ppn(superblock, candidate.slot);
        if is_copy {
            self.copies.insert(candidate.lpn, ppn.raw());
        } else {
            self.copies.remove(&candidate.lpn);
            self.ftl.map.l2p.set(lpn, ppn.raw());
        }
        Ok(())
    }

    /// A superblock whose current content has copies elsewhere, all of it, was about to be erased or
    /// half is: the copies take over, as if the erase had been completed.
    pub(crate) fn leave_drained(&mut self) {
        let geometry = *self.ftl.nand.geometry();
        let total = geometry.total_slots();
        let place = |entry: u32| geometry.split(onefold_units::Ppn::new(entry)).0.index();
        let mut uncopied = vec![0_u32; self.ftl.superblocks.len()];
        for (lpn, entry) in (0..).zip(self.ftl.map.l2p.iter()) {
            if u64::from(entry) < total && !self.copies.contains_key(&lpn) {
                uncopied[place(entry)] += 1;
            }
        }
        for (lpn, copy) in &self.copies {
            let entry = self.ftl.map.l2p.get(index(*lpn));
            if u64::from(entry) < total && uncopied[place(entry)] == 0 {
                self.ftl.map.l2p.set(index(*lpn), *copy);
            }
        }
    }

    /// Whether the map entry `entry` leads to an intact slot with the content of `candidate`. An
    /// entry `from_checkpoint` into a slot that is a candidate itself does not count.
    fn holds(
        &mut self,
        entry: u32,
        candidate: &Candidate,
        from_checkpoint: bool,
    ) -> Result<bool, RecoverError> {
        if u64::from(entry) >= self.ftl.nand.geometry().total_slots() {
            return Ok(false);
        }
        let ppn = onefold_units::Ppn::new(entry);
        let (superblock, slot) = self.ftl.nand.geometry().split(ppn);
        let Some(head) = self.head(superblock, SuperblockKind::Data) else { return Ok(false) };
        let first = self.first_candidate(superblock, head.epoch);
        if from_checkpoint && first.is_some_and(|first| slot >= first) {
            return Ok(false);
        }
        if !self.is_whole(superblock, slot)? {
            return Ok(false);
        }
        let (lpn, seq) = (candidate.lpn, candidate.seq);
        if self.log.groups.get(superblock.index()).is_some_and(|group| group.maps(lpn, slot, seq)) {
            return Ok(true);
        }
        let spare = self.ftl.nand.media_mut().read(ppn, &mut [])?;
        let SpareState::Programmed(record) = SpareState::decode(&spare) else { return Ok(false) };
        Ok((record.lpn.raw(), record.seq.raw()) == (lpn, seq))
    }

    fn candidates(
        &mut self,
        superblock: SuperblockId,
        epoch: u64,
        first: u32,
    ) -> Result<Vec<Candidate>, RecoverError> {
        let whole = epoch < self.mark.epoch;
        if whole
            && self.ftl.config.metadata_pages
            && let Some(candidates) = self.tail_candidates(superblock, first)?
        {
            return Ok(candidates);
        }
        let spares = self.ftl.nand.media_mut().read_spares(superblock)?;
        let mut candidates = Vec::new();
        let mut hole = false;
        for (slot, spare) in (0..).zip(&spares).skip(index(first)) {
            let record = match SpareState::decode(spare) {
                SpareState::Programmed(record) if record.epoch_low == low32(epoch) => record,
                state => {
                    self.report.torn_slots += u64::from(state == SpareState::Damaged);
                    hole = true;
                    continue;
                }
            };
            // The tail pages may name the slots of the hole: they are never to be believed.
            self.ftl.superblocks[superblock.index()].unverified |= hole;
            if matches!(record.kind, SlotKind::Tail | SlotKind::Filler | SlotKind::Map) {
                continue;
            }
            // A number that was given out is never given out again, whatever became of its slot.
            self.ftl.seq = self.ftl.seq.max(record.seq.raw());
            let carries = record.kind == SlotKind::Data && record.data_crc != 0;
            let verify = !whole && carries;
            if verify && self.read_verified(superblock, slot, record.data_crc)?.is_none() {
                self.report.torn_slots += 1;
                self.ftl.superblocks[superblock.index()].unverified = true;
                continue;
            }
            candidates.push(Candidate { lpn: record.lpn.raw(), seq: record.seq.raw(), slot });
        }
        Ok(candidates)
    }

    /// The candidates of a superblock from its tail pages. `None` if they are not whole.
    fn tail_candidates(
        &mut self,
        superblock: SuperblockId,
        first: u32,
    ) -> Result<Option<Vec<Candidate>>, RecoverError> {
        let geometry = *self.ftl.nand.geometry();
        let (begin, end) = (self.ftl.layout.data_begin, self.ftl.layout.data_end);
        let mut candidates = Vec::new();
        let mut slot = begin;
        let mut tail_slot = end;
        let mut unit = vec![0; index(geometry.unit_bytes())];
        while slot < end {
            if tail_slot >= geometry.slots() {
                return Ok(None);
            }
            let ppn = geometry.ppn(superblock, tail_slot);
            let spare = match self.ftl.nand.media_mut().read(ppn, &mut unit) {
                Ok(spare) => spare,
                Err(MediaError::Unreadable) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let epoch = self.ftl.superblocks[superblock.index()].epoch;
            let tail = match SpareState::decode(&spare) {
                SpareState::Programmed(record) => {
                    record.kind == SlotKind::Tail && record.epoch_low == low32(epoch)
                }
                SpareState::Erased | SpareState::Damaged => false,
            };
            let Some(records) = tail.then(|| decode_tail(&unit)).flatten() else {
                return Ok(None);
            };
            if records.is_empty() {
                return Ok(None);
            }
            for record in records.into_iter().take(index(end - slot)) {
                let data = matches!(record.kind, Some(SlotKind::Data | SlotKind::Lost));
                self.ftl.seq = self.ftl.seq.max(record.seq.raw());
                if data && slot >= first {
                    let (lpn, seq) = (record.lpn.raw(), record.seq.raw());
                    candidates.push(Candidate { lpn, seq, slot });
                }
                slot += 1;
            }
            tail_slot += 1;
        }
        Ok(Some(candidates))
    }
}
