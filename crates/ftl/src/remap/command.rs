//! The remap command (remap.md section 2).
//!
//! All records of a command have one sequence number, and each unit has at most one of them
//! (remap.md, H12). A moved source is unmapped by a record of the trim log, so entries name no source
//! and no tombstone has to be made when one is dropped (remap.md section 7 makes it then).

use onefold_nand::{At, Media};
use onefold_units::convert::{index, narrow, u32_from};
use onefold_units::{Lpn, Nanos};

use super::execute::overlap;
use super::piece::Piece;
use super::request::{
    RANGES_MAX, RemapCaps, RemapDone, RemapError, RemapOptions, RemapOutcome, RemapRange,
};
use crate::FtlError;
use crate::ftl::Ftl;

impl<M: Media> Ftl<M> {
    /// What the device can do.
    #[must_use]
    pub fn remap_caps(&self) -> RemapCaps {
        RemapCaps {
            granularity: self.nand.geometry().unit_bytes(),
            max_ranges: RANGES_MAX,
            max_units: self.layout.host_units,
            max_refs: self.config.remap.max_refs,
            shares: self.remap.is_some(),
        }
    }

    /// Lets targets hold what their sources hold as of now, without copying where possible. All ranges
    /// are resolved before any changes. Durable when complete, as far as writes are (see [`Media`]).
    ///
    /// # Errors
    /// [`FtlError::Remap`]: refused, nothing was changed. Others: as for a write; some targets may be
    /// remapped then, and the next flush unmaps none of its sources.
    pub fn remap(
        &mut self,
        at: At,
        ranges: &[RemapRange],
        options: RemapOptions,
    ) -> Result<RemapDone, FtlError> {
        self.check_remap_ranges(ranges)?;
        let options = self.complete(options)?;
        if let Some(id) = options.id
            && self.ring.has(id)
        {
            return Ok(RemapDone { at: at.ready, outcomes: Vec::new(), repeated: true });
        }
        let ready = self.prepare_remap(at, ranges, options)?;
        let at = At { ready, ..at };
        let slot = match options.id {
            None if !options.atomic => None,
            _ => Some(self.take_command_slot(at.now)?),
        };
        let (done, pieces) = self.remap_all(at, ranges, options, slot)?;
        // Only now: a command that failed in one of its parts moves nothing.
        self.note_moving(&pieces, options);
        let outcomes = self.count_outcomes(ranges, &pieces);
        self.pieces = pieces;
        if let Some(slot) = slot {
            let sum = |count: fn(&RemapOutcome) -> u32| outcomes.iter().map(count).sum();
            let counts = (sum(|outcome| outcome.copied), sum(|outcome| outcome.skipped));
            self.end_command(slot, options.id, counts, options.atomic)?;
        }
        if options.atomic && self.hungry > 0 {
            // What its copies owe: nothing was collected while the command ran.
            let pool = self.turn;
            self.collect_paced(at.now, pool)?;
        }
        self.checkpoint_after_trim(at.now)?;
        Ok(RemapDone { at: done, outcomes, repeated: false })
    }

    /// Executes a command at once if the log takes all of it, or if it has to be: it is atomic, or a part
    /// would change what another is about (targets or unmapped sources). Otherwise in parts, between
    /// which the log makes room.
    fn remap_all(
        &mut self,
        at: At,
        ranges: &[RemapRange],
        options: RemapOptions,
        slot: Option<usize>,
    ) -> Result<(Nanos, Vec<Piece>), FtlError> {
        let (mut pieces, reserved) = self.resolve_reserved(at, ranges, options)?;
        if !reserved {
            let part = self.part_units();
            let units = ranges.iter().map(|range| u64::from(range.len)).sum::<u64>();
            let is_long = units > u64::from(part);
            // Whether ranges overlap takes each with each: it is asked last.
            if is_long && !options.atomic && !options.moves && !overlap(ranges) {
                // Long runs take few entries: the longer the parts, the fewer.
                let half = narrow(units.div_ceil(2));
                return self.remap_parts(at, ranges, options, part.max(half));
            }
            self.spread_room(&mut pieces, options);
        }
        if options.atomic {
            self.skip_all_or_none(&mut pieces, ranges, options);
        }
        let done = self.execute(at, ranges, &pieces, options, slot)?;
        Ok((done, pieces))
    }

