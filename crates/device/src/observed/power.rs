//! The power of an observed device, for drives whose power is cut while clients use them.
//!
//! 1. A cut waits for the requests that the device executes, and no other begins meanwhile.
//! 2. A request that finds the power off was in flight at the cut: it fails once the power is back.
//! 3. A flush never succeeds if a write that the same client had answered before is gone. Clients that keep their handle over a cut
//!    hear of it by an error of their next flush; those that connect again have a new handle, and know.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use onefold_units::Status;

/// What is called once so many writes were carried out.
type Tell = Box<dyn FnOnce() + Send>;

struct State {
    on: bool,
    /// Requests that the device executes.
    executing: u32,
    /// Cuts so far.
    cuts: u64,
    /// The last cut that took writes which were answered.
    took_writes: u64,
    /// The power goes after this many more writes, and somebody is told.
    fuse: Option<(u64, Tell)>,
}

pub(super) struct Power {
    state: Mutex<State>,
    changed: Condvar,
}

impl Power {
    pub(super) fn new(fuse: Option<(u64, Tell)>) -> Self {
        let state = State { on: true, executing: 0, cuts: 0, took_writes: 0, fuse };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails once the power is back (invariant 2).
    fn wait_in_vain(&self, mut state: MutexGuard<'_, State>) -> Status {
        while !state.on {
            state = self.wait(state);
        }
        Status::MediaError
    }

    /// Carries out a request of a client that knows of the first `known` cuts.
    pub(super) fn carry_out<T>(
        &self,
        kind: Kind,
        known: &AtomicU64,
        run: impl FnOnce() -> Result<T, Status>,
    ) -> Result<T, Status> {
        let mut state = self.state();
        if !state.on {
            return Err(self.wait_in_vain(state));
        }
        if kind == Kind::Flush && known.swap(state.cuts, Relaxed) < state.took_writes {
            return Err(Status::MediaError);
        }
        state.executing += 1;
        drop(state);
        let executing = Executing(self);
        let done = run();
        drop(executing);
        if kind == Kind::Write && done.is_ok() {
            self.wrote()?;
        }
        done
    }

    /// Counts a write. The one at which the power goes is not answered.
    fn wrote(&self) -> Result<(), Status> {
        let mut state = self.state();
        if !state.on {
            return Err(self.wait_in_vain(state));
        }
        if let Some((left, _)) = &mut state.fuse {
            *left = left.saturating_sub(1);
        }
        let Some((_, tell)) = state.fuse.take_if(|(left, _)| *left == 0) else { return Ok(()) };
        state.go_off();
        tell();
        Err(self.wait_in_vain(state))
    }

    pub(super) fn cuts(&self) -> u64 {
        self.state().cuts
    }

    /// Switches it off, if it is on.
    pub(super) fn off(&self) {
        self.state().go_off();
    }

    /// Waits until the device executes nothing.
    pub(super) fn wait_until_still(&self) {
        let mut state = self.state();
        while state.executing > 0 {
            state = self.wait(state);
        }
    }

    /// Switches it on again; `took_writes` says whether writes that were answered are gone.
    pub(super) fn on(&self, took_writes: bool) {
        let mut state = self.state();
        state.on = true;
        if took_writes {
            state.took_writes = state.cuts;
        }
        self.changed.notify_all();
    }
}

impl State {
    fn go_off(&mut self) {
        self.cuts += u64::from(self.on);
        self.on = false;
    }
}

/// What a request means to the power.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Write,
    Flush,
    Other,
}

/// The device executes a request.
struct Executing<'a>(&'a Power);

impl Drop for Executing<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.executing -= 1;
        if state.executing == 0 && !state.on {
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::mpsc::channel;

    use super::{Kind, Power};
    use onefold_units::Status;

    fn flush(power: &Power, known: &AtomicU64) -> Result<(), Status> {
        power.carry_out(Kind::Flush, known, || Ok(()))
    }

    #[test]
    fn a_flush_after_a_cut_that_took_writes_fails_once_for_each_client_of_before() {
        let power = Power::new(None);
        let (before, other) = (AtomicU64::new(0), AtomicU64::new(0));
        power.off();
        power.on(false);
        assert_eq!(flush(&power, &before), Ok(()), "nothing was lost");
        power.off();
        power.on(true);
        let after = AtomicU64::new(power.cuts());
        assert_eq!(flush(&power, &before), Err(Status::MediaError));
        assert_eq!(flush(&power, &before), Ok(()));
        assert_eq!(flush(&power, &other), Err(Status::MediaError));
        assert_eq!(flush(&power, &after), Ok(()));
    }

    #[test]
    fn the_power_goes_at_a_write_which_is_lost_with_all_that_wait() {
        let (tell, told) = channel();
        let power = Power::new(Some((2, Box::new(move || tell.send(()).unwrap()))));
        let known = AtomicU64::new(0);
        let write = || power.carry_out(Kind::Write, &known, || Ok(()));
        assert_eq!(write(), Ok(()));
        std::thread::scope(|threads| {
            let last = threads.spawn(write);
            told.recv().unwrap();
            let waits = threads.spawn(|| {
                power
                    .carry_out(Kind::Other, &known, || -> Result<(), Status> { panic!("executed") })
            });
            power.off();
            power.wait_until_still();
            // Long enough for both to find the power off.
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(!last.is_finished() && !waits.is_finished());
            power.on(true);
            assert_eq!(last.join().unwrap(), Err(Status::MediaError));
            assert_eq!(waits.join().unwrap(), Err(Status::MediaError));
        });
        assert_eq!((power.cuts(), write()), (1, Ok(())));
    }
}
