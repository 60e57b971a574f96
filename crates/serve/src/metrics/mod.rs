//! Metrics over HTTP: `/metrics` in the Prometheus text format, `/api/v1/stats` as JSON and
//! `/healthz` (frontends.md, section 10). Read-only, on its own thread and its own address.

mod http;
mod json;
mod page;
mod text;
mod volume;

use std::sync::Arc;
use std::time::Instant;

use onefold_device::BlockDevice;
use onefold_device::observed::{
    DeviceSnapshot, DeviceStats, Observed, ObservedCounts, RecordCounts,
};

use crate::memory::ConnectionMemory;
use crate::nbd::{ConnectionError, Registry};

pub(crate) use http::Endpoint;

/// Everything that is reported, taken at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub uptime_s: f64,
    pub observed: ObservedCounts,
    pub device: Option<DeviceSnapshot>,
    pub recording: Option<RecordCounts>,
    pub nbd_connections: u64,
    pub nbd_memory: ConnectionMemory,
    pub nbd_errors: Vec<(ConnectionError, u64)>,
}

/// Where snapshots come from.
pub(crate) trait Source: Send + Sync {
    fn snapshot(&self) -> Snapshot;
}

/// The numbers of one server.
pub(crate) struct Live<D: BlockDevice> {
    pub observed: Observed<D>,
    pub registry: Arc<Registry>,
    pub start: Instant,
}

impl<D: BlockDevice + DeviceStats> Source for Live<D> {
    fn snapshot(&self) -> Snapshot {
        let kinds = ConnectionError::ALL.into_iter();
        Snapshot {
            uptime_s: self.start.elapsed().as_secs_f64(),
            observed: self.observed.counts(),
            device: self.observed.device().snapshot(),
            recording: self.observed.recorder().map(onefold_device::observed::Recorder::counts),
            nbd_connections: onefold_units::convert::u64_from(self.registry.len()),
            nbd_memory: self.registry.memory(),
            nbd_errors: kinds.map(|kind| (kind, self.registry.errors(kind))).collect(),
        }
    }
}
