//! The flash block with the most buffered pages leaves whole.

use crate::{Limits, Parameter, PolicyInfo, Value};

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "fab",
    about: "The flash block with the most buffered pages leaves whole.",
    source: "Jo et al. 2006",
    parameters: &[Parameter {
        name: "block",
        default: Value::Count(64),
        limits: Limits::Count { least: 1, most: 4096 },
        about: "Pages of a block.",
    }],
};
