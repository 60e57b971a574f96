//! What a volume did in a run, for its result.

use onefold_config::Volume as Config;
use onefold_ssd::HostStats;
use onefold_units::convert::u64_from;
use onefold_volume::Engine;

use crate::top::Stalls;

/// What a volume did in the measured part.
pub(crate) struct VolumeRun {
    pub(crate) config: Config,
    pub(crate) stats: onefold_volume::Stats,
    /// What was asked of it.
    pub(crate) host: HostStats,
    pub(crate) stalls: Stalls,
    /// Requests of the load that ended, those before included.
    pub(crate) executed: u64,
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
    pub(crate) fn of(volume: &dyn Engine) -> Self {
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
        let partitioned = volume.downcast_ref::<onefold_modes::PartitionedVolume>();
        Self {
            log_blocks: partitioned.map_or(0, |layer| layer.areas().data_blocks()),
            free_blocks,
            live_blocks: memory.valid_entries,
            map_bytes: memory.real_bytes,
            memory,
        }
    }
}
