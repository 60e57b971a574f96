//! Every buffer policy, sized for the small buffers of tests.

use onefold_buffer::{Policies, PolicyInfo, PolicySpec};

/// Every policy, with blocks and areas that fit a buffer of 64 entries.
#[must_use]
pub fn small_policies() -> Vec<PolicySpec> {
    Policies::builtin().iter().map(small_policy).collect()
}

/// The policy with blocks and areas that fit a buffer of 64 entries.
#[must_use]
pub fn small_policy(info: &'static PolicyInfo) -> PolicySpec {
    let settings: &[(&str, &str)] = match info.name {
        "fab" | "bplru" => &[("block", "8")],
        // An area of four flash pages; chunks and requests of a few pages.
        "aoi" => &[("channels", "2"), ("ways", "2"), ("chunk", "64KiB")],
        _ => &[],
    };
    let mut spec = PolicySpec::new(info);
    for (key, value) in settings {
        spec.set(key, value).unwrap_or_else(|error| panic!("{error}"));
    }
    spec
}
