//! When checkpoints are due.

use onefold_units::Nanos;

use super::Checkpoint;
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
}
