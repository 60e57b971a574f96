//! What drivers and tests know of a volume, whatever its mode.

use std::any::Any;

use onefold_format::volume::VolumeMode;
use onefold_units::Nanos;

use crate::frozen::Frozen;
use crate::io::{Done, Io, IoFailed, IoId, Refusal, Relocation};
use crate::memory::Memory;
use crate::plan::ReadPlan;
use crate::range::Range;
use crate::stats::Stats;
use crate::zones::ZoneStatus;

/// The host interface of a volume and the requests to its backing. The calling order is that of
/// [`crate::Volume`], which describes each call; every mode keeps to the same.
pub trait Engine: Any + Send {
    /// The mode.
    fn mode(&self) -> VolumeMode;
    /// Exported blocks of 4 KiB.
    fn logical_blocks(&self) -> u64;
    /// See [`crate::Volume::write_blocks_max`].
    fn write_blocks_max(&self) -> u32;
    /// See [`crate::Volume::write`].
    fn write(
        &mut self,
        tag: u64,
        range: Range,
        data: Option<&[u8]>,
        fua: bool,
    ) -> Result<(), Refusal>;
    /// See [`crate::Volume::read`].
    fn read(
        &mut self,
        range: Range,
        buffer: Option<&mut [u8]>,
        plan: &mut ReadPlan,
    ) -> Result<(), Refusal>;
    /// See [`crate::Volume::end_read`].
    fn end_read(&mut self, plan: &ReadPlan);
    /// See [`crate::Volume::trim`].
    fn trim(&mut self, tag: u64, range: Range) -> Result<u64, Refusal>;
    /// See [`crate::Volume::flush`].
    fn flush(&mut self, tag: u64) -> Result<(), Refusal>;
    /// See [`crate::Volume::mapped`].
    fn mapped(&mut self, range: Range) -> Result<(bool, u64), Refusal>;
    /// See [`crate::Volume::count_crc_errors`].
    fn count_crc_errors(&mut self, blocks: u64);
    /// See [`crate::Volume::pump`].
    fn pump(&mut self, now: Nanos);
    /// See [`crate::Volume::poll_io`].
    fn poll_io(&mut self) -> Option<Io>;
    /// See [`crate::Volume::poll_done`].
    fn poll_done(&mut self) -> Option<Done>;
    /// See [`crate::Volume::poll_timeout`].
    fn poll_timeout(&self) -> Option<Nanos>;
    /// See [`crate::Volume::buffer`].
    fn buffer(&self, id: IoId) -> &[u8];
    /// See [`crate::Volume::buffer_mut`].
    fn buffer_mut(&mut self, id: IoId) -> &mut [u8];
    /// See [`crate::Volume::relocations`]; none in a mode that does not remap.
    fn relocations(&self, id: IoId) -> Vec<Relocation> {
        let _ = id;
        Vec::new()
    }
    /// See [`crate::Volume::zone_reported`]; nothing in a mode that knows no zones.
    fn zone_reported(&mut self, id: IoId, status: ZoneStatus) {
        let _ = (id, status);
    }
    /// See [`crate::Volume::completed`].
    fn completed(&mut self, now: Nanos, id: IoId, result: Result<(), IoFailed>);
    /// See [`crate::Volume::is_idle`].
    fn is_idle(&self) -> bool;
    /// See [`crate::Volume::is_settling`].
    fn is_settling(&self) -> bool;
    /// See [`crate::Volume::want_checkpoint`].
    fn want_checkpoint(&mut self);
    /// See [`crate::Volume::want_cleaning`].
    fn want_cleaning(&mut self);
    /// See [`crate::Volume::close`].
    fn close(&mut self);
    /// See [`crate::Volume::frozen`].
    fn frozen(&self) -> Option<Frozen>;
    /// See [`crate::Volume::stalled`].
    fn stalled(&self) -> Option<IoFailed>;
    /// See [`crate::Volume::stats`].
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
}
