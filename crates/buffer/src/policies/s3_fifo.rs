//! Small FIFO, main FIFO with counts, ghost FIFO.

use crate::{Limits, Parameter, PolicyInfo, Ratio, Value};

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "s3-fifo",
    about: "Small FIFO, main FIFO with counts, ghost FIFO.",
    source: "Yang et al. 2023",
    parameters: &[Parameter {
        name: "small",
        default: Value::Ratio(Ratio::new(1, 10)),
        limits: Limits::Ratio,
        about: "Share of the entries for the small queue.",
    }],
};
