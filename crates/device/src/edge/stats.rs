//! What a device tells about itself.

use onefold_buffer::AreaStats;
use onefold_units::CauseCounts;

/// Numbers of a device, taken at one moment. Everything counts from the opening of the device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceSnapshot {
    /// Bytes the host wrote.
    pub host_written_bytes: u64,
    /// 4 KiB pages written to the medium, by cause. Their sum is everything that was written.
    pub nand_written_pages: CauseCounts,
    /// Pages programmed for any cause / pages the user wrote; `None` before the first write.
    pub write_amplification: Option<f64>,
    /// 4 KiB pages that were remapped, copied instead, and skipped.
    pub remap_pages: [u64; 3],
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
