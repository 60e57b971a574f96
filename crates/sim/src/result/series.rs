//! Counters over time.

use serde::{Deserialize, Serialize};

use super::{ByCause, finite};

/// Counters per window of requests, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Series {
    /// Requests of one window.
    pub window_requests: u64,
    /// One point per window; the last may cover fewer requests.
    pub points: Vec<SeriesPoint>,
}

/// One window of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeriesPoint {
    /// Virtual time of the last completion of the window, since the start of the measured part.
    pub virtual_ns: u64,
    /// Pages the host wrote in the window.
    pub host_write_pages: u64,
    /// Pages the host read in the window.
    pub host_read_pages: u64,
    /// Pages the host asked to remap in the window.
    pub host_remap_pages: u64,
    /// Pages programmed in the window, by cause.
    pub program_pages: ByCause,
    /// Write amplification of the window; 0 if the host wrote nothing in it.
    #[serde(serialize_with = "finite")]
    pub waf: f64,
    /// Mean read latency of the window; 0 without reads.
    #[serde(serialize_with = "finite")]
    pub read_mean_ns: f64,
    /// Mean write latency of the window; 0 without writes.
    #[serde(serialize_with = "finite")]
    pub write_mean_ns: f64,
    /// Free superblocks at the end of the window.
    pub free_superblocks: u64,
    /// Pages with current content at the end of the window, of a drive with a block namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_pages: Option<u64>,
    /// Pages of its full superblocks without current content, then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_pages: Option<u64>,
}
