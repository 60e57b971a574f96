//! Live counts that are in doubt.
//!
//! A block that a member points at no more is dead unless another member has it. Where that member's page of the map cannot be read, nobody
//! knows: the block counts as live, and its log segment is *doubtful*. Two things make the count right when the page can be read again:
//!
//! 1. The cleaner, where it could read all of a doubtful log segment (`crate::cleaner`, invariant 5).
//! 2. Where the map fits into memory, all of it is read, and counted anew ([`Volume::recount`]). That comes to those as well that
//!    look full, and to those whose chain of headers ends early.
//!
//! A root says which log segments are doubtful, so that a volume that is opened later goes on with it.

use onefold_units::Nanos;

use crate::map::Ready;
use crate::volume::Volume;

/// How long after a try to count anew the next one is made.
const PAUSE: Nanos = Nanos::new(5_000_000_000);

impl Volume {
    /// Makes doubtful counts right, if all of the map can be looked up.
    pub(crate) fn step_doubts(&mut self) {
        // Before that is so, a page that is read now would lack what recovery found.
        let ready =
            self.is_counted() && self.frozen.is_none() && self.now >= self.counting.doubts_until();
        if !ready || !self.segments.any_doubtful() {
            return;
        }
        self.counting.leave_doubts(self.now + PAUSE);
        let there = |key: usize| matches!(self.map.ready(key), Ready::Yes | Ready::Empty);
        let all_there = self.map.keys_from(0).all(there);
        if !all_there {
            self.begin_preload();
            return;
        }
        let Some(wrong) = self.recount() else { return };
        for of in wrong {
            self.segments.correct(of.segment, of.found);
        }
        self.segments.forget_doubts();
    }

    /// When to try that again.
    pub(crate) fn doubts_deadline(&self) -> Option<Nanos> {
        let wanted = self.segments.any_doubtful() && self.frozen.is_none();
        Some(self.counting.doubts_until()).filter(|until| wanted && *until > self.now)
    }
}
