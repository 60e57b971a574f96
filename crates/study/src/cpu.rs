//! CPU time, the only number of a result that depends on the machine.

use std::time::Duration;

/// CPU time of this thread.
#[cfg(not(test))]
pub(crate) fn thread_cpu() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// In unit tests every look at the clock is a second later than the one before: any work takes one.
#[cfg(test)]
pub(crate) fn thread_cpu() -> Duration {
    use std::cell::Cell;
    thread_local!(static LOOKS: Cell<u64> = const { Cell::new(0) });
    Duration::from_secs(LOOKS.replace(LOOKS.get() + 1))
}
