//! When a command works, and what it waits for.

use onefold_nand::{At, Grant, Work};
use onefold_units::Nanos;

/// A command on its way: when it was submitted, and when its work may begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) now: Nanos,
    pub(crate) ready: Nanos,
}

impl Times {
    #[inline]
    pub(crate) const fn host(self) -> At {
        At { now: self.now, ready: self.ready, work: Work::Host }
    }
}

/// Two grants that a command waits for.
#[inline]
pub(crate) fn join(a: Grant, b: Grant) -> Grant {
    Grant { done: a.done.max(b.done), delay: a.delay.max(b.delay) }
}
