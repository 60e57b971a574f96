//! What waits for the first place below a layer, as in the kernel's scheduler (mq-deadline): reads go
//! first.
//!
//! A device of the model knows when a command ends as soon as it is submitted, so what comes later
//! never overtakes. With thousands of writes under way a read of reclaim would wait for all of
//! them, and the kernel's does not.

use std::collections::VecDeque;

use super::layer::{Asked, Lower};

/// Requests of a layer that wait.
#[derive(Default)]
pub(super) struct Queue {
    /// So many are submitted at once. `None`: nothing waits.
    depth: Option<u64>,
    submitted: u64,
    reads: VecDeque<Lower>,
    others: VecDeque<Lower>,
}

impl Queue {
    /// Has requests wait from now on if more than `depth` are under way.
    pub(super) const fn limit(&mut self, depth: Option<u64>) {
        self.depth = depth;
    }

    /// Whether it takes a request, which has to wait for its turn then.
    pub(super) fn takes(&mut self, lower: &Lower) -> bool {
        if self.depth.is_none() || lower.port > 0 {
            return false;
        }
        let is_read = matches!(lower.what, Asked::Read(_) | Asked::Extents { .. });
        if is_read { &mut self.reads } else { &mut self.others }.push_back(*lower);
        true
    }

    /// The next request whose turn it is.
    pub(super) fn pop(&mut self) -> Option<Lower> {
        if self.depth.is_some_and(|depth| self.submitted >= depth) {
            return None;
        }
        let lower = self.reads.pop_front().or_else(|| self.others.pop_front())?;
        self.submitted += 1;
        Some(lower)
    }

    /// A request that was popped ended.
    pub(super) const fn ended(&mut self) {
        self.submitted -= 1;
    }
}
