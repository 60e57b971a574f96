//! Why a simulation could not run.

use std::path::PathBuf;

use onefold_config::ConfigError;
use onefold_ssd::{BuildError, SsdError};
use onefold_trace::workload::WorkloadError;
use onefold_tracefile::TraceFileError;

/// Errors of [`crate::simulate`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// The configuration contradicts itself.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The device cannot be built from the configuration.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The workload text is wrong.
    #[error("workload `{text}`: {source}")]
    Workload {
        /// The text.
        text: String,
        /// What is wrong with it.
        source: WorkloadError,
    },
    /// A load with remaps for something that takes none.
    #[error(
        "workload `{text}` has remaps, which volumes and zoned namespaces do not take: drop remap_share, or run it on a \
         drive with a block namespace and without a volume"
    )]
    Remaps {
        /// The text.
        text: String,
    },
    /// The trace has remaps, and the device takes none.
    #[error(
        "{path} has {remaps} remaps, which volumes and zoned namespaces do not take: with run.remap_full=write the host \
         writes these pages instead, or run it on a drive with a block namespace and without a volume"
    )]
    TraceRemaps {
        /// The trace.
        path: PathBuf,
        /// Remaps in it.
        remaps: u64,
    },
    /// A drive remaps whole mapping units.
    #[error(
        "request {request} ({what}) is not in whole mapping units of {unit} B, which remaps are made of: use \
         ftl.indirection=4KiB, or run.align=drop to leave out such requests of a trace"
    )]
    RemapAlignment {
        /// Number of the request, from 0.
        request: u64,
        /// The request in words.
        what: String,
        /// Bytes of a mapping unit.
        unit: u32,
    },
    /// The text of the content model is wrong.
    #[error("dedup.content is `{text}`: {source}")]
    Content {
        /// The text.
        text: String,
        /// What is wrong with it.
        source: WorkloadError,
    },
    /// Contents are of pages with numbers of 32 bits.
    #[error(
        "contents of writes are modelled for at most 16 TiB, and the drive has {capacity} B: use a smaller drive, or one \
         that looks at no contents (dedup.scope=none, ftl.zeroes=program)"
    )]
    ContentPages {
        /// Capacity in bytes.
        capacity: u64,
    },
    /// The trace cannot be used.
    #[error(transparent)]
    Trace(#[from] TraceFileError),
    /// Somebody ended the run before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// The load is over before anything is measured.
    #[error(
        "the load has {requests} requests, and the first {warmup} are not measured: take a longer load, or a lower run.warmup"
    )]
    OnlyWarmUp {
        /// Requests of the load.
        requests: u64,
        /// Requests before the measured part.
        warmup: u64,
    },
    /// Nothing was asked for.
    #[error(
        "nothing to run: name a trace (--trace FILE) or a workload (--workload \
         \"randwrite,bs=4KiB,qd=32,requests=1M\")"
    )]
    NoLoad,
    /// A load of its own and tenants.
    #[error(
        "a workload or trace for the whole device excludes [[tenant]] tables: give one of them"
    )]
    TwoLoads,
    /// Open-loop replay of a trace without times.
    #[error(
        "{path} has no times, so it cannot be replayed at its own pace: \
         use --set run.mode=closed --set run.qd=32"
    )]
    Untimed {
        /// The trace.
        path: PathBuf,
    },
    /// Replay as recorded of a trace that does not tell how long requests took.
    #[error(
        "{path} does not tell how long requests took, so it cannot be replayed with as many under way as were recorded: \
         use --set run.mode=bounded --set run.qd=32"
    )]
    NoLatencies {
        /// The trace.
        path: PathBuf,
    },
    /// The load held no request.
    #[error("{name} holds no request that the device can serve: a run of nothing proves nothing")]
    Empty {
        /// Name of the load.
        name: String,
    },
    /// The tenant's range does not lie on the device.
    #[error("the range of tenant {name} is empty or leaves the device of {capacity} B")]
    Range {
        /// Name of the tenant.
        name: String,
        /// Capacity in bytes.
        capacity: u64,
    },
    /// The device failed.
    #[error("request {request} ({what}) failed: {source}")]
    Device {
        /// Number of the request, from 0.
        request: u64,
        /// The request in words.
        what: String,
        /// What happened.
        source: SsdError,
    },
    /// The zoned namespace cannot be built from the configuration.
    #[error("the zoned namespace cannot work: {0}")]
    BuildZones(#[from] onefold_ssd::zns::ZnsConfigError),
    /// A zoned namespace refused a request, or failed.
    #[error("request {request} ({what}) failed: {source}")]
    Zone {
        /// Number of the request, from 0.
        request: u64,
        /// The request in words.
        what: String,
        /// What happened.
        source: onefold_ssd::zns::ZnsError,
    },
    /// A zoned namespace reads and writes whole blocks.
    #[error(
        "request {request} ({what}) is not in whole blocks of 4 KiB, which a zoned namespace takes only"
    )]
    ZoneAlignment {
        /// Number of the request, from 0.
        request: u64,
        /// The request in words.
        what: String,
    },
    /// The volume cannot be made.
    #[error("the volume cannot be {what}: {source}")]
    VolumeMount {
        /// What failed.
        what: &'static str,
        /// Why.
        source: onefold_volume::MountError,
    },
    /// The volume refused a request for good.
    #[error("the volume refused a {what}: {refusal}")]
    Volume {
        /// What it refused.
        what: &'static str,
        /// Why.
        refusal: onefold_volume::Refusal,
    },
    /// The volume failed after the device did.
    #[error("the volume could not finish a request, because the device below failed")]
    VolumeFailed,
    /// The zoned volume cannot be made.
    #[error("the zoned volume cannot be {what}: {source}")]
    ZonedMount {
        /// What failed.
        what: &'static str,
        /// Why.
        source: onefold_zoned::MountError,
    },
    /// The zoned volume refused a request.
    #[error("the zoned volume refused request {request} ({what}): {refusal}")]
    ZonedRefused {
        /// Number of the request, from 0.
        request: u64,
        /// What it was.
        what: &'static str,
        /// Why.
        refusal: onefold_zoned::Refusal,
    },
    /// The zoned volume could not do a request.
    #[error("request {request} ({what}) failed: {failure}")]
    ZonedVolume {
        /// Number of the request, from 0.
        request: u64,
        /// What it was.
        what: &'static str,
        /// Why.
        failure: onefold_zoned::Failure,
    },
    /// Requests wait for a volume that waits for nothing: a defect of it.
    #[error(
        "requests wait for a volume that waits for nothing: this is a defect, please report it"
    )]
    VolumeStuck,
    /// The run cannot be stopped and continued.
    #[error(transparent)]
    Checkpoint(#[from] crate::CheckpointError),
    /// A law every run obeys was broken: a defect of the simulator.
    #[error("the run broke a law of accounting: {0}")]
    Law(String),
}
