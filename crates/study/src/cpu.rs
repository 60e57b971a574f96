//! CPU time, the only number of a result that depends on the machine.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this thread.
pub(crate) fn thread_cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
