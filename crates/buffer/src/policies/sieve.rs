//! FIFO with a hand that passes over accessed entries.

use crate::PolicyInfo;

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "sieve",
    about: "FIFO with a hand that passes over accessed entries.",
    source: "Zhang et al. 2024",
    parameters: &[],
};
