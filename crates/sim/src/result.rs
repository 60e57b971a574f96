//! The result of a run: the JSON object `onefold.sim/1` (design.md, section 5; docs/results.md).
//!
//! Fields stand in the order in which they are printed. Keys are only ever added, so that a reader
//! of version 1 reads every later result of version 1: unknown keys are ignored, and keys younger
//! than the first release may be absent. Times are nanoseconds, pages are 4 KiB, floats are finite.

mod buffer;
mod causes;
mod columns;
mod human;
mod labels;
mod read;
mod recovery;
mod remap;
mod rows;
mod series;
mod stack;
mod summary;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod volume;
mod zoned;
mod zoned_volume;

use onefold_units::convert::float;
use serde::{Deserialize, Serialize, Serializer};

pub use buffer::{Area, Buffer};
pub use causes::ByCause;
pub use columns::{Column, ColumnKind, column, columns, measured};
pub use human::{bytes, count, duration, pages_in_out, percent, significant};
pub(crate) use human::{share, si, trimmed};
pub use labels::labels;
pub use read::ResultError;
pub use recovery::Recovery;
pub use remap::{Remap, RemapTables};
pub(crate) use rows::{Row, causes, rows, version};
pub use series::{Series, SeriesPoint};
pub use stack::StackPlace;
pub use summary::{
    CcdfPoint, DelaySummaries, LatencyByDelay, LatencyCcdf, LatencySummaries, LatencySummary,
};
pub use table::table;
pub use volume::{Stalls, Volume};
pub use zoned::{Conventional, Zoned};
pub use zoned_volume::{JournalZone, Reclaims, Waits, ZonedDevice, ZonedVolume};

/// Name and version of the result format, as its key `schema`.
pub const SCHEMA: &str = "onefold.sim/1";
/// Bytes of a page in every count of pages.
pub const PAGE_BYTES: u64 = 4096;
/// Most points of one latency distribution.
pub const CCDF_POINTS_MAX: usize = 200;
/// Bins of the histogram of valid slots.
pub const VALID_BINS: usize = 20;

/// Everything one run reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`SCHEMA`].
    pub schema: String,
    /// The program that ran.
    pub onefold: Program,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// Whether the run was interrupted: every number then describes the part before.
    #[serde(default)]
    pub partial: bool,
    /// The complete configuration, defaults included.
    pub config: serde_json::Value,
    /// SHA-256 of the configuration in canonical form, in hexadecimal.
    #[serde(default)]
    pub config_sha256: String,
    /// The trace; `null` if a generated workload ran.
    pub trace: Option<TraceSource>,
    /// What the host asked for.
    pub host: Host,
    /// The DRAM buffer.
    #[serde(default)]
    pub buffer: Buffer,
    /// What flash did.
    pub flash: Flash,
    /// The flash translation layer.
    pub ftl: Ftl,
    /// Write amplification: pages programmed for any cause / pages the host wrote; 0 without writes.
    #[serde(serialize_with = "finite")]
    pub waf: f64,
    /// Latency by operation.
    pub latency_ns: LatencySummaries,
    /// Virtual time from the first measured request to the last completion.
    pub virtual_ns: u64,
    /// User CPU seconds of the measured part.
    #[serde(default, serialize_with = "finite")]
    pub cpu_s: f64,
    /// Host pages plus pages moved internally.
    #[serde(default)]
    pub page_ops: u64,
    /// The generated workload as it was asked for; `null` if a trace ran.
    #[serde(default)]
    pub workload: Option<String>,
    /// The modelled device.
    #[serde(default)]
    pub device: Device,
    /// Latency by operation and by what the request waited for.
    #[serde(default)]
    pub latency_by_delay: LatencyByDelay,
    /// Latency distribution: the share of requests slower than a time.
    #[serde(default)]
    pub latency_ccdf: LatencyCcdf,
    /// Counters per window of requests.
    #[serde(default)]
    pub series: Series,
    /// State of the superblocks at the end.
    #[serde(default)]
    pub superblocks: Superblocks,
    /// Laws every run must obey, as measured.
    #[serde(default)]
    pub checks: Checks,
    /// One entry per tenant; empty unless several ran.
    #[serde(default)]
    pub tenants: Vec<Tenant>,
    /// How the device was prepared; `null` if it was fresh.
    #[serde(default)]
    pub precondition: Option<Precondition>,
    /// The demand-paged map; `null` if the whole map is in DRAM.
    #[serde(default)]
    pub map_cache: Option<MapCache>,
    /// Injected faults that were met; `null` if there were none.
    #[serde(default)]
    pub faults: Option<Faults>,
    /// Remapping and deduplication; `null` on a device that does neither and is not asked to.
    #[serde(default)]
    pub remap: Option<Remap>,
    /// What recovery would read if power failed at the end; `null` where that is not modelled.
    #[serde(default)]
    pub recovery: Option<Recovery>,
    /// The volume between the load and the device; `null` without one.
    #[serde(default)]
    pub volume: Option<Volume>,
    /// The zones of a zoned namespace; `null` on a block namespace.
    #[serde(default)]
    pub zoned: Option<Zoned>,
    /// The zoned volume between the load and two devices; `null` without one.
    #[serde(default)]
    pub zoned_volume: Option<ZonedVolume>,
    /// The places of a stack of layers, devices first; empty for a load on a device, and for one
    /// volume on devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<StackPlace>,
    /// Bytes that the host read, wrote and remapped per second of virtual time: a remapped or
    /// deduplicated page counts like one that was programmed.
    #[serde(default, serialize_with = "finite")]
    pub bandwidth: f64,
    /// What a reader should know before trusting the numbers.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// The program that wrote a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Program {
    /// Version of Onefold.
    pub version: String,
    /// Commit it was built from; empty if unknown.
    pub commit: String,
}

