//! What a zoned namespace did.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The zones of the device, and commands to them in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Zoned {
    /// Addresses of a zone, in bytes.
    pub zone_bytes: u64,
    /// What can be written of it, in bytes.
    pub capacity_bytes: u64,
    /// Dies that a zone stripes over.
    pub zone_dies: u64,
    /// Open zones at most; `null`: any number.
    pub max_open: Option<u64>,
    /// Active zones at most; `null`: any number.
    pub max_active: Option<u64>,
    /// Zones by state at the end.
    pub zones: BTreeMap<String, u64>,
    /// Zones reset.
    pub resets: u64,
    /// Zones finished before they were full.
    pub finishes: u64,
    /// Zones opened by writes.
    pub opens: u64,
    /// Zones closed by the device to open another one.
    pub implicit_closes: u64,
    /// Zones that moved away from blocks that failed.
    pub moves: u64,
    /// Sets of blocks that failed.
    pub bad_sets: u64,
}
