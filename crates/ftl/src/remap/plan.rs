//! Deciding what a remap does with every unit, before anything changes.

use onefold_nand::{At, Media};
use onefold_units::convert::{index, u32_from};
use onefold_units::{Cause, Lpn, Ppn};

use super::piece::{Action, Piece};
use super::request::{RemapError, RemapOptions, RemapRange};
use super::room::{For, Needs};
use crate::FtlError;
use crate::ftl::Ftl;
use crate::layout::{LOST, UNMAPPED};

impl<M: Media> Ftl<M> {
    /// Decides what to do with every unit and reserves the log for it. Making room may move slots, so
    /// it is decided again until nothing moved. `false`: the log has no room for all of it.
    pub(crate) fn resolve_reserved(
        &mut self,
        at: At,
        ranges: &[RemapRange],
        options: RemapOptions,
    ) -> Result<(Vec<Piece>, bool), FtlError> {
        const ATTEMPTS: u32 = 8;
        for _ in 0..ATTEMPTS {
            let pieces = self.resolve(at, ranges, options)?;
            let moved = self.relocations();
            if options.atomic {
                let trims = u32_from(self.runs_to_unmap(ranges, &pieces, options).len());
                if !self.trim_log.has_room(trims) {
                    self.checkpoint_now(at.now)?;
                }
            }
            let needs = self.needs_of(&pieces);
            let reserved = needs.is_empty() || self.reserve_log(at.now, needs.list(), For::Host)?;
            self.keep_needs(needs);
            if self.relocations() == moved {
                return Ok((pieces, reserved));
            }
        }
        Ok((self.resolve(at, ranges, options)?, false))
    }

    pub(crate) fn relocations(&self) -> u64 {
        self.remap.as_ref().map_or(0, |remap| remap.relocations)
    }

    /// Decides what to do with every unit.
    fn resolve(
        &mut self,
        at: At,
        ranges: &[RemapRange],
        options: RemapOptions,
    ) -> Result<Vec<Piece>, FtlError> {
        std::hint::black_box(self.touch_ranges(ranges));
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        let mut runs = self.remap.as_mut().map(|remap| std::mem::take(&mut remap.runs));
        let mut resolved = Ok(());
        for (number, range) in ranges.iter().enumerate() {
            let runs = runs.as_deref_mut().unwrap_or_default();
            resolved = self.resolve_range(at, number, *range, options, &mut pieces, runs);
            if resolved.is_err() {
                break;
            }
        }
        if let (Some(remap), Some(runs)) = (&mut self.remap, runs) {
            remap.runs = runs;
        }
        resolved.map(|()| pieces)
    }

    /// Decides what to do with every unit of one range. `runs` has the last piece about each superblock,
    /// as far as there is one: neighbouring units may lie on all dies in turn, so several runs grow at
    /// the same time. What is left in it from other ranges does no harm, since a piece tells by itself
    /// whether it goes on with a unit.
    fn resolve_range(
        &mut self,
        at: At,
        number: usize,
        range: RemapRange,
        options: RemapOptions,
        pieces: &mut Vec<Piece>,
        runs: &mut [u32],
    ) -> Result<(), FtlError> {
        let begin = pieces.len();
        let (geometry, run_max) = (*self.nand.geometry(), self.config.remap.run_max());
        for n in 0..range.len {
            let (dst, src) = (range.dst.raw() + n, range.src.raw() + n);
            let action = self.action(at, dst, src, options)?;
            if let Action::Share(ppn) = action {
                if range.len > 1 {
                    let (superblock, slot) = geometry.split(ppn);
                    let run = &mut runs[superblock.index()];
                    if index(*run) >= begin
                        && slot > 0
                        && let Some(piece) = pieces.get_mut(index(*run))
                        && piece.takes_shared(dst, ppn, run_max)
                    {
                        continue;
                    }
                    *run = u32_from(pieces.len());
                }
            } else if pieces.len() > begin
                && let Some(last) = pieces.last_mut()
                && last.takes_next(dst, action)
            {
                continue;
            }
            pieces.push(Piece { range: number, dst, src, len: 1, stride: 1, action });
        }
        Ok(())
    }

    /// Loads what scattered units of a command will need, all of one kind at a time: the loads do not
    /// wait for each other then. Returns a number that depends on them, so that they happen.
    fn touch_ranges(&self, ranges: &[RemapRange]) -> u32 {
        let Some(remap) = &self.remap else { return 0 };
        let units = || ranges.iter().flat_map(|range| [range.dst.raw(), range.src.raw()]);
        let mut sum = units().fold(0, |sum: u32, lpn| sum ^ self.map.l2p.get(index(lpn)));
        for range in ranges {
            sum ^= u32::from(remap.units.has(range.dst.raw()));
        }
        for ppn in units().filter_map(|lpn| self.map.stored(lpn)) {
            sum ^= remap.refs.get(ppn);
        }
        for old in ranges.iter().filter_map(|range| self.map.stored(range.dst.raw())) {
            let (superblock, slot) = self.nand.geometry().split(old);
            sum ^= u32::from(self.valid.get(superblock, slot));
        }
        sum
    }

