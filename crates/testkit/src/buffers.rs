//! Every buffer policy, sized for the small buffers of tests.

use onefold_buffer::{PolicyKind, PolicySpec};

/// Every policy, with blocks and areas that fit a buffer of 64 entries.
#[must_use]
pub fn small_policies() -> Vec<PolicySpec> {
    PolicyKind::ALL.into_iter().map(small_policy).collect()
}

/// The policy with blocks and areas that fit a buffer of 64 entries.
#[must_use]
pub fn small_policy(kind: PolicyKind) -> PolicySpec {
    let settings: &[(&str, &str)] = match kind {
        PolicyKind::Fab | PolicyKind::Bplru => &[("block", "8")],
        // An area of four flash pages; chunks and requests of a few pages.
        PolicyKind::Aoi => &[("channels", "2"), ("ways", "2"), ("chunk", "64KiB")],
        _ => &[],
    };
    let mut spec = PolicySpec::new(kind);
    for (key, value) in settings {
        spec.set(key, value).unwrap_or_else(|error| panic!("{error}"));
    }
    spec
}
