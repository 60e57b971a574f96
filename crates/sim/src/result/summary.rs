//! Latency in a result: summaries and distributions.

use serde::{Deserialize, Serialize};

use super::finite;

/// Latency of a set of requests, in nanoseconds. All zero if the set is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencySummary {
    /// Requests.
    pub count: u64,
    /// Mean.
    #[serde(serialize_with = "finite")]
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90 % of the requests are at least as fast.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// 99.99 %.
    pub p9999: u64,
    /// The slowest request.
    pub max: u64,
}

/// Latency by operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencySummaries {
    /// Reads.
    pub read: LatencySummary,
    /// Writes.
    pub write: LatencySummary,
    /// Trims.
    pub trim: LatencySummary,
    /// Flushes.
    pub flush: LatencySummary,
    /// Remaps; absent of a load without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remap: Option<LatencySummary>,
}

/// Latency of one operation by what the requests waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DelaySummaries {
    /// Requests that waited for nothing.
    pub none: LatencySummary,
    /// Requests that waited for other requests of the host.
    pub host: LatencySummary,
    /// Requests that waited for background work: GC, metadata, buffer flushes.
    pub background: LatencySummary,
}

/// Latency by operation and cause of delay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyByDelay {
    /// Reads.
    pub read: DelaySummaries,
    /// Writes.
    pub write: DelaySummaries,
}

/// One point of a latency distribution: `[ns, share of requests slower]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CcdfPoint(
    /// Latency in nanoseconds.
    pub u64,
    /// Share of the requests that took longer, from 0 to 1.
    #[serde(serialize_with = "finite")]
    pub f64,
);

/// Latency distributions, in the order of latency, with at most
/// [`CCDF_POINTS_MAX`](super::CCDF_POINTS_MAX) points each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyCcdf {
    /// Reads.
    pub read: Vec<CcdfPoint>,
    /// Writes.
    pub write: Vec<CcdfPoint>,
}
