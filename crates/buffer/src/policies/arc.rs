//! Two LRU lists for recency and frequency that balance themselves by their ghosts.

use crate::PolicyInfo;

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "arc",
    about: "Two LRU lists for recency and frequency that balance themselves by their ghosts.",
    source: "Megiddo, Modha 2003",
    parameters: &[],
};
