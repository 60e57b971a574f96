//! What a served volume tells about itself.

use std::time::Duration;

use onefold_format::volume::VolumeMode;
use onefold_units::PAGE_BYTES;
use onefold_units::convert::u64_from;
use onefold_volume::{
    Faulty, Frozen, Geometry, IoFailed, Memory, Recovery, Scrubbed, Sent, Stats, Usage, Volume,
};

use super::VolumeDevice;
use super::io_mode::IoMode;
use super::journals::JournalDetails;
use crate::driver::Stalls;
use crate::observed::{DeviceSnapshot, DeviceStats, VolumeSnapshot};

/// Memory of one map page: entries, checksums, and what is known of it.
pub const MAP_PAGE_BYTES: u64 = 8192 + 256;

/// Everything that is known of a volume, taken at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeDetails {
    /// Its identity.
    pub uuid: [u8; 16],
    /// Its mode.
    pub mode: VolumeMode,
    /// How its requests get to the backing.
    pub io: IoMode,
    /// Whether its cleaner moves blocks by remap.
    pub remaps: bool,
    /// Blocks of space for new data.
    pub free_blocks: u64,
    /// What only a volume of mode `log` has.
    pub log: Option<LogDetails>,
    /// What is known of journals, if they are looked for.
    pub journal: Option<JournalDetails>,
    /// How far a scrub is, or what the last one came to; `None` where there are no checksums of data.
    pub scrub: Option<Scrubbed>,
    /// Memory of the tables of the modes `sung` and `han`.
    pub memory: Memory,
    /// What recovery found when the volume was opened.
    pub recovery: Recovery,
    /// How long it took.
    pub recovery_time: Duration,
    /// Duration of the last flush of the host.
    pub flush_time: Duration,
    /// Calls that had to wait.
    pub stalls: Stalls,
    /// Why it takes no more changes, if it does not.
    pub frozen: Option<Frozen>,
    /// Why the backing takes no writes now, if it does not: changes are refused until it does.
    pub stalled: Option<IoFailed>,
    /// What was counted since the volume was opened.
    pub stats: Stats,
}

/// What is known of the log of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogDetails {
    /// Its geometry.
    pub geometry: Geometry,
    /// Blocks of all log segments.
    pub log_blocks: u64,
    /// Log segments that hold data.
    pub segments: u32,
    /// Log segments that are free.
    pub free_segments: u32,
    /// Blocks that are live, data and map.
    pub live_blocks: u64,
    /// How full it is.
    pub usage: Usage,
    /// Whether it exports more than it can hold.
    pub thin: bool,
    /// Map pages in memory.
    pub resident_pages: u64,
    /// Blocks of log since the last checkpoint began.
    pub blocks_since_checkpoint: u64,
    /// Blocks sent since the last flush of the backing began.
    pub blocks_since_flush: u64,
    /// Log segments in which the backing fails.
    pub faulty: Faulty,
}

impl LogDetails {
    fn of(volume: &Volume) -> Self {
        Self {
            geometry: *volume.layout().geometry(),
            log_blocks: volume.layout().log_blocks(),
            segments: volume.layout().usable_segments(),
            free_segments: volume.free_segments(),
            live_blocks: volume.live_blocks(),
            usage: volume.usage(),
            thin: volume.layout().is_thin(),
            resident_pages: u64_from(volume.resident_pages()),
            blocks_since_checkpoint: volume.blocks_since_checkpoint(),
            blocks_since_flush: volume.blocks_since_flush(),
            faulty: volume.faulty(),
        }
    }

    /// Memory of the map, in bytes.
    #[must_use]
    pub const fn map_bytes(&self) -> u64 {
        self.resident_pages * MAP_PAGE_BYTES
    }
}