/// The trace of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceSource {
    /// Path as given.
    pub path: String,
    /// Name of the format it was read in.
    pub format: String,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// Requests read from it.
    pub requests: u64,
    /// Requests that were left out, in all passes: those off the grid with `run.align=drop`, and what
    /// the device does not take. With several tenants those of all traces.
    pub skipped: u64,
    /// How often it was replayed.
    pub passes: u32,
    /// How they were sent: `dependencies` or, of a trace without ends, `flushes`; `open`, `closed`,
    /// `bounded`.
    pub replay: String,
}

/// What the host asked for in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Read requests.
    pub read_requests: u64,
    /// Write requests.
    pub write_requests: u64,
    /// Trim requests.
    pub trim_requests: u64,
    /// Flush requests.
    pub flush_requests: u64,
    /// Pages read.
    pub read_pages: u64,
    /// Pages written.
    pub write_pages: u64,
    /// Pages trimmed.
    pub trim_pages: u64,
    /// Remap commands.
    pub remap_requests: u64,
    /// Pages they were to remap.
    pub remap_pages: u64,
    /// Requests that failed, as flash could not be read; they have no latency.
    pub failed_requests: u64,
}

impl Host {
    /// Requests of every kind.
    #[must_use]
    pub fn requests(&self) -> u64 {
        let requests = [
            self.read_requests,
            self.write_requests,
            self.trim_requests,
            self.flush_requests,
            self.remap_requests,
        ];
        requests.into_iter().fold(0, u64::saturating_add)
    }
}

/// What flash did in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Flash {
    /// Pages programmed, by cause.
    pub program_pages: ByCause,
    /// Pages read, by cause.
    pub read_pages: ByCause,
    /// Pages of the host that no program was spent on.
    pub saved_pages: SavedPages,
    /// Superblocks erased.
    pub erases: u64,
    /// Erase counts of the superblocks over the life of the device.
    pub wear: Wear,
}

/// Pages of units that the host wrote and that were not programmed, by the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedPages {
    /// They share a page that the host had read: copies.
    pub copy_read: u64,
    /// They share a page that the host had written, and not read since.
    pub copy_write: u64,
    /// They were all zeroes and are unmapped instead.
    pub zero: u64,
}

impl From<onefold_ftl::SavedPages> for SavedPages {
    fn from(saved: onefold_ftl::SavedPages) -> Self {
        let onefold_ftl::SavedPages { copy_read, copy_write, zero } = saved;
        Self { copy_read, copy_write, zero }
    }
}

/// Erase counts over all superblocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wear {
    /// Fewest erases of a superblock.
    pub min: u64,
    /// Erases per superblock.
    #[serde(serialize_with = "finite")]
    pub mean: f64,
    /// Most erases of a superblock.
    pub max: u64,
}

/// The flash translation layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ftl {
    /// Logical pages / usable pages (ssd.md, 1.1).
    #[serde(serialize_with = "finite")]
    pub rho: f64,
    /// Physical pages that can hold host data, without reserved ones.
    pub usable_pages: u64,
    /// Pages the host can address.
    pub logical_pages: u64,
    /// Superblocks kept free for garbage collection.
    pub reserve_superblocks: u64,
    /// Slots taken by head, tail and translation pages.
    pub metadata_slots: u64,
    /// Superblocks of the device.
    pub superblocks: u64,
    /// Superblocks out of service.
    pub bad_superblocks: u64,
    /// Slots for data in one superblock.
    pub data_slots: u64,
    /// Name of the victim policy.
    pub victim: String,
}

