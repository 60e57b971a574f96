//! Calls that waited.

use std::time::Duration;

/// Calls of the host that had to wait until they could be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// How many.
    pub count: u64,
    /// Together.
    pub total: Duration,
    /// The longest one.
    pub longest: Duration,
}

impl Stalls {
    pub(crate) fn note(&mut self, time: Duration) {
        self.count += 1;
        self.total += time;
        self.longest = self.longest.max(time);
    }
}
