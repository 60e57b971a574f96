//! What a zoned volume between the load and its devices did.

use std::collections::BTreeMap;

use onefold_zoned::Sent;
use serde::{Deserialize, Serialize};

use super::finite;

/// The zoned volume in the measured part (zoned.md, section 8). Pages are 4 KiB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ZonedVolume {
    /// How it places what is written.
    pub policy: String,
    /// What becomes of the journal.
    pub journal: String,
    /// A zone, in bytes.
    pub zone_bytes: u64,
    /// Chunks exported.
    pub chunks: u64,
    /// Zones of the regular device for data, or conventional zones where there is none.
    pub cache_zones: u64,
    /// Those free at the end.
    pub free_cache_zones: u64,
    /// Sequential zones free at the end, reserved ones not counted.
    pub free_sequential_zones: u64,
    /// Reserved zones free at the end.
    pub free_reserved_zones: u64,
    /// The regular device, if there is one, and the zoned one.
    pub devices: Vec<ZonedDevice>,
    /// Reclaims by action.
    pub reclaims: BTreeMap<String, Reclaims>,
    /// Sleeps of requests by reason.
    pub waits: BTreeMap<String, Waits>,
    /// Pages written to all devices / pages the load wrote.
    #[serde(serialize_with = "finite")]
    pub phys_per_user: f64,
    /// Valid pages copied, those thrown away included: "valid page copies" of Choi 2022.
    pub valid_copies: u64,
    /// Those of the journal among them.
    pub journal_copies: u64,
    /// Pages of the journal written outside its pinned chunk or its zone set.
    pub journal_outside_pages: u64,
    /// How often another zone took the journal than before.
    pub journal_moves: u64,
    /// Where the journal went, one entry for each move, the first 4,096 of them (Choi 2022, Fig. 3).
    pub journal_path: Vec<JournalZone>,
    /// Zones that are the journal's at the end.
    pub journal_zones: u64,
    /// Pinned chunks that were moved out of a sequential zone.
    pub journal_merges: u64,
    /// Times that the journal lost zones, because it was elsewhere or gone.
    pub journal_demotions: u64,
    /// Metadata flushes that wrote something.
    pub metadata_flushes: u64,
}

/// From when on the journal was written to a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JournalZone {
    /// Pages of the journal written to other zones before, from the start of the measured part.
    pub before_pages: u64,
    /// Virtual time of its first page.
    pub at_ns: u64,
    /// Number of the zone, over both devices: the regular one comes first.
    pub zone: u32,
}

/// What a device was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ZonedDevice {
    /// `regular` or `zoned`.
    pub name: String,
    /// Pages written, by cause.
    pub sent_pages: BTreeMap<String, u64>,
    /// Pages read for the load.
    pub read_pages: u64,
    /// Pages read for copying.
    pub copy_read_pages: u64,
    /// Flushes.
    pub flushes: u64,
    /// Zones reset.
    pub resets: u64,
}

/// How reclaims ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reclaims {
    /// Begun.
    pub started: u64,
    /// Done.
    pub completed: u64,
    /// Given up because the load wanted the zone.
    pub aborted: u64,
    /// Given up because a device failed.
    pub failed: u64,
    /// Valid pages of the zones that were begun.
    pub started_weight: u64,
}

/// Sleeps of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Waits {
    /// How many, each at most a second long.
    pub count: u64,
    /// How long they were, all together.
    pub total_ns: u64,
}

impl ZonedVolume {
    /// Pages written for a cause, to all devices.
    #[must_use]
    pub fn sent(&self, cause: &str) -> u64 {
        let of = |device: &ZonedDevice| device.sent_pages.get(cause).copied().unwrap_or(0);
        self.devices.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Those of `valid_copies` that went to devices of this name.
    #[must_use]
    pub fn valid_copies_to(&self, name: &str) -> u64 {
        let to = self.devices.iter().filter(|device| device.name == name);
        let causes = Sent::COPIES.map(Sent::name);
        let of = |device: &ZonedDevice| {
            let sent = causes.iter().filter_map(|cause| device.sent_pages.get(*cause));
            sent.fold(0, |sum: u64, pages| sum.saturating_add(*pages))
        };
        to.map(of).fold(0, u64::saturating_add)
    }

    /// Reclaims of every action: started and aborted.
    #[must_use]
    pub fn reclaims_total(&self) -> (u64, u64) {
        let add = |(started, aborted): (u64, u64), one: &Reclaims| {
            (started.saturating_add(one.started), aborted.saturating_add(one.aborted))
        };
        self.reclaims.values().fold((0, 0), add)
    }
}
