//! What a served volume tells about itself.

use onefold_units::PAGE_BYTES;
use onefold_volume::{Geometry, Stats, Usage};

use super::VolumeDevice;
use crate::edge::{DeviceSnapshot, DeviceStats};

/// Everything that is known of a volume, taken at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VolumeDetails {
    /// Its geometry.
    pub geometry: Geometry,
    /// Log segments that hold data.
    pub segments: u32,
    /// Log segments that are free.
    pub free_segments: u32,
    /// Blocks that are live, data and map.
    pub live_blocks: u64,
    /// How full it is, for what snapshots and clones take.
    pub usage: Usage,
    /// Map pages in memory.
    pub resident_pages: u64,
    /// What was counted since the volume was opened.
    pub stats: Stats,
}

impl VolumeDevice {
    /// Everything that is known of the volume.
    #[must_use]
    pub fn details(&self) -> VolumeDetails {
        let state = self.shared.state();
        let volume = &state.volume;
        VolumeDetails {
            geometry: *volume.layout().geometry(),
            segments: volume.layout().usable_segments(),
            free_segments: volume.free_segments(),
            live_blocks: volume.live_blocks(),
            usage: volume.usage(),
            resident_pages: onefold_units::convert::u64_from(volume.resident_pages()),
            stats: *volume.stats(),
        }
    }
}

impl DeviceStats for VolumeDevice {
    fn snapshot(&self) -> Option<DeviceSnapshot> {
        let details = self.details();
        let below =
            self.shared.backing.as_ssd().and_then(DeviceStats::snapshot).unwrap_or_default();
        Some(DeviceSnapshot { host_written_bytes: details.stats.written * PAGE_BYTES, ..below })
    }
}
