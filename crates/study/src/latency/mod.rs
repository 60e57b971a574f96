//! How long requests take.
//!
//! Jeong 2021 names neither geometry nor times nor what its latency is made of, so a study can take
//! several models side by side ([`LatencyModel`]): a request alone on the device ([`service`]) or
//! among others ([`queued`]), its flash pages spread over all dies or on one of them, and victims
//! that it waits for or that are written in the background; or flash operations, counted
//! ([`counted`]). None of them collects garbage; `onefold sim` models that.

mod clocks;
mod counted;
mod device;
mod model;
mod queued;
mod service;

use std::sync::Arc;

use onefold_buffer::{Counts, Req};

pub use model::{LatencyChoice, LatencyModel, ModelKind, Placement, WB_SLOTS_MOST};

pub(crate) use clocks::Clocks;
use counted::Counted;
pub(crate) use device::Device;
use queued::Queued;
use service::Service;

/// A model at work for one buffer.
#[derive(Clone, Debug)]
pub(crate) enum Timer {
    /// Without a past: buffers share its tables.
    Service(Arc<Service>),
    Queued(Box<Queued>),
    Counted(Counted),
}

impl Timer {
    pub(crate) fn new(device: Device, model: LatencyModel) -> Self {
        match model.kind {
            ModelKind::Service => Self::Service(Arc::new(Service::new(device, model))),
            ModelKind::Queued => Self::Queued(Box::new(Queued::new(device, model))),
            ModelKind::Counted => Self::Counted(Counted::new(device)),
        }
    }

    /// Nanoseconds that a request takes which makes so many look-ups, flash reads and programs.
    #[inline]
    pub(crate) fn time(&mut self, req: &Req, counts: Counts) -> u64 {
        match self {
            Self::Service(service) => service.time(req.n, counts),
            Self::Queued(queued) => queued.time(req, counts),
            Self::Counted(counted) => counted.time(req.n, counts),
        }
    }

    /// Nanoseconds that a tenant still owes for the programs of its pages.
    pub(crate) const fn owed(&self, programs: u64) -> u64 {
        match self {
            Self::Service(_) | Self::Queued(_) => 0,
            Self::Counted(counted) => counted.programs(programs),
        }
    }
}
