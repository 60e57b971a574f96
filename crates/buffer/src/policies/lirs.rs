//! Keeps the entries with the shortest distance between two accesses.

use crate::{Limits, Parameter, PolicyInfo, Ratio, Value};

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "lirs",
    about: "Keeps the entries with the shortest distance between two accesses.",
    source: "Jiang, Zhang 2002",
    parameters: &[Parameter {
        name: "hir",
        default: Value::Ratio(Ratio::new(1, 100)),
        limits: Limits::Ratio,
        about: "Share of the entries for those not yet seen twice.",
    }],
};
