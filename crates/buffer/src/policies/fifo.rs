//! Entries leave in the order in which they came; hits do not move them.

use crate::PolicyInfo;

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "fifo",
    about: "Entries leave in the order in which they came; hits do not move them.",
    source: "folklore",
    parameters: &[],
};
