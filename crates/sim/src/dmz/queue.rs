//! What waits for the regular device, as in the kernel's scheduler (mq-deadline): reads go first.
//!
//! A device of the model knows when a command ends as soon as it is submitted, so what comes later never overtakes. With thousands
//! of writes under way a read of reclaim would wait for all of them, and the kernel's does not.

use std::collections::VecDeque;

use onefold_zoned::{Io, IoKind};

/// Requests to the regular device; only so many are submitted at once.
#[derive(Default)]
pub(super) struct Queue {
    /// `None`: nothing waits.
    depth: Option<u64>,
    submitted: u64,
    reads: VecDeque<Io>,
    others: VecDeque<Io>,
}

impl Queue {
    /// Has requests wait from now on if more than `depth` are under way.
    pub(super) const fn limit(&mut self, depth: Option<u64>) {
        self.depth = depth;
    }

    /// Takes a request that has to wait for its turn; gives it back if it has not.
    pub(super) fn push(&mut self, io: Io) -> Option<Io> {
        if io.device > 0 || self.depth.is_none() {
            return Some(io);
        }
        let queue = if io.kind == IoKind::Read { &mut self.reads } else { &mut self.others };
        queue.push_back(io);
        None
    }

    /// The next request whose turn it is.
    pub(super) fn pop(&mut self) -> Option<Io> {
        if self.depth.is_some_and(|depth| self.submitted >= depth) {
            return None;
        }
        let io = self.reads.pop_front().or_else(|| self.others.pop_front())?;
        self.submitted += 1;
        Some(io)
    }

    /// A request that was popped ended.
    pub(super) const fn ended(&mut self) {
        self.submitted -= 1;
    }
}
