//! Buffers for tests.

use onefold_buffer::{BufferConfig, BufferError, Charge, Policy, PolicySpec, Sizes, new_policy};

/// The policies, with blocks that the streams fill where a policy has blocks.
pub(crate) const BUILT: [&str; 8] = [
    "lru",
    "vbbms",
    "vbbms:random=1/4,random_block=3,longest=2",
    "fab",
    "fab:block=4",
    "bplru",
    "bplru:block=4",
    "bplru:block=1",
];

/// A buffer of exactly `slots` entries of `entry` bytes, `k` of them in a flash page, in front of
/// 4 GiB.
pub(crate) fn try_build(
    spec: &str,
    slots: u32,
    entry: u32,
    k: u32,
    volatile: bool,
) -> Result<Box<dyn Policy + Send>, BufferError> {
    let bytes = u64::from(slots) * u64::from(entry);
    let policy = PolicySpec::parse(spec).unwrap();
    let config = BufferConfig { policy, bytes, charge: Charge::None, volatile };
    let sizes = Sizes { entry_bytes: entry, flash_page_bytes: k * entry, device_bytes: 1 << 32 };
    new_policy(&config, &sizes)
}

/// The same, which has to work.
pub(crate) fn build(
    spec: &str,
    slots: u32,
    entry: u32,
    k: u32,
    volatile: bool,
) -> Box<dyn Policy + Send> {
    try_build(spec, slots, entry, k, volatile).unwrap()
}
