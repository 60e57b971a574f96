//! A probation FIFO, a main LRU for what comes back, a memory of what left.

use crate::{Limits, Parameter, PolicyInfo, Ratio, Value};

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "2q",
    about: "A probation FIFO, a main LRU for what comes back, a memory of what left.",
    source: "Johnson, Shasha 1994",
    parameters: &[
        Parameter {
            name: "in",
            default: Value::Ratio(Ratio::new(1, 4)),
            limits: Limits::Ratio,
            about: "Share of the entries for the probation queue.",
        },
        Parameter {
            name: "out",
            default: Value::Ratio(Ratio::new(1, 2)),
            limits: Limits::Ratio,
            about: "Keys remembered after they left it, as a share of the entries.",
        },
    ],
};
