//! The result of one point of the grid.

use onefold_buffer::{Accesses, AreaHits, AreaStats, Stats, TenantStats};
use onefold_sim::result::RunResult;
use onefold_units::convert::float;
use serde::{Deserialize, Serialize};

use crate::file::{Coordinate, Study, Subject, Workload};
use crate::numbers::Kept;
use crate::series::Windows;

/// Version and commit of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Program {
    /// Version.
    pub version: String,
    /// Commit, if it was built from one.
    pub commit: String,
}

/// One point: a policy or bound of one size on one workload. Pages are entries of the buffer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// Digest of everything that determines the point.
    pub key: String,
    /// Where it lies: a value on each axis of the study that it has one on.
    pub axes: Vec<Coordinate>,
    /// Name of the workload.
    pub workload: String,
    /// Policy with its parameters, or bound.
    pub policy: String,
    /// Name of the policy in figures.
    pub label: String,
    /// Whether it is a bound.
    pub bound: bool,
    /// Size of the buffer in bytes.
    pub size_bytes: u64,
    /// Entries in it, after the tables of the policy.
    pub slots: u32,
    /// Why there are no numbers.
    pub error: Option<String>,
    /// Part of the workload that was run.
    pub scale: f64,
    /// Seed of the study.
    pub seed: u64,
    /// The program.
    pub onefold: Program,
    /// Requests after the warm-up.
    pub requests: u64,
    /// Look-ups in tables of the policy.
    pub lookups: u64,
    /// Per source of the workload.
    pub tenants: Vec<TenantRow>,
    /// Per list of the policy.
    pub areas: Vec<AreaRow>,
    /// What the simulator reported, if the point is a run of it, without what tables have no use for: the configuration,
    /// distributions and series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RunResult>>,
    /// Its numbers, if it comes from a kept table instead.
    #[serde(skip)]
    pub kept: Option<Box<Kept>>,
    /// CPU seconds of the policy or of the run with its preconditioning: the only number that depends on the machine.
    pub cpu_s: f64,
}

/// What one tenant met.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantRow {
    /// Name of the source.
    pub name: String,
    /// Whether its hit ratio is the question.
    pub target: bool,
    /// Reads.
    pub reads: AccessRow,
    /// Writes.
    pub writes: AccessRow,
    /// TRIM requests.
    pub trim_requests: u64,
    /// Pages of TRIM requests.
    pub trim_pages: u64,
    /// FLUSH requests.
    pub flushes: u64,
    /// FUA write requests.
    pub fua_writes: u64,
    /// Pages read from flash to serve reads.
    pub flash_reads: u64,
    /// Pages read from flash to complete written ones.
    pub pad_reads: u64,
    /// Pages programmed.
    pub pages_programmed: u64,
    /// Programs of a flash page.
    pub programs: u64,
    /// Programs that do not fill their flash page.
    pub short_programs: u64,
    /// Writes to dirty pages.
    pub overwritten: u64,
    /// Dirty pages discarded by TRIM.
    pub trim_discards: u64,
    /// Dirty pages left in the buffer.
    pub dirty: u64,
    /// Where the pages were that hit, by area of the policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub area_hits: Vec<AreaHitsRow>,
    /// Latencies by the first latency model of the study.
    pub latency_ns: LatencyRow,
    /// Latencies by its other models, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_latencies_ns: Vec<LatencyRow>,
}

/// Pages of a tenant that hit in one area.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AreaHitsRow {
    /// Name of the area.
    pub name: String,
    /// Pages read.
    pub reads: u64,
    /// Pages written.
    pub writes: u64,
}

/// Reads or writes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccessRow {
    /// Requests.
    pub requests: u64,
    /// Requests all of whose pages hit.
    pub full_hits: u64,
    /// Pages.
    pub pages: u64,
    /// Pages that hit.
    pub hits: u64,
    /// Bytes.
    pub bytes: u64,
    /// Bytes that hit.
    pub bytes_hit: u64,
}

/// Latencies of reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyRow {
    /// Reads.
    pub read: Latency,
    /// Writes.
    pub write: Latency,
}

/// Latency of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// Requests.
    pub requests: u64,
    /// Sum over all of them, in nanoseconds.
    pub sum: u64,
    /// Mean, in nanoseconds.
    pub mean: f64,
}

/// What one list of a policy did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AreaRow {
    /// Name.
    pub name: String,
    /// Entries evicted.
    pub evictions: u64,
    /// Dirty entries programmed.
    pub write_backs: u64,
}

