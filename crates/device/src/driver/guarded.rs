//! The state of a volume behind its lock, which nobody holds while what lies below works.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use onefold_units::Nanos;

/// Longest time that a call sleeps for which there is no room, before it looks again.
const BUSY_WAIT: Duration = Duration::from_millis(100);

/// What a panic may leave half done.
pub(crate) trait Fallible {
    /// Nothing is done any more, and whoever waits gets an error.
    fn fall(&mut self);
}

/// A state, its lock, and its time.
pub(crate) struct Guarded<S> {
    state: Mutex<S>,
    /// Something completed, so calls that were refused as busy may ask again.
    progress: Condvar,
    start: Instant,
}

impl<S: Fallible> Guarded<S> {
    pub(crate) fn new(state: S) -> Self {
        Self { state: Mutex::new(state), progress: Condvar::new(), start: Instant::now() }
    }

    /// The state, fallen if a thread panicked with it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, S> {
        self.state.lock().unwrap_or_else(|poisoned| fallen(poisoned.into_inner()))
    }

    /// Sleeps until something completes, but not for long.
    pub(crate) fn wait<'a>(&'a self, state: MutexGuard<'a, S>) -> MutexGuard<'a, S> {
        wait_for(&self.progress, state, BUSY_WAIT)
    }

    /// Something completed.
    pub(crate) fn tell_progress(&self) {
        self.progress.notify_all();
    }

    /// Time since the volume was opened.
    pub(crate) fn now(&self) -> Nanos {
        Nanos::new(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// The instant of a time of the volume.
    pub(crate) fn instant(&self, at: Nanos) -> Instant {
        self.start + Duration::from_nanos(at.get())
    }
}

/// Sleeps until something is told, or for so long.
pub(crate) fn wait_for<'a, S: Fallible>(
    told: &Condvar,
    state: MutexGuard<'a, S>,
    longest: Duration,
) -> MutexGuard<'a, S> {
    let waited = told.wait_timeout(state, longest);
    waited.map_or_else(|poisoned| fallen(poisoned.into_inner().0), |waited| waited.0)
}

fn fallen<S: Fallible>(mut state: MutexGuard<'_, S>) -> MutexGuard<'_, S> {
    state.fall();
    state
}
