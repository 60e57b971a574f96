//! A volume between the load and the modelled device, in virtual time.
//!
//! The engine of the volume waits for its own I/O, so a request of the load has no completion time
//! when it is taken: a run goes from event to event (`crate::events`). The device tells the
//! completion time of each command at once.
//!
//! No bytes of blocks are kept; headers and what checkpoints write are, because the volume reads them again.

mod below;
mod both;
mod command;
mod device;
mod run;
mod stack;

use onefold_modes::PartitionedVolume;
use onefold_units::convert::u64_from;
use onefold_volume::Engine;

use crate::events::Top;

pub(crate) use below::Below;
pub(crate) use both::Both;
pub(crate) use device::Device;
pub(crate) use run::{simulate, simulate_on};

/// What a volume did in the measured part.
pub(crate) struct VolumeRun {
    pub(crate) config: onefold_config::Volume,
    pub(crate) stats: onefold_volume::Stats,
    /// What the load asked for.
    pub(crate) top: Top,
    /// At the end.
    pub(crate) space: VolumeSpace,
    /// Log segments of the journal set at the end.
    pub(crate) journal_segments: u32,
}

/// How full a volume is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VolumeSpace {
    /// Blocks of all log segments or partitions.
    pub(crate) log_blocks: u64,
    pub(crate) free_blocks: u64,
    pub(crate) live_blocks: u64,
    pub(crate) map_bytes: u64,
    pub(crate) memory: onefold_volume::Memory,
}

/// Bytes of a page of the map of mode `log` in memory.
const MAP_PAGE_BYTES: u64 = 8192;

impl VolumeSpace {
    fn of(volume: &dyn Engine) -> Self {
        let (free_blocks, memory) = (volume.free_blocks(), volume.memory());
        if let Some(log) = volume.as_log() {
            let segment = u64::from(log.layout().geometry().segment_blocks);
            return Self {
                log_blocks: u64::from(log.layout().usable_segments()) * segment,
                free_blocks,
                live_blocks: log.live_blocks(),
                map_bytes: u64_from(log.resident_pages()) * MAP_PAGE_BYTES,
                memory,
            };
        }
        Self {
            log_blocks: volume
                .downcast_ref()
                .map_or(0, |volume: &PartitionedVolume| volume.areas().data_blocks()),
            free_blocks,
            live_blocks: memory.valid_entries,
            map_bytes: memory.real_bytes,
            memory,
        }
    }
}