    fn action(
        &mut self,
        at: At,
        dst: u32,
        src: u32,
        options: RemapOptions,
    ) -> Result<Action, FtlError> {
        let (to, from) = (self.map.l2p.get(index(dst)), self.map.l2p.get(index(src)));
        if from == LOST {
            return Err(RemapError::LostSource { lpn: src }.into());
        }
        if to == from {
            return Ok(Action::Keep);
        }
        if options.verify_equal && !self.are_equal(at, dst, src)? {
            return Ok(Action::Skip);
        }
        if from == UNMAPPED {
            return Ok(Action::Unmap);
        }
        let instead = if options.no_fallback { Action::Skip } else { Action::Copy };
        let Some(remap) = &self.remap else { return Ok(instead) };
        // What the source gives up counts: moving a unit adds no reference (remap.md, H19).
        let max = remap.config.max_refs;
        let refs = remap.refs.get(Ppn::new(from)) + u32::from(!options.moves);
        Ok(if max > 0 && refs > max { instead } else { Action::Share(Ppn::new(from)) })
    }

    /// Whether two units hold the same bytes. Without bytes nobody knows, and nothing is equal.
    fn are_equal(&mut self, at: At, a: u32, b: u32) -> Result<bool, FtlError> {
        let bytes = self.nand.geometry().unit_bytes();
        let mut contents = [vec![0; index(bytes)], vec![0; index(bytes)]];
        for (lpn, data) in [a, b].into_iter().zip(&mut contents) {
            self.read(at, Lpn::new(lpn), bytes, Cause::User, data)?;
        }
        Ok(M::STORES && contents[0] == contents[1])
    }

    /// Entries by superblock that the pieces need.
    fn needs_of(&mut self, pieces: &[Piece]) -> Needs {
        let geometry = *self.nand.geometry();
        let needs = self.remap.as_mut().map(|remap| std::mem::take(&mut remap.needs));
        let mut needs = needs.unwrap_or_default();
        needs.clear();
        for piece in pieces {
            if let Action::Share(ppn) = piece.action {
                needs.add(geometry.split(ppn).0);
            }
        }
        needs
    }

    /// Keeps the table for the next command.
    fn keep_needs(&mut self, needs: Needs) {
        if let Some(remap) = &mut self.remap {
            remap.needs = needs;
        }
    }

    /// The log has no room for the whole command: as much as fits is shared, the rest is copied.
    pub(crate) fn spread_room(&mut self, pieces: &mut [Piece], options: RemapOptions) {
        let instead = if options.no_fallback { Action::Skip } else { Action::Copy };
        // The longest prefix that fits; all of it does not.
        let (mut fits, mut fails) = (0, pieces.len());
        while fails - fits > 1 {
            let half = fits + (fails - fits) / 2;
            let needs = self.needs_of(&pieces[..half]);
            let has_room = self.has_log_room(needs.list());
            self.keep_needs(needs);
            if has_room {
                fits = half;
            } else {
                fails = half;
            }
        }
        for piece in pieces.iter_mut().skip(fits) {
            if matches!(piece.action, Action::Share(_)) {
                piece.action = instead;
            }
        }
    }

    /// One unit that cannot be remapped skips all; so do more copies or trims than can be made without
    /// collecting or checkpointing in between.
    pub(crate) fn skip_all_or_none(
        &mut self,
        pieces: &mut [Piece],
        ranges: &[RemapRange],
        options: RemapOptions,
    ) {
        let copies = pieces.iter().filter(|piece| piece.action == Action::Copy);
        let copies: u32 = copies.map(|piece| piece.len).sum();
        let trims = u32_from(self.runs_to_unmap(ranges, pieces, options).len());
        let possible = copies <= self.layout.data_slots() / 2
            && self.trim_log.has_room(trims)
            && pieces.iter().all(|piece| piece.action != Action::Skip);
        if !possible {
            for piece in pieces {
                piece.action = Action::Skip;
            }
        }
    }

    /// Targets of unmapped sources, and sources that were moved away: first unit and length of each run
    /// that is mapped in part at least.
    pub(crate) fn runs_to_unmap(
        &self,
        ranges: &[RemapRange],
        pieces: &[Piece],
        options: RemapOptions,
    ) -> Vec<(u32, u32)> {
        let unmaps = pieces.iter().any(|piece| piece.action == Action::Unmap);
        if !unmaps && !options.moves {
            return Vec::new();
        }
        let unmapped = pieces.iter().filter(|piece| piece.action == Action::Unmap);
        let mut runs: Vec<_> = unmapped.map(|piece| (piece.dst, piece.len)).collect();
        if options.moves {
            Self::add_moved(ranges, pieces, &mut runs);
        }
        runs.retain(|(first, len)| self.mapped_within(*first, first + len).is_some());
        runs
    }

    /// Adds the sources that are moved away: those of each range but for the ones that are targets as
    /// well, and for those of units that are skipped.
    fn add_moved(ranges: &[RemapRange], pieces: &[Piece], runs: &mut Vec<(u32, u32)>) {
        let ends = |first: u32, len: u32| (first, first + len);
        let targets: Vec<_> = ranges.iter().map(|r| ends(r.dst.raw(), r.len)).collect();
        let skipped = pieces.iter().filter(|piece| piece.action == Action::Skip);
        let skipped: Vec<(usize, u32)> =
            skipped.flat_map(|piece| piece.sources().map(|lpn| (piece.range, lpn))).collect();
        for (number, range) in ranges.iter().enumerate() {
            let stays = skipped.iter().filter(|(of, _)| *of == number);
            let mut stays: Vec<_> = stays.map(|(_, lpn)| ends(*lpn, 1)).collect();
            stays.extend_from_slice(&targets);
            stays.sort_unstable();
            let (mut begin, end) = ends(range.src.raw(), range.len);
            for (first, after) in stays.into_iter().take_while(|(first, _)| *first < end) {
                runs.push((begin, first.saturating_sub(begin)));
                begin = begin.max(after);
            }
            runs.push((begin, end.saturating_sub(begin)));
        }
    }
}
