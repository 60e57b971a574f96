//! What drivers and tests know of a volume, whatever its mode.

use std::any::Any;

use onefold_format::volume::VolumeMode;
use onefold_units::Nanos;

use crate::host::Range;
use crate::io::{Done, Io, IoFailed, IoId, Refusal, Relocation};
use crate::memory::Memory;
use crate::plan::ReadPlan;
use crate::stats::Stats;
use crate::volume::{Frozen, Volume};
use crate::zones::ZoneStatus;

/// The host interface of a volume and the requests to its backing. The calling order is that of
/// [`Volume`], which describes each call; every mode keeps to the same.
pub trait Engine: Any + Send {
    /// The mode.
    fn mode(&self) -> VolumeMode;
    /// Exported blocks of 4 KiB.
    fn logical_blocks(&self) -> u64;
    /// See [`Volume::write_blocks_max`].
    fn write_blocks_max(&self) -> u32;
    /// See [`Volume::write`].
    fn write(
        &mut self,
        tag: u64,
        range: Range,
        data: Option<&[u8]>,
        fua: bool,
    ) -> Result<(), Refusal>;
    /// See [`Volume::read`].
    fn read(
        &mut self,
        range: Range,
        buffer: Option<&mut [u8]>,
        plan: &mut ReadPlan,
    ) -> Result<(), Refusal>;
    /// See [`Volume::end_read`].
    fn end_read(&mut self, plan: &ReadPlan);
    /// See [`Volume::trim`].
    fn trim(&mut self, tag: u64, range: Range) -> Result<u64, Refusal>;
    /// See [`Volume::flush`].
    fn flush(&mut self, tag: u64) -> Result<(), Refusal>;
    /// See [`Volume::mapped`].
    fn mapped(&mut self, range: Range) -> Result<(bool, u64), Refusal>;
    /// See [`Volume::count_crc_errors`].
    fn count_crc_errors(&mut self, blocks: u64);
    /// See [`Volume::pump`].
    fn pump(&mut self, now: Nanos);
    /// See [`Volume::poll_io`].
    fn poll_io(&mut self) -> Option<Io>;
    /// See [`Volume::poll_done`].
    fn poll_done(&mut self) -> Option<Done>;
    /// See [`Volume::poll_timeout`].
    fn poll_timeout(&self) -> Option<Nanos>;
    /// See [`Volume::buffer`].
    fn buffer(&self, id: IoId) -> &[u8];
    /// See [`Volume::buffer_mut`].
    fn buffer_mut(&mut self, id: IoId) -> &mut [u8];
    /// See [`Volume::relocations`]; none in a mode that does not remap.
    fn relocations(&self, id: IoId) -> Vec<Relocation> {
        let _ = id;
        Vec::new()
    }
    /// See [`Volume::zone_reported`]; nothing in a mode that knows no zones.
    fn zone_reported(&mut self, id: IoId, status: ZoneStatus) {
        let _ = (id, status);
    }
    /// See [`Volume::completed`].
    fn completed(&mut self, now: Nanos, id: IoId, result: Result<(), IoFailed>);
    /// See [`Volume::is_idle`].
    fn is_idle(&self) -> bool;
    /// See [`Volume::is_settling`].
    fn is_settling(&self) -> bool;
    /// See [`Volume::want_checkpoint`].
    fn want_checkpoint(&mut self);
    /// See [`Volume::want_cleaning`].
    fn want_cleaning(&mut self);
    /// See [`Volume::close`].
    fn close(&mut self);
    /// See [`Volume::frozen`].
    fn frozen(&self) -> Option<Frozen>;
    /// See [`Volume::stalled`].
    fn stalled(&self) -> Option<IoFailed>;
    /// See [`Volume::stats`].
    fn stats(&self) -> &Stats;
    /// Memory of the mapping tables in a mode that counts it as the papers do; all 0 in mode `log`.
    fn memory(&self) -> Memory {
        Memory::default()
    }
    /// Tables that a read or write of these blocks searches, in a mode with several (Sung 2022,
    /// sec. IV-C, has what that costs reads).
    fn searches(&self, _range: Range) -> u64 {
        0
    }
    /// Space for new data in blocks.
    fn free_blocks(&self) -> u64;
}

impl dyn Engine {
    /// The volume itself, for what only its mode has; `None` if it is of another type.
    #[must_use]
    pub fn downcast_ref<T: Engine>(&self) -> Option<&T> {
        let any: &dyn Any = self;
        any.downcast_ref()
    }

    /// The same to change it.
    #[must_use]
    pub fn downcast_mut<T: Engine>(&mut self) -> Option<&mut T> {
        let any: &mut dyn Any = self;
        any.downcast_mut()
    }

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
