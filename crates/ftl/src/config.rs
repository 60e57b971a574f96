//! What can be chosen about the FTL.

use crate::{DedupScope, GREEDY, RemapConfig, RemapScheme, VictimSpec};

/// Configuration of the FTL; shares are fractions of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a device")]
pub struct FtlConfig {
    /// Logical capacity in mapping units.
    pub logical_units: u64,
    /// Further logical units that no host command reaches: snapshots live there.
    pub snapshot_units: u64,
    /// Map cache in bytes; `None` = the whole map is in DRAM.
    pub map_cache_bytes: Option<u64>,
    /// Victim policy.
    pub victim: VictimSpec,
    /// Candidates that the victim policy `d-choices` draws, at least 1.
    pub victim_draws: u32,
    /// Free share of a pool at which background collection starts.
    pub gc_start: f64,
    /// Free share of a pool at which a host write waits for collection.
    pub gc_stop: f64,
    /// Spread collection over the host writes that its space will serve.
    pub gc_pacing: bool,
    /// Collect in the time the device is idle, too, up to `gc_start`. How much then depends on
    /// when requests come and not only on their order.
    pub gc_idle: bool,
    /// Collection writes to a frontier of its own.
    pub separate_gc: bool,
    /// Host write streams (placement ids), at least 1.
    pub streams: u32,
    /// Head and tail pages are programmed (true), or reverse map and superblock header live only
    /// in the spare area (false).
    pub metadata_pages: bool,
    /// Share of the logical capacity written between two L2P checkpoints; 0 = only when the trim
    /// log is full and at clean shutdown.
    pub checkpoint: f64,
    /// Bytes of NVRAM for the trim log.
    pub trim_log_bytes: u64,
    /// Difference of erase counts at which static wear levelling moves cold data; 0 = never.
    pub wear_threshold: u32,
    /// Erases a superblock survives; 0 = no limit.
    pub endurance: u32,
    /// Empty a superblock after a read of the host that needed retries there, and retire it after one that failed.
    pub relocate: bool,
    /// Seed of random victims.
    pub seed: u64,
    /// The remap primitive and its log.
    pub remap: RemapConfig,
    /// Fingerprints that deduplication remembers; 0 = no deduplication.
    pub fingerprints: u32,
    /// Which contents those are.
    pub dedup_scope: DedupScope,
}

impl FtlConfig {
    /// Contents that are remembered: none where nothing can be shared.
    pub(crate) fn contents(&self) -> u32 {
        if self.remap.scheme == RemapScheme::None { 0 } else { self.fingerprints }
    }

    /// A plain page-mapping FTL of so many units: greedy victims, no checkpoints, no remapping.
    /// What should differ is named beside it.
    #[must_use]
    pub fn plain(logical_units: u64) -> Self {
        Self {
            logical_units,
            snapshot_units: 0,
            map_cache_bytes: None,
            victim: VictimSpec::new(&GREEDY),
            victim_draws: 10,
            gc_start: 0.05,
            gc_stop: 0.0,
            gc_pacing: true,
            gc_idle: false,
            separate_gc: true,
            streams: 1,
            metadata_pages: false,
            checkpoint: 0.0,
            trim_log_bytes: 65_536,
            wear_threshold: 0,
            endurance: 0,
            relocate: false,
            seed: 0,
            remap: RemapConfig::OFF,
            fingerprints: 0,
            dedup_scope: DedupScope::Writes,
        }
    }
}
