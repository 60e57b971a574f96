//! The remap command: what the buffer has to do with it (remap.md section 2).

use onefold_ftl::{RemapCaps, RemapDone, RemapOptions, RemapRange};
use onefold_nand::Media;
use onefold_units::convert::{narrow, u64_from};
use onefold_units::{Lpn, Nanos};

use crate::dedup::UNKNOWN;
use crate::times::Times;
use crate::{Command, Ssd, SsdError};

impl<M: Media> Ssd<M> {
    /// What the remap command can do.
    #[must_use]
    pub fn remap_caps(&self) -> RemapCaps {
        self.ftl.remap_caps()
    }

    /// Lets targets hold what their sources hold as of now, in logical units and without copying where
    /// possible. Sources that are dirty in the buffer are programmed first; buffered targets are
    /// dropped.
    ///
    /// # Errors
    /// A refused command changes nothing. After another error some units may be remapped.
    pub fn remap(
        &mut self,
        now: Nanos,
        ranges: &[RemapRange],
        options: RemapOptions,
    ) -> Result<RemapDone, SsdError> {
        self.remap_from(now, now, ranges, options)
    }

    /// The same for a command that waits until `from` for changes of its ranges that are under way.
    ///
    /// # Errors
    /// As [`Ssd::remap`].
    pub fn remap_from(
        &mut self,
        now: Nanos,
        from: Nanos,
        ranges: &[RemapRange],
        options: RemapOptions,
    ) -> Result<RemapDone, SsdError> {
        self.ftl.check_remap_ranges(ranges)?;
        let units: u64 = ranges.iter().map(|range| u64::from(range.len)).sum();
        self.host.count_remap(units * self.unit / 4096);
        self.execute_remap(now, from, ranges, options)
    }

    /// Executes a command whose ranges were checked.
    pub(crate) fn execute_remap(
        &mut self,
        now: Nanos,
        from: Nanos,
        ranges: &[RemapRange],
        options: RemapOptions,
    ) -> Result<RemapDone, SsdError> {
        self.expect_all_dies()?;
        let ready = self.ftl.nand_mut().timelines_mut().command(now, u64_from(ranges.len()));
        let mut times = Times { now, ready: ready.max(from) };
        if self.is_any_dirty(ranges) {
            times.ready = self.flush_buffer(times)?;
        }
        let done = self.ftl.with_snapshot_units(|ftl| ftl.remap(times.host(), ranges, options))?;
        let trim = Command::new(onefold_units::Op::Trim, 0, 0);
        let host_units = self.ftl.host_units();
        for range in ranges {
            if let Some(dedup) = &mut self.dedup {
                dedup.set_known(range.dst, range.len, UNKNOWN);
            }
            // The buffer knows nothing of snapshot units.
            if range.dst.raw() < host_units {
                self.trim_buffered(times, range.dst, range.len, &trim)?;
            }
            if options.moves {
                self.trim_moved(times, range, ranges)?;
            }
        }
        Ok(done)
    }

    fn is_any_dirty(&self, ranges: &[RemapRange]) -> bool {
        let Some(buffer) = &self.buffer else { return false };
        // Where nobody tracks dirty units, any may be.
        !buffer.dirty.tracks()
            || ranges.iter().any(|range| {
                let dirty = |first: Lpn| {
                    let kept = || buffer.holes.stranded_in(first, range.len).next().is_some();
                    buffer.dirty.within(first, range.len).next().is_some() || kept()
                };
                dirty(range.src) || dirty(range.dst)
            })
    }

    /// Drops buffered copies of moved sources that are not targets as well.
    fn trim_moved(
        &mut self,
        times: Times,
        range: &RemapRange,
        all: &[RemapRange],
    ) -> Result<(), SsdError> {
        let trim = Command::new(onefold_units::Op::Trim, 0, 0);
        for n in 0..range.len {
            let lpn = Lpn::new(range.src.raw() + n);
            let is_target = |other: &RemapRange| {
                lpn >= other.dst && narrow(u64::from(lpn.raw() - other.dst.raw())) < other.len
            };
            if !all.iter().any(is_target) {
                self.trim_buffered(times, lpn, 1, &trim)?;
            }
        }
        Ok(())
    }
}
