//! What the host is told while devices take no writes.
//!
//! A metadata write that fails is sent again for as long as it takes (`crate::retries`). The host does not wait for ever:
//!
//! 1. A volume *stalls* when a metadata write fails for [`crate::retries::PATIENCE`], or at once when the device says that it is
//!    full. It stalls until that write is through.
//! 2. A volume that stalls answers: whoever waits for a flush is told that it failed, and so is every change. Reads go on, also
//!    while a metadata flush whose write fails keeps changes waiting.
//! 3. Nothing is given up: what changed stays in memory and is written when the device takes it. A flush after that covers it.
//! 4. Who waits for a zone while no reclaim succeeds is told after the same time.

use onefold_units::Nanos;

use crate::io::{Failure, IoFailed};
use crate::queues::{Barrier, Kind, Part};
use crate::retries::PATIENCE;
use crate::volume::Volume;
use crate::worker::Worker;

impl Volume {
    /// Why the devices take no metadata now, if they do not.
    #[must_use]
    pub const fn stalled(&self) -> Option<IoFailed> {
        self.stalled
    }

    /// Sends again what is due, and tells the host what it has to know.
    pub(crate) fn step_retries(&mut self) {
        if self.retries.is_empty() && self.stalled.is_none() {
            return;
        }
        while self.frozen
            && let Some((id, why)) = self.retries.give_up()
        {
            self.io_over(id, Err(why));
        }
        while let Some(id) = self.retries.next(self.now) {
            self.ios.send_again(id);
        }
        let stalls = self.retries.needed().find(|failing| failing.stalls(self.now));
        self.stalled = stalls.map(|failing| failing.why);
        if let Some(why) = self.stalled {
            self.fail_flushes(Failure::Device(why));
            self.fail_changes(why);
        }
    }

    /// Changes that wait are refused (invariant 2).
    fn fail_changes(&mut self, why: IoFailed) {
        for chunk in self.queues.chunks() {
            let waits = |part: &Part| part.kind != Kind::Read;
            while self.queues.first(chunk).is_some_and(waits) {
                self.wake(chunk);
                self.fail_first(chunk, Failure::Device(why));
            }
        }
    }

    /// Which parts have to wait for the metadata flush under way (invariant 2).
    pub(crate) fn barrier(&self) -> Barrier {
        if !self.flush.holds_host() || self.frozen {
            Barrier::None
        } else if self.retries.is_empty() {
            Barrier::All
        } else {
            Barrier::Changes
        }
    }

    /// What to tell somebody for whom no zone is free, and for whom none will be soon (invariant 4).
    pub(crate) fn no_zone(&self) -> Option<Failure> {
        let failing = || self.workers.iter().find_map(Worker::failing);
        let is_over = |since: Nanos| since + PATIENCE <= self.now;
        match self.quarantine.since() {
            None if self.is_stuck() && failing().is_none() => return Some(Failure::NoSpace),
            Some(since) if self.is_stuck() && is_over(since) => {
                return Some(Failure::Device(IoFailed::Error));
            }
            _ => {}
        }
        let gives_none = |worker: &Worker| {
            worker.failing().is_some_and(|failing| failing.stalls(self.now))
                || worker.is_starved(self.changes)
        };
        let why = failing().map(|failing| Failure::Device(failing.why));
        why.filter(|_| self.workers.iter().all(gives_none))
    }
}
