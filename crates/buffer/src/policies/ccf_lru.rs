//! Cold clean entries leave before all others.

use crate::PolicyInfo;

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "ccf-lru",
    about: "Cold clean entries leave before all others.",
    source: "Li et al. 2009",
    parameters: &[],
};
