//! What remapping and deduplication did.

use serde::{Deserialize, Serialize};

use super::finite;

/// Remapping and deduplication in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Remap {
    /// How mappings are kept consistent.
    pub scheme: String,
    /// Units remapped by commands without a program.
    pub remapped: u64,
    /// Units written whose content was stored already.
    pub deduplicated: u64,
    /// Units that a remap command copied, as they could not be shared.
    pub copied: u64,
    /// Units that a remap command refused and left as they were.
    pub skipped: u64,
    /// Entries written to the log for the host.
    pub entries: u64,
    /// Entries that collection wrote again.
    pub moved_entries: u64,
    /// Sharers that a collected page took over as its owner.
    pub absorbed: u64,
    /// Times a log was rewritten within its store.
    pub compactions: u64,
    /// Times a local log was moved to flash.
    pub destages: u64,
    /// Log superblocks collected.
    pub log_collections: u64,
    /// Remaps refused for want of room in the log.
    pub log_full: u64,
    /// Time collection waited for the log to be looked up.
    pub lookup_ns: u64,
    /// Pages hashed.
    pub hashed_pages: u64,
    /// Time the hash units were busy, over all of them.
    pub hash_busy_ns: u64,
    /// Most times that a segment of NVRAM was taken into use over the life of the device; 0 without
    /// local logs.
    pub segment_cycles_max: u64,
    /// Times that a segment was taken into use, on average.
    #[serde(serialize_with = "finite")]
    pub segment_cycles_mean: f64,
    /// DRAM of the tables that remapping needs.
    pub tables: RemapTables,
    /// Pages programmed for any cause / pages the host wrote or remapped; 0 without.
    #[serde(serialize_with = "finite")]
    pub waf_logical: f64,
}

/// DRAM of the tables that remapping needs, in bytes, packed as Wu 2022, section IV-F, counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemapTables {
    /// References of each flash page (RC-table).
    pub refs_bytes: u64,
    /// Two bits for each logical unit (LR-bitmap).
    pub units_bytes: u64,
    /// Pointers of the log pages on flash (RP-index).
    pub log_pages_bytes: u64,
    /// A bit for each segment of NVRAM (SV-bitmap).
    pub segments_bytes: u64,
}

impl From<onefold_ftl::RemapTables> for RemapTables {
    fn from(tables: onefold_ftl::RemapTables) -> Self {
        Self {
            refs_bytes: tables.refs,
            units_bytes: tables.units,
            log_pages_bytes: tables.log_pages,
            segments_bytes: tables.segments,
        }
    }
}
