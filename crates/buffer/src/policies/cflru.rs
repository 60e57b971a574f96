//! Clean entries first, within a window at the least recently used end.

use crate::{Limits, Parameter, PolicyInfo, Ratio, Value};

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "cflru",
    about: "Clean entries first, within a window at the least recently used end.",
    source: "Park et al. 2006",
    parameters: &[Parameter {
        name: "window",
        default: Value::Ratio(Ratio::new(1, 3)),
        limits: Limits::Ratio,
        about: "Share of the entries in the clean-first window.",
    }],
};
