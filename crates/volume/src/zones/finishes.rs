//! Zones that have to be finished (`crate::zones`, invariant 3).

use onefold_units::{LogSegmentId, Nanos};

/// Zones that are left before they are full.
#[derive(Debug, Default)]
pub(crate) struct Finishes {
    /// Those that still have batches under way.
    pub(crate) wanted: Vec<LogSegmentId>,
    pub(crate) under_way: u32,
    /// Those that could not be finished and may still be active: when that is tried again, unless it is, and after how many failures.
    pub(crate) later: Vec<(LogSegmentId, Option<Nanos>, u32)>,
    /// A zone beside those of streams and roots is written: no zone of this use or a later one is begun.
    pub(crate) held: Option<u64>,
}
