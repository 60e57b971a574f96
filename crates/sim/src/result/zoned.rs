//! What a zoned namespace did.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ByCause, Wear, finite};

/// The zones of the device, and commands to them in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Zoned {
    /// Addresses of a zone, in bytes.
    pub zone_bytes: u64,
    /// What can be written of a sequential one, in bytes.
    pub capacity_bytes: u64,
    /// Dies that a zone stripes over.
    pub zone_dies: u64,
    /// Open zones at most; `null`: any number.
    pub max_open: Option<u64>,
    /// Active zones at most; `null`: any number.
    pub max_active: Option<u64>,
    /// Sequential zones by state at the end.
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
    /// The conventional zones, which come first; `null`: there are none.
    pub conventional: Option<Conventional>,
}

/// Conventional zones and the flash behind them. What it counts is in the sums of the whole device, too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conventional {
    /// Zones.
    pub zones: u64,
    /// Superblocks of flash.
    pub superblocks: u64,
    /// Logical / usable pages.
    #[serde(serialize_with = "finite")]
    pub rho: f64,
    /// Pages programmed by cause in the measured part.
    pub program_pages: ByCause,
    /// Superblocks erased in it.
    pub erases: u64,
    /// Erases of each superblock since the device was new.
    pub wear: Wear,
}
