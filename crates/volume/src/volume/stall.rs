//! What the host is told while the backing takes no writes.
//!
//! Writes that fail are sent again for as long as it takes (`crate::retries`), and what they hold stays in memory. The host does
//! not wait for ever:
//!
//! 1. A volume *stalls* when a write fails for [`PATIENCE`], or at once when the backing says that it is full. Where requests failed
//!    before, that begins when its batch was sent: it may have waited for them. It stalls until that write is through. So it does when log segments were short for as long, and what would free some
//!    fails, and while pages of the map that cannot be read keep checkpoints from coming (`Volume::step_full_of_runs`).
//! 2. A volume that stalls answers: whoever waits for a batch or a flush is told that it failed, changes are refused, and so is
//!    what would have to wait. Reads go on.
//! 3. Nothing is given up: what was taken stays in memory and is written when the backing takes it. A flush after that covers it.

use onefold_units::Nanos;

use crate::io::{IoFailed, Refusal};
use crate::log::Stream;
use crate::retries::{Failing, PATIENCE};
use crate::volume::Volume;

impl Volume {
    /// Why the backing takes no writes now, if it does not.
    #[must_use]
    pub const fn stalled(&self) -> Option<IoFailed> {
        self.stall.why()
    }

    pub(crate) fn step_stall(&mut self) {
        if self.stall.short_since().is_some() && self.takeable(Stream::User) > 0 {
            self.stall.end_short();
        }
        let fails = !self.retries.is_empty()
            || self.checkpoint.root_failing().is_some()
            || self.label_failing().is_some()
            || self.stall.short_since().is_some()
            || self.checkpoint.is_full_of_runs();
        if !fails && self.stall.why().is_none() {
            return;
        }
        self.stall.set(if self.frozen.is_some() { None } else { self.find_stall() });
        if let Some(why) = self.stall.why() {
            self.fail_waiters(why);
        }
    }

    fn find_stall(&self) -> Option<IoFailed> {
        if self.checkpoint.is_full_of_runs() {
            return Some(IoFailed::Error);
        }
        let batches = self.log.active().iter().filter_map(|id| self.log.batch(*id).failing);
        let fixed = self.checkpoint.root_failing().into_iter().chain(self.label_failing());
        let failing = self.retries.writes().chain(batches).chain(fixed).chain(self.shortage());
        failing.filter(|failing| failing.stalls(self.now)).map(|failing| failing.why).next()
    }

    /// How nothing gets free although log segments are short: what would free some fails, or failed and is tried again later.
    fn shortage(&self) -> Option<Failing> {
        let since = self.stall.short_since()?;
        let why = self.stall.failure_since(since, self.now);
        let why = why.or_else(|| self.has_errors().then_some(IoFailed::Error))?;
        Some(Failing { since, why })
    }

    /// Whether log segments that could not be read, written or reset get free later: a volume that has no other ones is not full.
    pub(crate) fn has_errors(&self) -> bool {
        let held = self.segments.held_deadline(self.now).is_some();
        held || self.segments.any_failed() || self.trims.has_stuck()
    }

    /// When a volume stalls because log segments are short.
    pub(crate) fn stall_deadline(&self) -> Option<Nanos> {
        let short = self.shortage().filter(|_| self.stall.why().is_none() && self.frozen.is_none());
        short.map(|failing| failing.since + PATIENCE).filter(|at| *at > self.now)
    }

    /// Invariant 2.
    fn fail_waiters(&mut self, why: IoFailed) {
        self.answers.give_up(why);
        self.fail_flushes(self.log.complete(), why);
    }

    /// A refusal as the host gets it: what would have to wait for a backing that takes no writes is refused.
    pub(crate) fn refuse(&self, refusal: Refusal) -> Refusal {
        match self.stall.why() {
            Some(why) if refusal == Refusal::Busy => Refusal::Backing(why),
            _ => refusal,
        }
    }
}
