//! LRU that gives dirty entries a second chance until they are cold.

use crate::PolicyInfo;

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "lru-wsr",
    about: "LRU that gives dirty entries a second chance until they are cold.",
    source: "Jung et al. 2008",
    parameters: &[],
};
