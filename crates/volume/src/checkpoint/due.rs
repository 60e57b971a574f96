//! When checkpoints are due.

use onefold_units::Nanos;

use super::Checkpoint;
use crate::checkpoint::TAKEN_MAX;
use crate::config::Options;

impl Checkpoint {
    /// Number of a checkpoint that begins now.
    pub(crate) const fn next_number(&self) -> u64 {
        self.number + 1
    }

    /// Whether none comes until pages can be read that cannot now.
    pub(crate) const fn is_full_of_runs(&self) -> bool {
        self.full_of_runs
    }

    /// When a checkpoint is due because of its age, or when one or its root, of which some came to nothing, is tried again.
    pub(crate) fn deadline(&self, options: &Options, now: Nanos) -> Option<Nanos> {
        let waits = Some(self.waits_until).filter(|until| *until > now);
        let aged = self.since.map(|since| since + options.checkpoint_age);
        // While pages that cannot be read keep checkpoints from coming, those are waited for (`Volume::step_full_of_runs`).
        let aged = aged.filter(|_| self.work.is_none() && !self.full_of_runs);
        waits.or(aged)
    }

    /// Whether none is to begin now.
    pub(crate) fn holds_back(&self, now: Nanos) -> bool {
        self.waits(now) || self.full_of_runs
    }

    /// Whether one is asked for, or enough happened since the last one; `epoch` is the next use of a log segment.
    pub(crate) fn is_wanted(&self, options: &Options, epoch: u64) -> bool {
        self.wanted
            || self.sent_blocks >= options.checkpoint_blocks
            || self.sent_batches >= options.checkpoint_batches
            || epoch - self.epoch_then >= TAKEN_MAX
    }

    /// Whether runs take all the room, so that none comes until pages can be read that cannot now.
    pub(crate) const fn fill_with_runs(&mut self, is_full: bool) {
        self.full_of_runs = is_full;
    }
}
