//! Write buffer of whole blocks, padded and programmed as a block.

use crate::{Limits, Parameter, PolicyInfo, Value};

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "bplru",
    about: "Write buffer of whole blocks, padded and programmed as a block.",
    source: "Kim, Ahn 2008",
    parameters: &[Parameter {
        name: "block",
        default: Value::Count(64),
        limits: Limits::Count { least: 1, most: 4096 },
        about: "Pages of a block.",
    }],
};
