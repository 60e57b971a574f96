//! The modes of the papers: against plain arrays of blocks, and under faults and power cuts.

#![expect(clippy::print_stdout, reason = "says how many crash states were checked")]

mod array;
mod crash;
#[expect(dead_code, reason = "some of it is for mode `log`, whose tests have it as well")]
#[path = "../../../volume/tests/volume/harness/mod.rs"]
mod harness;

/// Volumes of any mode, for the harness.
mod engine {
    use onefold_volume::Volume;

    pub(crate) use onefold_modes::{format, inspect, open};

    /// Only mode `log` has journals, and none of its volumes is tested here.
    pub(crate) fn set_journal(_volume: &mut Volume, _first: u64, _hot: u64, _blocks: u64) {}
}