    fn remap_parts(
        &mut self,
        at: At,
        ranges: &[RemapRange],
        options: RemapOptions,
        part: u32,
    ) -> Result<(Nanos, Vec<Piece>), FtlError> {
        let mut done = at.ready;
        let mut pieces = Vec::new();
        for (number, range) in ranges.iter().enumerate() {
            for first in (0..range.len).step_by(index(part)) {
                let (dst, src) = (range.dst.raw() + first, range.src.raw() + first);
                let len = part.min(range.len - first);
                let part = RemapRange { dst: Lpn::new(dst), src: Lpn::new(src), len };
                let (end, of_part) = self.remap_all(at, &[part], options, None)?;
                done = done.max(end);
                pieces.extend(of_part.into_iter().map(|piece| Piece { range: number, ..piece }));
            }
        }
        Ok((done, pieces))
    }

    /// Units of which half of the log takes the entries, wherever their slots are: each one an entry.
    fn part_units(&self) -> u32 {
        let Some(remap) = self.remap.as_ref().filter(|r| r.config.scheme.is_local()) else {
            return u32::MAX;
        };
        let half = remap.segments.total / 2;
        let superblocks = self.nand.geometry().superblocks();
        // Each superblock may have to begin a segment.
        half.saturating_sub(superblocks).saturating_mul(remap.per_segment()).max(half / 2).max(1)
    }

    /// What the options imply. A move that may be repeated has to be atomic: done a second time, it
    /// would find its sources unmapped.
    fn complete(&self, options: RemapOptions) -> Result<RemapOptions, FtlError> {
        let atomic = options.atomic || options.moves && options.id.is_some();
        let numbered = atomic || options.id.is_some();
        let keeps = !M::STORES || self.config.remap.scheme.is_local();
        if numbered && !keeps {
            return Err(RemapError::NoRing.into());
        }
        Ok(RemapOptions { atomic, ..options })
    }

    /// Whether the ranges of a command are ones that the device accepts.
    ///
    /// # Errors
    /// The first that it does not, and the limit.
    pub fn check_remap_ranges(&self, ranges: &[RemapRange]) -> Result<(), FtlError> {
        let count = u32_from(ranges.len());
        if count > RANGES_MAX {
            return Err(RemapError::TooManyRanges { ranges: count }.into());
        }
        if ranges.is_empty() {
            return Err(RemapError::Empty { range: 0 }.into());
        }
        let units = self.layout.host_units;
        for (at, range) in (0..).zip(ranges) {
            if range.len == 0 {
                return Err(RemapError::Empty { range: at }.into());
            }
            let last = range.dst.raw().max(range.src.raw());
            let end = u64::from(last) + u64::from(range.len);
            if end > u64::from(units) {
                return Err(RemapError::OutOfRange { range: at, end, units }.into());
            }
        }
        let after = |range: &RemapRange| range.dst.raw() + range.len;
        if ranges.is_sorted_by(|range, next| after(range) <= next.dst.raw()) {
            return Ok(());
        }
        let mut targets: Vec<_> = ranges.iter().map(|range| (range.dst.raw(), range.len)).collect();
        targets.sort_unstable();
        for pair in targets.windows(2) {
            if let [(dst, len), (next, _)] = pair
                && dst + len > *next
            {
                return Err(RemapError::Overlap { lpn: *next }.into());
            }
        }
        Ok(())
    }

    /// Programs what is staged of sources and targets, makes room for atomic copies, and loads map
    /// entries.
    fn prepare_remap(
        &mut self,
        at: At,
        ranges: &[RemapRange],
        options: RemapOptions,
    ) -> Result<Nanos, FtlError> {
        let mut ready = at.ready;
        if self.nand.geometry().slots_per_program() > 1 {
            let staged =
                |lpn| self.map.stored(lpn).is_some_and(|at| self.find_staged(at).is_some());
            let waits = |range: &RemapRange| {
                let (dst, src) = (range.dst.raw(), range.src.raw());
                (0..range.len).any(|n| staged(dst + n) || staged(src + n))
            };
            if options.atomic || ranges.iter().any(waits) {
                ready = ready.max(self.program_all_staged(at)?);
            }
        }
        if options.atomic {
            // Copies take from one pool, and nothing is collected while they are made.
            self.collect_until_above_stop(at.now, self.turn)?;
            self.secure_reserve(self.turn)?;
            if M::STORES && self.alloc + u64::from(RANGES_MAX) + 2 >= self.epoch_limit {
                self.reserve_epochs()?;
            }
        }
        if self.map_cache.is_some() {
            for range in ranges {
                for n in 0..range.len {
                    ready = ready.max(self.translate(at, range.src.raw() + n, false)?);
                    ready = ready.max(self.translate(at, range.dst.raw() + n, true)?);
                }
            }
        }
        Ok(ready)
    }
}
