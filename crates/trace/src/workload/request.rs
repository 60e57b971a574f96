//! A request of a workload.

use std::num::NonZeroU32;

use onefold_units::{Nanos, Op};

/// One request of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub op: Op,
    /// Whether a write has to be durable when it completes.
    pub fua: bool,
    /// Size in bytes; 0 for a flush.
    pub len: u32,
    /// First byte on the device; 0 for a flush.
    pub offset: u64,
    /// Open loop: when the request is issued, from the start of the workload.
    pub at: Option<Nanos>,
    /// Requests under way when a trace recorded it, itself included, where that is asked for.
    pub depth: Option<NonZeroU32>,
}

impl Request {
    /// Something to fill a batch with before its first use: a flush.
    pub const EMPTY: Self =
        Self { op: Op::Flush, fua: false, len: 0, offset: 0, at: None, depth: None };
}
