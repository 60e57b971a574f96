//! The buffer whose speed is measured, and what it may ask.

use onefold_buffer::{
    BufferConfig, BufferError, Charge, FtlView, Policy, PolicySpec, Sizes, new_policy,
};
use onefold_units::Lpn;

const ENTRY: u32 = 4096;
const SLOTS: u64 = 32_768;

/// A policy of 32,768 entries.
pub(crate) fn build(policy: PolicySpec) -> Result<Box<dyn Policy + Send>, BufferError> {
    let bytes = SLOTS * u64::from(ENTRY);
    let config = BufferConfig { policy, bytes, charge: Charge::None, volatile: false };
    let sizes = Sizes { channels: 8, ways: 8, ..Sizes::of_one_die(ENTRY, 1 << 38) };
    new_policy(&config, &sizes)
}

/// Every page holds data, as in a file that is read.
pub(crate) struct AllMapped;

impl FtlView for AllMapped {
    fn mapped(&self, _: Lpn) -> bool {
        true
    }

    fn mapped_count(&self, _: Lpn, n: u32) -> u32 {
        n
    }
}
