//! A small window; a frequency sketch decides who enters the main cache.

use crate::{Limits, Parameter, PolicyInfo, Ratio, Value};

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "w-tinylfu",
    about: "A small window; a frequency sketch decides who enters the main cache.",
    source: "Einziger et al. 2017",
    parameters: &[
        Parameter {
            name: "window",
            default: Value::Ratio(Ratio::new(1, 100)),
            limits: Limits::Ratio,
            about: "Share of the entries for the window.",
        },
        Parameter {
            name: "protected",
            default: Value::Ratio(Ratio::new(4, 5)),
            limits: Limits::Ratio,
            about: "Share of the main cache for entries that were hit there.",
        },
    ],
};
