//! A region for single pages and one for longer requests, both in virtual blocks.

use crate::{Limits, Parameter, PolicyInfo, Ratio, Value};

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "vbbms",
    about: "A region for single pages and one for longer requests, both in virtual blocks.",
    source: "Du et al. 2019",
    parameters: &[Parameter {
        name: "random",
        default: Value::Ratio(Ratio::new(3, 5)),
        limits: Limits::Ratio,
        about: "Share of the entries for single-page requests.",
    }],
};
