//! Carrying out what was decided: entries, map, copies, unmaps.

use onefold_format::{RemapEntry, SlotKind};
use onefold_nand::{At, Media};
use onefold_units::convert::{index, u32_from};
use onefold_units::{Cause, Lpn, Nanos, Ppn, SuperblockId};

use super::piece::{Action, Piece};
use super::request::{OVERLAPPING_COPIES_MAX, RemapError, RemapOptions, RemapOutcome, RemapRange};
use crate::FtlError;
use crate::frontier::Entry;
use crate::ftl::Ftl;
use crate::superblock::State;
use crate::unit::Unit;

impl<M: Media> Ftl<M> {
    /// Carries out what was decided, and reserved for.
    pub(crate) fn execute(
        &mut self,
        at: At,
        ranges: &[RemapRange],
        pieces: &[Piece],
        options: RemapOptions,
        slot: Option<usize>,
    ) -> Result<Nanos, FtlError> {
        self.seq += 1;
        let seq = self.seq;
        let kept = self.read_copies(at, ranges, pieces, options.atomic)?;
        self.keep_targets(pieces);
        if let Some(slot) = slot.filter(|_| options.atomic) {
            self.begin_command(slot, options.id.unwrap_or(0))?;
        }
        let shared = self.share_pieces(at, pieces, seq)?;
        let copied = self.copy_pieces(at, pieces, seq, kept.as_deref(), options.atomic)?;
        let runs = self.runs_to_unmap(ranges, pieces, options);
        if options.moves && M::STORES && !options.atomic {
            // Sources must not be gone while targets are not there.
            self.sync()?;
        }
        if has_copies(pieces) && !options.atomic {
            // A checkpoint may have been cut meanwhile: trim records up to its number do not count.
            self.seq += 1;
        }
        for (first, len) in runs {
            self.unmap_run(at, first, len)?;
        }
        Ok(shared.max(copied))
    }

    /// Reads what has to be copied, if targets of the command are among its sources, or if it must not
    /// fail half done.
    fn read_copies(
        &mut self,
        at: At,
        ranges: &[RemapRange],
        pieces: &[Piece],
        atomic: bool,
    ) -> Result<Option<Vec<u8>>, FtlError> {
        let copies = || pieces.iter().filter(|piece| piece.action == Action::Copy);
        let units = copies().map(|piece| index(piece.len)).sum::<usize>();
        if units == 0 || !(atomic || overlap(ranges)) {
            return Ok(None);
        }
        if units > OVERLAPPING_COPIES_MAX {
            return Err(RemapError::OverlappingCopies { units: u32_from(units) }.into());
        }
        let unit_bytes = self.nand.geometry().unit_bytes();
        let mut bytes = vec![0; if M::STORES { units * index(unit_bytes) } else { 0 }];
        let mut targets = bytes.chunks_exact_mut(index(unit_bytes));
        for lpn in copies().flat_map(Piece::sources) {
            let data = targets.next().unwrap_or_default();
            self.read(at, Lpn::new(lpn), unit_bytes, Cause::Fallback, data)?;
        }
        Ok(Some(bytes))
    }

    /// Maps targets to the slots of their sources. First the slots get their references, so that none
    /// is given up while another target of the command leaves it; then the entries are made durable;
    /// then the map changes.
    fn share_pieces(&mut self, at: At, pieces: &[Piece], seq: u64) -> Result<Nanos, FtlError> {
        let geometry = *self.nand.geometry();
        let runs = || pieces.iter().filter_map(|piece| piece.entry(&geometry, seq));
        for (superblock, entry) in runs() {
            self.log_run(superblock, entry)?;
        }
        let done = self.write_log(at.ready)?;
        for (superblock, entry) in runs() {
            self.map_run(superblock, &entry);
        }
        Ok(done)
    }

    /// Maps one run of units to slots of a superblock; room in the log was reserved.
    pub(crate) fn share_run(
        &mut self,
        ready: Nanos,
        superblock: SuperblockId,
        entry: RemapEntry,
    ) -> Result<Nanos, FtlError> {
        self.log_run(superblock, entry)?;
        let done = self.write_log(ready)?;
        self.map_run(superblock, &entry);
        Ok(done)
    }

    /// Gives slots the references of a run of units, and the log its entry.
    fn log_run(&mut self, superblock: SuperblockId, entry: RemapEntry) -> Result<(), FtlError> {
        let first = self.nand.geometry().ppn(superblock, entry.slot);
        let Some(remap) = &mut self.remap else { return Ok(()) };
        remap.refs.add_run(first, u32::from(entry.len));
        remap.stats.entries += 1;
        remap.stats.strided_entries += u64::from(entry.stride > 1);
        self.append_entry(superblock, entry)
    }

    /// Points a run of units at slots that have their references already.
    fn map_run(&mut self, superblock: SuperblockId, entry: &RemapEntry) {
        let collecting = self.superblocks[superblock.index()].state == State::Collecting;
        let first = self.nand.geometry().ppn(superblock, 0).raw();
        for (lpn, slot) in entry.units() {
            let ppn = Ppn::new(first + slot);
            let old = self.map.stored(lpn);
            if let Some(old) = old {
                self.end_mapping(lpn, old);
            }
            self.map.l2p.set(index(lpn), ppn.raw());
            if let Some(remap) = &mut self.remap {
                remap.units.set(lpn, false);
            }
            if collecting {
                self.note_referrer(lpn, ppn, entry.seq.raw());
            }
            if let Some(old) = old {
                self.invalidate(old);
            }
        }
    }