/// The modelled device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// Preset the configuration extends; `null` if none.
    pub preset: Option<String>,
    /// Name for tables and plots.
    pub name: String,
    /// Bytes the host can address.
    pub logical_bytes: u64,
    /// Bytes of flash.
    pub raw_bytes: u64,
    /// Spare area as vendors say it: `raw_bytes` / `logical_bytes` - 1. A volume's own spare is part of it.
    #[serde(serialize_with = "finite")]
    pub op: f64,
}

impl Device {
    /// The same device with its sizes.
    #[must_use]
    pub fn sized(self, logical_bytes: u64, raw_bytes: u64) -> Self {
        let op = share(float(raw_bytes), float(logical_bytes)) - 1.0;
        Self { logical_bytes, raw_bytes, op, ..self }
    }
}

/// State of the superblocks at the end of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Superblocks {
    /// Superblocks by their share of valid slots, in [`VALID_BINS`] equal bins from 0 to 1.
    pub valid_histogram: Vec<u64>,
    /// Slots of one superblock.
    pub slots: u64,
}

/// Laws every run must obey, as measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Checks {
    /// Little's law; `null` if too few requests completed.
    pub littles_law: Option<LittlesLaw>,
}

/// Little's law: requests in flight = completion rate x latency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LittlesLaw {
    /// Mean requests in flight, integrated over virtual time.
    #[serde(serialize_with = "finite")]
    pub in_flight_mean: f64,
    /// Completions per ns x mean latency in ns.
    #[serde(serialize_with = "finite")]
    pub rate_x_latency: f64,
    /// |difference| / `in_flight_mean`.
    #[serde(serialize_with = "finite")]
    pub relative_error: f64,
}

/// One of several tenants, in the shapes of the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tenant {
    /// Name of the tenant.
    pub name: String,
    /// What it asked for.
    pub host: Host,
    /// Its latency by operation.
    pub latency_ns: LatencySummaries,
    /// Its use of the DRAM buffer.
    pub buffer: Buffer,
}

/// How the device was prepared before the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Precondition {
    /// Share of the logical space written sequentially.
    #[serde(serialize_with = "finite")]
    pub fill: f64,
    /// Drive writes of random overwrites.
    #[serde(serialize_with = "finite")]
    pub overwrite_drive_writes: f64,
    /// Write amplification of the last window of preconditioning.
    #[serde(serialize_with = "finite")]
    pub waf_last: f64,
    /// User CPU seconds it took.
    #[serde(serialize_with = "finite")]
    pub cpu_s: f64,
}

/// Injected faults that were met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Faults {
    /// Flash reads and programs that failed.
    pub media_failures: u64,
    /// Reads that needed retries.
    pub slow_reads: u64,
    /// Programs that needed more pulses.
    pub slow_programs: u64,
    /// Superblocks that were emptied because a read of them needed retries or failed.
    pub relocated_superblocks: u64,
    /// Dies that failed in the life of the drive, 0 or 1.
    pub failed_dies: u64,
    /// 4 KiB pages of the host that lie on it.
    pub lost_pages: u64,
}

/// The cache of a demand-paged map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MapCache {
    /// Lookups answered from DRAM.
    pub hits: u64,
    /// Lookups that read a translation page.
    pub misses: u64,
}

impl RunResult {
    /// The result as indented JSON with a final line break, keys in documented order.
    ///
    /// Floats are always finite: an undefined ratio is 0 and an infinite one the largest float.
    #[must_use]
    pub fn to_json_pretty(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .expect("a result has only string keys, so it has a JSON form");
        text.push('\n');
        text
    }

    /// The name of the device for tables and plots.
    #[must_use]
    pub fn device_name(&self) -> &str {
        let preset = self.device.preset.as_deref().unwrap_or_default();
        [self.device.name.as_str(), preset].into_iter().find(|s| !s.is_empty()).unwrap_or("custom")
    }

    /// What drove the run: the trace's file name or the workload.
    #[must_use]
    pub fn source_name(&self) -> String {
        match (&self.trace, &self.workload) {
            (Some(trace), _) if !trace.path.is_empty() => {
                let name = trace.path.rsplit('/').next().unwrap_or_default();
                if name.is_empty() { trace.path.clone() } else { name.to_owned() }
            }
            (_, Some(workload)) => workload.clone(),
            _ => "unknown".to_owned(),
        }
    }
}

/// Writes a float that every JSON reader accepts: JSON has no NaN and no infinity.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn finite<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let value = if value.is_nan() { 0.0 } else { value.clamp(f64::MIN, f64::MAX) };
    serializer.serialize_f64(value)
}