impl VolumeDetails {
    /// Bytes sent to the backing by cause. Their sum is everything that was sent.
    pub fn sent_bytes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Sent::ALL.into_iter().map(|cause| (cause.name(), self.stats.sent(cause) * PAGE_BYTES))
    }

    fn snapshot(&self) -> VolumeSnapshot {
        let stats = &self.stats;
        let events = [
            ("batches", stats.batches),
            ("checkpoints", stats.checkpoints),
            ("flushes_sent", stats.flushes_sent),
            ("cleaned_segments", stats.cleaned_segments),
            ("packed_blocks", stats.packed),
            ("remapped_blocks", stats.remapped),
            ("failed_remaps", stats.failed_remaps),
            ("freed_segments", stats.freed_segments),
            ("damaged_segments", stats.damaged_segments),
            ("clean_stalls", stats.clean_stalls),
            ("map_faults", stats.map_faults),
            ("map_evictions", stats.map_evictions),
            ("retried_batches", stats.retried_batches),
            ("failed_requests", stats.failed_requests),
            ("resumed_writes", stats.resumed_writes),
            ("crc_errors", stats.crc_errors),
            ("scrubs", stats.scrubs),
            ("scrub_read_blocks", stats.scrub_read),
            ("scrub_damaged", stats.scrub_damaged),
            ("scrub_mended", stats.scrub_mended),
            ("journal_copied_blocks", stats.journal_copied),
            ("journal_demotions", stats.journal_demotions),
            ("read_runs", stats.read_runs),
            ("stalls", self.stalls.count),
        ];
        let log = |of: fn(&LogDetails) -> u64| self.log.as_ref().map_or(0, of);
        VolumeSnapshot {
            sent_bytes: self.sent_bytes().collect(),
            write_amplification: stats.write_amplification(),
            clean_read_bytes: stats.clean_read * PAGE_BYTES,
            trimmed_bytes: stats.trim_sent * PAGE_BYTES,
            log_segments: log(|log| log.segments.into()),
            free_log_segments: log(|log| log.free_segments.into()),
            faulty_log_segments: log(|log| log.faulty.segments().into()),
            faulty_bytes: log(|log| log.faulty.lost_blocks) * PAGE_BYTES,
            journal_log_segments: self.journal.as_ref().map_or(0, |set| set.segments.into()),
            live_bytes: log(|log| log.live_blocks) * PAGE_BYTES,
            data_bytes: log(|log| log.usage.data_blocks) * PAGE_BYTES,
            capacity_bytes: log(|log| log.usage.capacity_blocks) * PAGE_BYTES,
            log_bytes: log(|log| log.log_blocks) * PAGE_BYTES,
            map_bytes: self.log.as_ref().map_or(self.memory.real_bytes, LogDetails::map_bytes),
            checkpoint_lag_bytes: log(|log| log.blocks_since_checkpoint) * PAGE_BYTES,
            recovered_batches: self.recovery.batches,
            stalled: self.stalls.total,
            longest_stall: self.stalls.longest,
            read_only: self.frozen.is_some() || self.stalled.is_some(),
            events: events.to_vec(),
        }
    }
}

impl VolumeDevice {
    /// Everything that is known of the volume.
    #[must_use]
    pub fn details(&self) -> VolumeDetails {
        let shared = &self.driver.shared;
        let state = self.driver.state();
        let volume = &state.engine.volume;
        VolumeDetails {
            uuid: shared.opening.uuid,
            mode: volume.mode(),
            io: shared.opening.io.clone(),
            remaps: shared.opening.remaps,
            free_blocks: volume.free_blocks(),
            log: volume.as_log().map(LogDetails::of),
            journal: state
                .watch
                .as_ref()
                .zip(volume.as_log())
                .map(|(watch, log)| JournalDetails::of(&watch.detector, log)),
            scrub: volume.as_log().map(|log| log.scrubbed().clone()),
            memory: volume.memory(),
            recovery: shared.opening.recovery,
            recovery_time: shared.opening.took,
            flush_time: state.engine.flush_time,
            stalls: state.stalls,
            frozen: volume.frozen(),
            stalled: volume.stalled(),
            stats: *volume.stats(),
        }
    }
}

impl DeviceStats for VolumeDevice {
    fn snapshot(&self) -> Option<DeviceSnapshot> {
        let details = self.details();
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let below = self.driver.shared.backing.as_ssd().and_then(DeviceStats::snapshot);
        let flash = below.is_some();
        Some(DeviceSnapshot {
            host_written_bytes: details.stats.written * PAGE_BYTES,
            unflushed_bytes: details.log.map_or(0, |log| log.blocks_since_flush) * PAGE_BYTES,
            flush_ns: nanos(details.flush_time),
            recovery_ns: nanos(details.recovery_time),
            volume: Some(details.snapshot()),
            flash,
            ..below.unwrap_or_default()
        })
    }
}
