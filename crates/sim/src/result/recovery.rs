//! What the device would read if power failed at the end of the run.

use onefold_ftl::RecoveryCost;
use onefold_nand::Geometry;
use serde::{Deserialize, Serialize};

/// Cost of a recovery from a power cut at the end of the run (Wu 2022, section IV-E). All dies read in
/// parallel, NVRAM beside them; transfers and the work of the controller take no time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recovery {
    /// Bytes read from flash.
    pub flash_bytes: u64,
    /// Those of them that are pages of the remap log.
    pub log_flash_bytes: u64,
    /// Bytes read from NVRAM.
    pub nvram_bytes: u64,
    /// How long it takes.
    pub time_ns: u64,
}

impl Recovery {
    pub(crate) fn new(cost: &RecoveryCost, geometry: &Geometry) -> Self {
        let page_bytes = u64::from(geometry.slots_per_program()) * u64::from(geometry.unit_bytes());
        Self {
            flash_bytes: cost.flash_bytes(page_bytes),
            log_flash_bytes: cost.log_pages * page_bytes,
            nvram_bytes: cost.nvram_bytes,
            time_ns: cost.time.get(),
        }
    }
}
