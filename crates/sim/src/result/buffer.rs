//! What the DRAM buffer of the device did.

use onefold_buffer::{AreaStats, Stats, TenantStats};
use serde::{Deserialize, Serialize};

use super::finite;

/// The DRAM buffer of the device. Its pages are mapping units (`ftl.indirection`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Buffer {
    /// Name of the policy.
    pub policy: String,
    /// Pages read from the buffer.
    pub read_hits: u64,
    /// Pages read from flash.
    pub read_misses: u64,
    /// Pages written over a buffered page.
    pub write_hits: u64,
    /// Pages written that were not buffered.
    pub write_misses: u64,
    /// Hits / (hits + misses) of reads and writes together; 0 without accesses.
    #[serde(serialize_with = "finite")]
    pub hit_ratio: f64,
    /// Hits / (hits + misses) of reads.
    #[serde(serialize_with = "finite")]
    pub read_hit_ratio: f64,
    /// Hits / (hits + misses) of writes.
    #[serde(serialize_with = "finite")]
    pub write_hit_ratio: f64,
    /// Read requests all of whose pages hit / read requests.
    #[serde(serialize_with = "finite")]
    pub read_request_hit_ratio: f64,
    /// Write requests all of whose pages hit / write requests.
    #[serde(serialize_with = "finite")]
    pub write_request_hit_ratio: f64,
    /// Bytes read in pages that hit / bytes read.
    #[serde(serialize_with = "finite")]
    pub read_byte_hit_ratio: f64,
    /// Bytes written in pages that hit / bytes written.
    #[serde(serialize_with = "finite")]
    pub write_byte_hit_ratio: f64,
    /// Pages read from flash to serve reads.
    pub flash_reads: u64,
    /// Pages read from victims on their way to flash. They are among `read_hits`.
    pub wb_hits: u64,
    /// Pages read from flash to complete partly written ones.
    pub pad_reads: u64,
    /// Pages programmed.
    pub pages_programmed: u64,
    /// Flash pages programmed.
    pub programs: u64,
    /// Flash pages programmed that were not full.
    pub short_programs: u64,
    /// Pages written over dirty ones.
    pub overwritten: u64,
    /// Dirty pages that a trim discarded.
    pub trim_discards: u64,
    /// Dirty pages left at the end.
    pub dirty: u64,
    /// 1 - pages programmed / pages written; 0 without writes.
    #[serde(serialize_with = "finite")]
    pub absorption: f64,
    /// Look-ups in tables of the policy; 0 for a tenant.
    pub lookups: u64,
    /// The areas of the policy; empty for a tenant.
    pub areas: Vec<Area>,
}

/// An area of the policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Area {
    /// Name of the area.
    pub name: String,
    /// Pages that left it to make room, clean or dirty.
    pub evictions: u64,
    /// Dirty pages of it that were programmed.
    pub write_backs: u64,
}

impl Buffer {
    /// The whole buffer.
    pub(crate) fn of_run(policy: &str, stats: &Stats) -> Self {
        let areas = stats.areas_by_name().iter().map(Area::new).collect();
        Self { lookups: stats.lookups, areas, ..Self::of_tenant(policy, &stats.total()) }
    }

    /// One tenant's use of it.
    pub(crate) fn of_tenant(policy: &str, stats: &TenantStats) -> Self {
        let (reads, writes) = (&stats.reads, &stats.writes);
        Self {
            policy: policy.to_owned(),
            read_hits: reads.hits,
            read_misses: reads.misses(),
            write_hits: writes.hits,
            write_misses: writes.misses(),
            hit_ratio: stats.hit_ratio(),
            read_hit_ratio: reads.hit_ratio(),
            write_hit_ratio: writes.hit_ratio(),
            read_request_hit_ratio: reads.request_hit_ratio(),
            write_request_hit_ratio: writes.request_hit_ratio(),
            read_byte_hit_ratio: reads.byte_hit_ratio(),
            write_byte_hit_ratio: writes.byte_hit_ratio(),
            flash_reads: stats.flash_reads,
            wb_hits: stats.wb_hits,
            pad_reads: stats.pad_reads,
            pages_programmed: stats.pages_programmed,
            programs: stats.programs,
            short_programs: stats.short_programs,
            overwritten: stats.overwritten,
            trim_discards: stats.trim_discards,
            dirty: stats.dirty,
            absorption: stats.absorption(),
            lookups: 0,
            areas: Vec::new(),
        }
    }

    /// Buffered accesses: none if the device has no buffer.
    pub(crate) fn accesses(&self) -> u64 {
        [self.read_hits, self.read_misses, self.write_hits, self.write_misses]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

impl Area {
    fn new(stats: &AreaStats) -> Self {
        Self {
            name: stats.name.to_owned(),
            evictions: stats.evictions(),
            write_backs: stats.write_backs(),
        }
    }
}
