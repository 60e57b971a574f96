//! Buffers for tests.

use onefold_buffer::{
    BufferConfig, BufferError, Charge, Policies, Policy, PolicySpec, Sizes, new_policy,
};

/// Parameters that let small buffers and short streams reach all parts of a policy.
const SMALL: [&str; 12] = [
    "2q:in=1/2",
    "vbbms:random=1/4,random_block=3,longest=2",
    "fab:block=4",
    "bplru:block=4",
    "bplru:block=1",
    "aoi:chunk=64KiB,channels=1,ways=1",
    "aoi:chunk=32KiB,channels=2,ways=1,area=s3-fifo,trim_reset=full",
    "aoi:chunk=64KiB,channels=1,ways=1,reaccess=cursor,area=sieve",
    "aoi:chunk=64KiB,channels=1,ways=1,reaccess=literal",
    "aoi:chunk=64KiB,channels=1,ways=1,area=2l",
    "aoi:chunk=64KiB,channels=1,ways=1,area=pt-lru",
    "aoi:chunk=64KiB,channels=1,ways=1,area=cflru",
];

/// Every policy with its defaults, and some with other parameters.
pub(crate) fn every_policy() -> impl Iterator<Item = &'static str> {
    let names: Vec<_> = Policies::builtin().iter().map(|info| info.name).collect();
    names.into_iter().chain(SMALL)
}

/// A buffer of exactly `slots` entries of `entry` bytes, `k` of them in a flash page, in front of
/// 4 GiB on 64 dies.
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
    let one = Sizes::of_one_die(entry, 1 << 32);
    let sizes = Sizes { flash_page_bytes: k * entry, channels: 8, ways: 8, ..one };
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
