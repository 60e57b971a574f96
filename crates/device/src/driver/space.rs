//! Writes for which there is no space wait for some, where they are served so.

use std::sync::atomic::Ordering;
use std::time::Instant;

use onefold_units::Status;

use super::{Driven, Driver};

impl<E: Driven> Driver<E> {
    /// Carries out a write again and again until there is space for it, where writes wait for that. Nothing is held
    /// meanwhile, so that trims can make some.
    pub(crate) fn when_there_is_space(
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

    /// Whether writes wait while there is no space.
    pub(crate) fn waits_for_space(&self) -> bool {
        self.waits_for_space.load(Ordering::Relaxed)
    }

    /// Whether to try again.
    fn wait_for_space(&self) -> bool {
        let state = self.state();
        if !self.waits_for_space() {
            return false;
        }
        let since = Instant::now();
        let mut state = self.wait(state);
        state.stalls.note(since.elapsed());
        true
    }

    /// Writes that wait for space fail from now on.
    pub(crate) fn stop_waiting(&self) {
        // With the lock, so that nobody goes to sleep in between.
        let state = self.state();
        self.waits_for_space.store(false, Ordering::Relaxed);
        drop(state);
        self.progress.notify_all();
    }
}
