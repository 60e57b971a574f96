//! What the volume between the load and the device did.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Host, finite};

/// The volume in the measured part. Pages are 4 KiB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Volume {
    /// How it places what is written.
    pub mode: String,
    /// What the volume asked of the device.
    pub device: Host,
    /// Pages sent to the device, by cause (design.md, contract 3). They add up to `write_pages` of `device`.
    pub sent_pages: BTreeMap<String, u64>,
    /// Pages sent to the device / pages the load wrote.
    #[serde(serialize_with = "finite")]
    pub waf_host: f64,
    /// Pages programmed for any cause / pages sent to the device. `waf` is the product of both.
    #[serde(serialize_with = "finite")]
    pub waf_device: f64,
    /// Pages written over others that were not sent yet.
    pub absorbed_pages: u64,
    /// Batches sent.
    pub batches: u64,
    /// Contiguous pieces that reads of the load took.
    pub read_runs: u64,
    /// Pages read by the cleaner, headers included.
    pub clean_read_pages: u64,
    /// Pages the cleaner read and did not move, because they were overwritten meanwhile.
    pub clean_wasted_pages: u64,
    /// Pages the cleaner moved to where batches of the load would be padded; they are in `cleaning` as well.
    pub filled_pages: u64,
    /// Pages the cleaner moved by remap: neither read nor sent.
    pub remapped_pages: u64,
    /// Remaps that the device could not do; the pages were copied.
    pub failed_remaps: u64,
    /// Pages the cleaner moved out of log segments of journals; they are in `cleaning` as well, or in `remapped_pages`.
    pub journal_copied_pages: u64,
    /// Log segments of journals at the end.
    pub journal_segments: u64,
    /// Times that log segments of journals became ordinary ones.
    pub journal_demotions: u64,
    /// Log segments cleaned.
    pub cleaned_segments: u64,
    /// Log segments given back.
    pub freed_segments: u64,
    /// Pages of log segments trimmed on the device.
    pub trim_pages: u64,
    /// Zones reset.
    pub zone_resets: u64,
    /// Zones finished that were not full.
    pub zone_finishes: u64,
    /// Flushes sent to the device.
    pub flushes: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Map pages read.
    pub map_faults: u64,
    /// Map pages that made room for others.
    pub map_evictions: u64,
    /// Requests that the volume did not take at once.
    pub stalls: Stalls,
    /// Pages of a log segment, or of a partition in the modes `sung` and `han`.
    pub segment_pages: u64,
    /// Pages of all log segments or partitions.
    pub log_pages: u64,
    /// Pages of them that are live at the end, data and map.
    pub live_pages: u64,
    /// Log segments free at the end; of partitions, as much as so many.
    pub free_segments: u64,
    /// Map in memory at the end.
    pub map_bytes: u64,
    /// Modes `sung` and `han`: tables that were searched for where blocks lie.
    pub map_probes: u64,
    /// Mode `sung`: tables that were read because they had left memory.
    pub table_faults: u64,
    /// Modes `sung` and `han`: entries of overwritten blocks at the end, kept until they are cleaned.
    pub stale_entries: u64,
    /// Modes `sung` and `han`: the most memory that tables took, preconditioning included.
    pub map_bytes_peak: u64,
    /// The same as the papers count: 12 bytes for each entry.
    pub map_bytes_paper: u64,
}

/// Requests that the volume did not take at once: they waited for the cleaner, for batches or for the map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stalls {
    /// Requests.
    pub requests: u64,
    /// How long they waited, all together.
    pub total_ns: u64,
    /// The longest wait.
    pub max_ns: u64,
    /// Mode `log`: the longest wait without the time in which no more log segments were free than the volume keeps for itself (f < R of
    /// volume.md, section 5.7).
    pub max_paced_ns: u64,
}

impl Volume {
    /// Pages programmed / pages the load wrote, as if the volume had sent data only, of the load and of the cleaner: what
    /// is compared with models without headers and checkpoints.
    #[must_use]
    pub fn waf_data(&self) -> f64 {
        let sent = |cause: &str| self.sent_pages.get(cause).copied().unwrap_or(0);
        let all: u64 = self.sent_pages.values().fold(0, |sum, pages| sum.saturating_add(*pages));
        if all == 0 {
            return 0.0;
        }
        let user = sent("user").saturating_add(sent("journal"));
        let data = user.saturating_add(sent("cleaning"));
        let share = onefold_units::convert::float(data) / onefold_units::convert::float(all);
        share * self.waf_host * self.waf_device
    }
}
