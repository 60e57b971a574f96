//! Mode `log` as drivers know a volume of any mode.

use onefold_format::volume::VolumeMode;
use onefold_units::Nanos;

use crate::engine::Engine;
use crate::frozen::Frozen;
use crate::io::{Done, Io, IoFailed, IoId, Refusal, Relocation};
use crate::plan::ReadPlan;
use crate::range::Range;
use crate::stats::Stats;
use crate::volume::Volume;
use crate::zones::ZoneStatus;

impl dyn Engine {
    /// The volume itself where the mode is `log`.
    #[must_use]
    pub fn as_log(&self) -> Option<&Volume> {
        self.downcast_ref()
    }

    /// The same to change it.
    #[must_use]
    pub fn as_log_mut(&mut self) -> Option<&mut Volume> {
        self.downcast_mut()
    }
}

impl Engine for Volume {
    fn mode(&self) -> VolumeMode {
        VolumeMode::Log
    }

    fn logical_blocks(&self) -> u64 {
        self.layout().geometry().logical_blocks
    }

    fn write_blocks_max(&self) -> u32 {
        Self::write_blocks_max(self)
    }

    fn write(
        &mut self,
        tag: u64,
        range: Range,
        data: Option<&[u8]>,
        fua: bool,
    ) -> Result<(), Refusal> {
        Self::write(self, tag, range, data, fua)
    }

    fn read(
        &mut self,
        range: Range,
        buffer: Option<&mut [u8]>,
        plan: &mut ReadPlan,
    ) -> Result<(), Refusal> {
        Self::read(self, range, buffer, plan)
    }

    fn end_read(&mut self, plan: &ReadPlan) {
        Self::end_read(self, plan);
    }

    fn trim(&mut self, tag: u64, range: Range) -> Result<u64, Refusal> {
        Self::trim(self, tag, range)
    }

    fn flush(&mut self, tag: u64) -> Result<(), Refusal> {
        Self::flush(self, tag)
    }

    fn mapped(&mut self, range: Range) -> Result<(bool, u64), Refusal> {
        Self::mapped(self, range)
    }

    fn count_crc_errors(&mut self, blocks: u64) {
        Self::count_crc_errors(self, blocks);
    }

    fn pump(&mut self, now: Nanos) {
        Self::pump(self, now);
    }

    fn poll_io(&mut self) -> Option<Io> {
        Self::poll_io(self)
    }

    fn poll_done(&mut self) -> Option<Done> {
        Self::poll_done(self)
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        Self::poll_timeout(self)
    }

    fn buffer(&self, id: IoId) -> &[u8] {
        Self::buffer(self, id)
    }

    fn buffer_mut(&mut self, id: IoId) -> &mut [u8] {
        Self::buffer_mut(self, id)
    }

    fn relocations(&self, id: IoId) -> Vec<Relocation> {
        Self::relocations(self, id)
    }

    fn zone_reported(&mut self, id: IoId, status: ZoneStatus) {
        Self::zone_reported(self, id, status);
    }

    fn completed(&mut self, now: Nanos, id: IoId, result: Result<(), IoFailed>) {
        Self::completed(self, now, id, result);
    }

    fn is_idle(&self) -> bool {
        Self::is_idle(self)
    }

    fn is_settling(&self) -> bool {
        Self::is_settling(self)
    }

    fn want_checkpoint(&mut self) {
        Self::want_checkpoint(self);
    }

    fn want_cleaning(&mut self) {
        Self::want_cleaning(self);
    }

    fn close(&mut self) {
        Self::close(self);
    }

    fn frozen(&self) -> Option<Frozen> {
        Self::frozen(self)
    }

    fn stalled(&self) -> Option<IoFailed> {
        Self::stalled(self)
    }

    fn stats(&self) -> &Stats {
        Self::stats(self)
    }

    fn free_blocks(&self) -> u64 {
        u64::from(self.free_segments()) * u64::from(self.layout().geometry().segment_blocks)
    }
}