    /// Copies units that cannot be shared; `kept` holds their bytes if they were read before.
    fn copy_pieces(
        &mut self,
        at: At,
        pieces: &[Piece],
        seq: u64,
        kept: Option<&[u8]>,
        atomic: bool,
    ) -> Result<Nanos, FtlError> {
        let unit_bytes = self.nand.geometry().unit_bytes();
        let pages = self.nand.geometry().pages_per_unit();
        let entry = Entry { kind: SlotKind::Data, cause: Cause::Fallback, pages };
        let mut scratch = vec![0; if M::STORES { index(unit_bytes) } else { 0 }];
        let mut kept = kept.map(|bytes| bytes.chunks_exact(index(unit_bytes)));
        let mut done = at.ready;
        for piece in pieces.iter().filter(|piece| piece.action == Action::Copy) {
            for (lpn, src) in piece.targets().zip(piece.sources()) {
                let data = if let Some(kept) = &mut kept {
                    kept.next().unwrap_or_default()
                } else {
                    self.read(at, Lpn::new(src), unit_bytes, Cause::Fallback, &mut scratch)?;
                    &scratch
                };
                let unit = Unit { lpn, seq, entry, data, moves_from: None };
                let grant = if atomic {
                    let pool = self.turn;
                    self.append(at, pool, pool * self.layout.frontiers, unit)?
                } else {
                    self.put(at, unit, 0)?
                };
                done = done.max(grant.done);
            }
        }
        if has_copies(pieces) {
            // Durable at completion, as remapped units are.
            done = done.max(self.program_all_staged(at)?);
        }
        Ok(done)
    }

    /// Unmaps a run of units as part of the running command.
    fn unmap_run(&mut self, at: At, first: u32, len: u32) -> Result<(), FtlError> {
        let Some((first, count)) = self.mapped_within(first, first + len) else { return Ok(()) };
        if self.trim_log.is_full() {
            // The checkpoint covers the command's number: what it did not unmap yet needs another.
            self.checkpoint_now(at.now)?;
            self.seq += 1;
        }
        self.log_trim(first, count)?;
        for lpn in first..first + count {
            self.unmap(lpn);
        }
        Ok(())
    }

    /// The next flush does not unmap what becomes a target now.
    fn keep_targets(&mut self, pieces: &[Piece]) {
        if self.moving.is_empty() {
            return;
        }
        let done = pieces.iter().filter(|piece| piece.action != Action::Skip);
        for lpn in done.flat_map(Piece::targets) {
            self.moving.remove(&lpn);
        }
    }

    /// Sources that the next flush unmaps, unless they are targets as well.
    pub(crate) fn note_moving(&mut self, pieces: &[Piece], options: RemapOptions) {
        if options.moves_on_flush {
            let done = pieces.iter().filter(|piece| piece.action != Action::Skip);
            self.moving.extend(done.flat_map(Piece::sources));
            self.keep_targets(pieces);
        }
    }

    /// A flush is complete: what was moved away on condition of it is unmapped.
    pub(crate) fn unmap_moved(&mut self, at: At) -> Result<(), FtlError> {
        let moving = std::mem::take(&mut self.moving);
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for lpn in moving {
            match runs.last_mut() {
                Some((first, len)) if *first + *len == lpn => *len += 1,
                _ => runs.push((lpn, 1)),
            }
        }
        for (first, len) in runs {
            self.trim(at, Lpn::new(first), len)?;
        }
        Ok(())
    }

    pub(crate) fn count_outcomes(
        &mut self,
        ranges: &[RemapRange],
        pieces: &[Piece],
    ) -> Vec<RemapOutcome> {
        let mut outcomes = vec![RemapOutcome::default(); ranges.len()];
        for piece in pieces {
            let Some(outcome) = outcomes.get_mut(piece.range) else { continue };
            match piece.action {
                Action::Copy => outcome.copied += piece.len,
                Action::Skip => outcome.skipped += piece.len,
                Action::Keep | Action::Share(_) | Action::Unmap => outcome.remapped += piece.len,
            }
        }
        let stats = self.remap.as_mut().map_or(&mut self.copied, |remap| &mut remap.stats);
        for outcome in &outcomes {
            stats.remapped += u64::from(outcome.remapped);
            stats.copied += u64::from(outcome.copied);
            stats.skipped += u64::from(outcome.skipped);
        }
        outcomes
    }
}

pub(crate) fn has_copies(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| piece.action == Action::Copy)
}

/// Whether a target of any range is a source of any.
pub(crate) fn overlap(ranges: &[RemapRange]) -> bool {
    let meets = |a: Lpn, a_len: u32, b: Lpn, b_len: u32| {
        a.raw() < b.raw() + b_len && b.raw() < a.raw() + a_len
    };
    ranges.iter().any(|one| ranges.iter().any(|two| meets(one.dst, one.len, two.src, two.len)))
}
