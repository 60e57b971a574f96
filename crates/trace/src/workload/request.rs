//! A request of a workload.

use std::num::NonZeroU32;

use onefold_units::{Nanos, Op};

/// Where a remap takes its data from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemapFrom {
    /// First byte of the source; it is as long as the target.
    pub offset: u64,
    /// The source is unmapped afterwards, as far as it is no target.
    pub moves: bool,
}

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
    /// The range is to hold what this source holds: a remap, whose `op` is a write, since its target
    /// changes as that of a write does.
    pub remap: Option<RemapFrom>,
    /// Requests under way when a trace recorded it, itself included, where that is asked for.
    pub depth: Option<NonZeroU32>,
}

impl Request {
    /// Something to fill a batch with before its first use: a flush.
    pub const EMPTY: Self =
        Self { op: Op::Flush, fua: false, len: 0, offset: 0, at: None, remap: None, depth: None };
}
