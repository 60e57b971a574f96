//! FIFO whose accessed entries get one more round.

use crate::PolicyInfo;

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "clock",
    about: "FIFO whose accessed entries get one more round.",
    source: "Corbato 1968",
    parameters: &[],
};
