//! Two-level LRU: a hit lifts an entry into a hot list of a third of the buffer.

use crate::{Limits, Parameter, PolicyInfo, Ratio, Value};

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "2l",
    about: "Two-level LRU: a hit lifts an entry into a hot list of a third of the buffer.",
    source: "Chang, Kuo 2002; as compared in Jeong 2021",
    parameters: &[Parameter {
        name: "hot",
        default: Value::Ratio(Ratio::new(1, 3)),
        limits: Limits::Ratio,
        about: "Share of the entries for the hot list.",
    }],
};
