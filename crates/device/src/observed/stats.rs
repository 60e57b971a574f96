//! What a device tells about itself.

use std::time::Duration;

use onefold_buffer::AreaStats;
pub use onefold_ftl::SavedPages;
use onefold_units::CauseCounts;

use crate::media::Held;

/// Numbers of a volume, taken at one moment. Everything counts from its opening.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VolumeSnapshot {
    /// Bytes sent to the backing by cause. Their sum is everything that was sent.
    pub sent_bytes: Vec<(&'static str, u64)>,
    /// Bytes sent / bytes the host wrote; `None` before the first write.
    pub write_amplification: Option<f64>,
    /// Bytes that the cleaner read.
    pub clean_read_bytes: u64,
    /// Bytes of log segments trimmed on the backing.
    pub trimmed_bytes: u64,
    /// Log segments.
    pub log_segments: u64,
    /// Log segments that are free.
    pub free_log_segments: u64,
    /// Log segments in which the backing failed, until they are emptied and used again.
    pub faulty_log_segments: u64,
    /// Room that the volume has less for that.
    pub faulty_bytes: u64,
    /// Log segments that hold nothing but journals.
    pub journal_log_segments: u64,
    /// Bytes of the log that are live, data and map.
    pub live_bytes: u64,
    /// Bytes of data of all members.
    pub data_bytes: u64,
    /// Bytes of data that a thin volume, or one with snapshots, can hold.
    pub capacity_bytes: u64,
    /// Bytes of all log segments.
    pub log_bytes: u64,
    /// Memory of the map.
    pub map_bytes: u64,
    /// Bytes of log since the last checkpoint: what recovery would look at.
    pub checkpoint_lag_bytes: u64,
    /// Batches that the recovery found when the volume was opened.
    pub recovered_batches: u64,
    /// How long calls waited, together.
    pub stalled: Duration,
    /// How long one of them waited at most.
    pub longest_stall: Duration,
    /// Whether it takes no more changes.
    pub read_only: bool,
    /// Further events by name.
    pub events: Vec<(&'static str, u64)>,
}

/// How the host treats the file under a device, taken at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageSnapshot {
    /// What keeps writes from it, if something does.
    pub held: Option<Held>,
    /// Bytes in memory that it did not take.
    pub waiting_bytes: u64,
    /// Requests that were refused because it takes no writes.
    pub refused_requests: u64,
    /// Reads that failed, after a few attempts each.
    pub failed_reads: u64,
    /// Writes that failed, after a few attempts each.
    pub failed_writes: u64,
    /// Synchronisations that failed.
    pub failed_syncs: u64,
}

impl ImageSnapshot {
    /// One word for how it is.
    #[must_use]
    pub fn state(&self) -> &'static str {
        self.held.map_or("ok", Held::name)
    }
}

/// Numbers of a device, taken at one moment. Everything counts from the opening of the device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceSnapshot {
    /// Numbers of the volume, if it is one.
    pub volume: Option<VolumeSnapshot>,
    /// How the host treats its file, if it is in one.
    pub image: Option<ImageSnapshot>,
    /// Whether the numbers of flash and buffer are those of a device: a volume need not lie on one.
    pub flash: bool,
    /// Bytes the host wrote.
    pub host_written_bytes: u64,
    /// 4 KiB pages written to the medium, by cause. Their sum is everything that was written.
    pub nand_written_pages: CauseCounts,
    /// Pages programmed for any cause / pages the user wrote; `None` before the first write.
    pub write_amplification: Option<f64>,
    /// 4 KiB pages that were remapped, copied instead, and skipped.
    pub remap_pages: [u64; 3],
    /// 4 KiB pages of the host that no program was spent on, by the reason.
    pub saved_pages: SavedPages,
    /// Superblocks that are erased and free.
    pub free_superblocks: u64,
    /// Whether garbage collection is running.
    pub gc_active: bool,
    /// Superblocks erased.
    pub erases: u64,
    /// Buffer policy with its parameters; `None` without a buffer.
    pub buffer_policy: Option<String>,
    /// Counters of the areas of the policy.
    pub buffer_areas: Vec<AreaStats>,
    /// Pages that reads found in the buffer.
    pub buffer_read_hits: u64,
    /// Pages that reads did not find there.
    pub buffer_read_misses: u64,
    /// Pages that writes overwrote in the buffer.
    pub buffer_write_hits: u64,
    /// Pages that writes brought into the buffer.
    pub buffer_write_misses: u64,
    /// Bytes that are acknowledged and not durable yet.
    pub unflushed_bytes: u64,
    /// Duration of the last flush, in nanoseconds.
    pub flush_ns: u64,
    /// Duration of the recovery when the device was opened, in nanoseconds.
    pub recovery_ns: u64,
}

/// A device that tells numbers. Called once per scrape, from a thread that does no I/O.
pub trait DeviceStats {
    /// The numbers now, or `None` if the device has none.
    fn snapshot(&self) -> Option<DeviceSnapshot> {
        None
    }
}
