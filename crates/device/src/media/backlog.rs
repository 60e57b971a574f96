//! What the file did not take, in the order in which it was written.
//!
//! 1. While anything waits here, everything that is written waits behind it: the file never holds the later of two things
//!    without the earlier, and a synchronisation among them separates what comes before it from what comes after.
//! 2. What is read is what was written last, here or in the file.

use std::borrow::Cow;
use std::collections::VecDeque;

use onefold_units::convert::{index64, u64_from};

/// One thing that the file has to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// Bytes at an offset.
    Write { at: u64, bytes: Cow<'a, [u8]> },
    /// Zeroes at an offset.
    Zero { at: u64, len: u64 },
    /// A synchronisation of everything before.
    Sync,
}

impl Step<'_> {
    fn into_owned(self) -> Step<'static> {
        match self {
            Self::Write { at, bytes } => Step::Write { at, bytes: Cow::Owned(bytes.into_owned()) },
            Self::Zero { at, len } => Step::Zero { at, len },
            Self::Sync => Step::Sync,
        }
    }

    fn held_bytes(&self) -> u64 {
        match self {
            Self::Write { bytes, .. } => u64_from(bytes.len()),
            Self::Zero { .. } | Self::Sync => 0,
        }
    }

    fn range(&self) -> (u64, u64) {
        match self {
            Self::Write { at, bytes } => (*at, at + u64_from(bytes.len())),
            Self::Zero { at, len } => (*at, at + len),
            Self::Sync => (0, 0),
        }
    }
}

/// What waits for the file.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    steps: VecDeque<Step<'static>>,
    bytes: u64,
}

impl Backlog {
    /// Bytes of memory that it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn push(&mut self, step: Step<'_>) {
        if step == Step::Sync && self.steps.back() == Some(&Step::Sync) {
            return;
        }
        self.bytes += step.held_bytes();
        self.steps.push_back(step.into_owned());
    }

    /// What the file has to take next.
    pub(super) fn first(&self) -> Option<&Step<'static>> {
        self.steps.front()
    }

    /// The file took it.
    pub(super) fn took_first(&mut self) {
        if let Some(step) = self.steps.pop_front() {
            self.bytes -= step.held_bytes();
        }
    }

    /// Whether all of a range waits here, so that the file need not be asked.
    pub(super) fn covers(&self, at: u64, len: u64) -> bool {
        let end = at + len;
        self.steps.iter().any(|step| {
            let (begin, last) = step.range();
            begin <= at && end <= last
        })
    }

    /// Puts what waits for a range over what the file holds there (invariant 2).
    pub(super) fn lay_over(&self, at: u64, bytes: &mut [u8]) {
        let end = at + u64_from(bytes.len());
        for step in &self.steps {
            let (begin, last) = step.range();
            let (from, to) = (begin.max(at), last.min(end));
            if from >= to {
                continue;
            }
            let target = &mut bytes[index64(from - at)..index64(to - at)];
            match step {
                Step::Write { bytes, .. } => {
                    target.copy_from_slice(&bytes[index64(from - begin)..index64(to - begin)]);
                }
                Step::Zero { .. } | Step::Sync => target.fill(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Backlog, Step};

    fn write(at: u64, bytes: &[u8]) -> Step<'_> {
        Step::Write { at, bytes: bytes.into() }
    }

    #[test]
    fn what_was_written_last_is_read() {
        let mut backlog = Backlog::default();
        backlog.push(write(10, &[1; 4]));
        backlog.push(Step::Zero { at: 12, len: 4 });
        backlog.push(write(11, &[2; 2]));
        let mut bytes = [9; 8];
        backlog.lay_over(9, &mut bytes);
        assert_eq!(bytes, [9, 1, 2, 2, 0, 0, 0, 9]);
        assert!(backlog.covers(10, 4) && !backlog.covers(10, 5));
        assert_eq!(backlog.bytes(), 6);
    }

    #[test]
    fn things_leave_in_order_and_synchronisations_in_a_row_are_one() {
        let mut backlog = Backlog::default();
        for step in [write(0, &[1]), Step::Sync, Step::Sync, write(0, &[2]), Step::Sync] {
            backlog.push(step);
        }
        for expected in [write(0, &[1]), Step::Sync, write(0, &[2]), Step::Sync] {
            assert_eq!(backlog.first(), Some(&expected));
            backlog.took_first();
        }
        assert_eq!((backlog.first(), backlog.bytes()), (None, 0));
    }
}
