//! Writes for which there is no space wait for some, where the volume is served so.

use std::sync::atomic::Ordering;
use std::time::Instant;

use onefold_units::Status;

use super::Shared;

impl Shared {
    /// Carries out a write again and again until there is space for it, where writes wait for that. Nothing is held
    /// meanwhile, so that trims can make some.
    pub(super) fn when_there_is_space(
        &self,
        what: impl Fn() -> Result<(), Status>,
    ) -> Result<(), Status> {
        loop {
            match what() {
                Err(Status::NoSpace) if self.wait_for_space() => {}
                result => return result,
            }
        }
    }

    /// Whether to try again.
    fn wait_for_space(&self) -> bool {
        let state = self.state();
        if !self.waits_for_space.load(Ordering::Relaxed) {
            return false;
        }
        let since = Instant::now();
        let mut state = self.wait(state);
        state.stalls.note(since.elapsed());
        true
    }

    /// Writes that wait for space fail from now on.
    pub(super) fn stop_waiting(&self) {
        // With the lock, so that nobody goes to sleep in between.
        let state = self.state();
        self.waits_for_space.store(false, Ordering::Relaxed);
        drop(state);
        self.state.tell_progress();
    }
}
