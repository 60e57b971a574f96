//! What is counted where a load meets a stack.

use onefold_ssd::HostStats;

/// Requests that were not taken at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stalls {
    pub(crate) requests: u64,
    pub(crate) ns: u64,
    pub(crate) max_ns: u64,
    /// Without the time in which the layer was short of space.
    pub(crate) max_paced_ns: u64,
}

impl Stalls {
    /// Adds a wait of `ns`, of which `paced_ns` while the layer could have gone on.
    pub(crate) const fn add(&mut self, ns: u64, paced_ns: u64) {
        self.requests += 1;
        self.ns += ns;
        if ns > self.max_ns {
            self.max_ns = ns;
        }
        if paced_ns > self.max_paced_ns {
            self.max_paced_ns = paced_ns;
        }
    }
}

/// What is counted at the top of a stack.
#[derive(Default)]
pub(crate) struct Top {
    /// What the load asked for in the measured part.
    pub(crate) host: HostStats,
    pub(crate) stalls: Stalls,
    /// Requests that ended, those before the measured part included.
    pub(crate) executed: u64,
}
