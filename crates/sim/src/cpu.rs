//! The one speed meter of the simulator.

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this thread in seconds.
pub(crate) fn thread_cpu_s() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    // Both parts are non-negative and far below 2^53.
    #[expect(clippy::cast_precision_loss, reason = "seconds and nanoseconds of CPU time")]
    let parts = (now.tv_sec as f64, now.tv_nsec as f64);
    parts.0 + parts.1 * 1e-9
}
