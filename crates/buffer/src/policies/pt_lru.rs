//! Cold clean entries leave first, then cold dirty ones with a probability.

use crate::{Limits, Parameter, PolicyInfo, Ratio, Value};

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "pt-lru",
    about: "Cold clean entries leave first, then cold dirty ones with a probability.",
    source: "Cui et al. 2014",
    parameters: &[Parameter {
        name: "p",
        default: Value::Ratio(Ratio::new(999, 1000)),
        limits: Limits::Ratio,
        about: "Probability that a cold dirty entry leaves rather than a hot one.",
    }],
};
