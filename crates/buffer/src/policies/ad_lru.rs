//! Cold and hot list; clean entries first in the one the victim comes from.

use crate::{Limits, Parameter, PolicyInfo, Ratio, Value};

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "ad-lru",
    about: "Cold and hot list; clean entries first in the one the victim comes from.",
    source: "Jin et al. 2012",
    parameters: &[Parameter {
        name: "cold",
        default: Value::Ratio(Ratio::new(1, 10)),
        limits: Limits::Ratio,
        about: "Share of the entries the cold list keeps.",
    }],
};
