//! What waits for the thread that owns the backing.

use std::collections::VecDeque;
use std::time::Instant;

use onefold_volume::Io;

use super::scatter::Scatter;

/// What waits for the owner, guarded by the lock of the volume.
#[derive(Default)]
pub(super) struct Inbox {
    pub(super) requests: VecDeque<Io>,
    pub(super) reads: VecDeque<Scatter>,
    pub(super) asleep: bool,
    /// How long it sleeps if nothing comes; `None`: for as long as it takes.
    pub(super) until: Option<Instant>,
    pub(super) closed: bool,
}

impl Inbox {
    /// Whether the owner has to be woken, because something came or the volume wants to be pumped
    /// before `wake`. It is woken once.
    pub(super) fn has_to_wake(&mut self, wake: Option<Instant>) -> bool {
        let sooner = wake.is_some_and(|wake| self.until.is_none_or(|until| wake < until));
        let came = self.closed || !self.requests.is_empty() || !self.reads.is_empty();
        let wakes = self.asleep && (sooner || came);
        self.asleep &= !wakes;
        wakes
    }
}