impl AreaHitsRow {
    fn new(hits: &AreaHits) -> Self {
        Self { name: hits.name.to_owned(), reads: hits.reads, writes: hits.writes }
    }
}

impl LatencyRow {
    fn finished(&self) -> Self {
        Self { read: self.read.finished(), write: self.write.finished() }
    }
}

impl Latency {
    #[inline]
    pub(crate) fn add(&mut self, ns: u64) {
        self.requests += 1;
        self.sum += ns;
    }

    /// With the mean of what was added.
    pub(crate) fn finished(mut self) -> Self {
        self.mean = ratio(self.sum, self.requests);
        self
    }
}

/// `over` / `under`, and 0 where that is undefined.
pub(crate) fn ratio(over: u64, under: u64) -> f64 {
    if under == 0 { 0.0 } else { float(over) / float(under) }
}

impl AccessRow {
    fn new(accesses: &Accesses, entry_bytes: u32) -> Self {
        Self {
            requests: accesses.requests,
            full_hits: accesses.full_hits,
            pages: accesses.pages,
            hits: accesses.hits,
            bytes: accesses.pages * u64::from(entry_bytes),
            bytes_hit: accesses.bytes_hit,
        }
    }
}

impl TenantRow {
    pub(crate) fn new(stats: &TenantStats, latencies: &[LatencyRow], entry_bytes: u32) -> Self {
        let mut latencies = latencies.iter().map(LatencyRow::finished);
        Self {
            name: String::new(),
            target: false,
            reads: AccessRow::new(&stats.reads, entry_bytes),
            writes: AccessRow::new(&stats.writes, entry_bytes),
            trim_requests: stats.trim_requests,
            trim_pages: stats.trim_pages,
            flushes: stats.flushes,
            fua_writes: stats.fua_writes,
            flash_reads: stats.flash_reads,
            pad_reads: stats.pad_reads,
            pages_programmed: stats.pages_programmed,
            programs: stats.programs,
            short_programs: stats.short_programs,
            overwritten: stats.overwritten,
            trim_discards: stats.trim_discards,
            dirty: stats.dirty,
            area_hits: Vec::new(),
            latency_ns: latencies.next().unwrap_or_default(),
            other_latencies_ns: latencies.collect(),
        }
    }
}

impl Row {
    /// The windows of a run, from its result or from a kept table; `None` if it has no series.
    pub(crate) fn windows(&self) -> Option<Windows> {
        match &self.kept {
            Some(kept) => kept.windows.clone(),
            None => Windows::of(self.result.as_ref()?),
        }
    }

    /// Takes over what a buffer counted, and the latencies of each model per tenant.
    pub(crate) fn fill(&mut self, stats: &Stats, latencies: &[&[LatencyRow]], entry_bytes: u32) {
        self.lookups = stats.lookups;
        for (tenant, row) in (0_u8..=u8::MAX).zip(&mut self.tenants) {
            let of_tenant = |rows: &&[LatencyRow]| rows.get(usize::from(tenant)).copied();
            let latencies: Vec<LatencyRow> = latencies.iter().filter_map(of_tenant).collect();
            let filled = TenantRow::new(&stats.tenant(tenant), &latencies, entry_bytes);
            let area_hits = stats.hits_by_area(tenant).iter().map(AreaHitsRow::new).collect();
            let name = std::mem::take(&mut row.name);
            *row = TenantRow { name, target: row.target, area_hits, ..filled };
        }
        let area = |area: &AreaStats| AreaRow {
            name: area.name.to_owned(),
            evictions: area.evictions(),
            write_backs: area.write_backs(),
        };
        self.areas = stats.areas().iter().filter(|area| area.name != "ghosts").map(area).collect();
    }

    /// Takes the names from the study, which may have changed since.
    pub(crate) fn named(mut self, study: &Study, workload: &Workload, subject: &Subject) -> Self {
        self.axes = study.coordinates(workload, (subject, self.size_bytes), self.seed);
        self.workload.clone_from(&workload.name);
        self.policy = subject.to_string();
        self.label = study.label(subject);
        self.bound = subject.is_bound();
        self.tenants.resize(workload.sources.len(), TenantRow::default());
        for (tenant, source) in self.tenants.iter_mut().zip(&workload.sources) {
            tenant.name.clone_from(&source.name);
            tenant.target = source.is_target;
        }
        self
    }
}
