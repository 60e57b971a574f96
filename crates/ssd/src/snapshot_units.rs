//! Units that only the device itself reaches, for snapshots: they come after those of the host, and no
//! command of a host may name them. The buffer knows nothing of them.

use onefold_ftl::{RemapDone, RemapOptions, RemapRange};
use onefold_nand::Media;
use onefold_units::convert::narrow;
use onefold_units::{Cause, Lpn, Nanos};

use crate::times::Times;
use crate::{Ssd, SsdError};

impl<M: Media> Ssd<M> {
    /// Number of snapshot units.
    #[must_use]
    pub const fn snapshot_units(&self) -> u32 {
        self.ftl.snapshot_units()
    }

    /// The number by which [`Ssd::remap_snapshots`] knows snapshot unit `at`, counted from 0.
    #[must_use]
    pub const fn snapshot_lpn(&self, at: u32) -> Lpn {
        Lpn::new(self.ftl.host_units() + at)
    }

    /// The same as [`Ssd::remap`], for ranges that may lie among the snapshot units.
    ///
    /// # Errors
    /// As [`Ssd::remap`].
    pub fn remap_snapshots(
        &mut self,
        now: Nanos,
        ranges: &[RemapRange],
        options: RemapOptions,
    ) -> Result<RemapDone, SsdError> {
        self.ftl.with_snapshot_units(|ftl| ftl.check_remap_ranges(ranges))?;
        self.execute_remap(now, now, ranges, options)
    }

    /// Unmaps `count` snapshot units from `at`.
    ///
    /// # Errors
    /// What the medium reported.
    pub fn trim_snapshot_units(&mut self, now: Nanos, at: u32, count: u32) -> Result<(), SsdError> {
        self.expect_all_dies()?;
        let (times, first) = (Times { now, ready: now }, self.snapshot_lpn(at));
        self.ftl.with_snapshot_units(|ftl| ftl.trim(times.host(), first, count))?;
        Ok(())
    }

    /// Writes one snapshot unit whole, as metadata of the device: after a power cut it is the old one or
    /// the new one.
    ///
    /// # Errors
    /// As a write.
    pub fn write_snapshot_unit(
        &mut self,
        now: Nanos,
        at: u32,
        unit: &[u8],
    ) -> Result<(), SsdError> {
        let (times, lpn) = (Times { now, ready: now }, self.snapshot_lpn(at));
        self.ftl.write_for(Cause::Metadata, times.host(), lpn, self.unit / 4096, 0, unit)?;
        Ok(())
    }

    /// Reads one snapshot unit, as metadata of the device.
    ///
    /// # Errors
    /// As a read.
    pub fn read_snapshot_unit(
        &mut self,
        now: Nanos,
        at: u32,
        unit: &mut [u8],
    ) -> Result<(), SsdError> {
        let (times, lpn) = (Times { now, ready: now }, self.snapshot_lpn(at));
        self.ftl.read(times.host(), lpn, narrow(self.unit), Cause::Metadata, unit)?;
        Ok(())
    }

    /// Has the medium keep what was programmed and logged so far, whatever the buffer still holds. It is
    /// no flush of the host: sources of moves on flush stay.
    ///
    /// # Errors
    /// As a flush.
    pub fn settle(&mut self, now: Nanos) -> Result<(), SsdError> {
        self.ftl.settle(Times { now, ready: now }.host())?;
        Ok(())
    }
}
