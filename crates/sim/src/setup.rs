//! What a run is of.

use onefold_config::Config;
use onefold_tracefile::Options;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Device, preconditioning, replay, and the loads.
    pub config: Config,
    /// How trace files are read.
    pub trace_options: Options,
    /// Seed of everything random.
    pub seed: u64,
    /// Version and commit, for the result.
    pub program: crate::result::Program,
}
