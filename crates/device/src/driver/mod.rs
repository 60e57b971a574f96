//! The driver of what maps blocks, in real time: of volumes ([`crate::volume`]) and of zoned volumes of policy `dmz`
//! ([`crate::dmz`]).
//!
//! One lock guards the engine; nobody holds it while what lies below works. Whoever brings something, a call, a request below that is
//! over, or a time that has come, lets the engine go on ([`Driver::turn`]): it hands out what the engine asks for and answers who waits.
//!
//! 1. A call that the engine refuses as busy waits for the next completion and asks again.
//! 2. A panic ends it: what it was doing is half done. Whoever waits gets an error, and so does every later call ([`Fuse`]).
//! 3. The detector of journals sees every write after the engine took it ([`Watch`]).

mod answer;
mod driven;
mod jobs;
mod space;
mod stalls;
mod threads;
mod unaligned;
mod watch;

use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex, MutexGuard, RwLock};
use std::time::{Duration, Instant};

use onefold_units::Nanos;

pub(crate) use answer::Answer;
pub(crate) use driven::{Driven, Over, Refused};
pub(crate) use jobs::Jobs;
pub(crate) use stalls::Stalls;
pub(crate) use threads::{Fuse, Threads, work};
pub(crate) use unaligned::WholeBlocks;
pub(crate) use watch::Watch;

use answer::Waiting;

/// Longest time that a call sleeps for which there is no room, before it looks again.
const BUSY_WAIT: Duration = Duration::from_millis(100);

/// What the lock guards.
pub(crate) struct State<E: Driven> {
    pub(crate) engine: E,
    pub(crate) now: Nanos,
    waiting: Waiting<E::Outcome>,
    /// Calls that sleep until something completes.
    busy: u32,
    pub(crate) stalls: Stalls,
    /// Looks for journals.
    pub(crate) watch: Option<Watch>,
    /// It was stopped, or a thread panicked with it.
    pub(crate) over: bool,
}

/// An engine, who waits for what of it, and what it lies on.
pub(crate) struct Driver<E: Driven> {
    state: Mutex<State<E>>,
    start: Instant,
    /// Something completed, so calls that were refused as busy may ask again.
    progress: Condvar,
    /// The detector has something to do.
    watched: Condvar,
    /// Writes of whole blocks share it; those that read and rewrite have it alone.
    rewrite: RwLock<()>,
    /// Writes for which there is no space wait for some.
    waits_for_space: AtomicBool,
    /// What needs no lock.
    pub(crate) shared: E::Shared,
}

impl<E: Driven> Driver<E> {
    pub(crate) fn new(
        mut engine: E,
        shared: E::Shared,
        mut watch: Option<Watch>,
        waits_for_space: bool,
    ) -> Self {
        // What needs no look at the blocks is known before the first request.
        if let Some(watch) = &mut watch {
            watch.listen(&mut engine, Nanos::ZERO);
        }
        let state = State {
            engine,
            now: Nanos::ZERO,
            waiting: Waiting::default(),
            busy: 0,
            stalls: Stalls::default(),
            watch,
            over: false,
        };
        Self {
            state: Mutex::new(state),
            start: Instant::now(),
            progress: Condvar::new(),
            watched: Condvar::new(),
            rewrite: RwLock::new(()),
            waits_for_space: AtomicBool::new(waits_for_space),
            shared,
        }
    }

    /// The state, which is over if a thread panicked with it.
    pub(crate) fn state(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(|poisoned| fallen(poisoned.into_inner()))
    }

    pub(crate) const fn rewrite(&self) -> &RwLock<()> {
        &self.rewrite
    }

    /// Brings the time of the engine, which begins with the driver, up to date.
    pub(crate) fn tick(&self, state: &mut State<E>) {
        let now = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        state.now = state.now.max(Nanos::new(now));
    }

    /// Lets the engine go on, hands out what it asks for, and answers whose requests are over. Called after whatever happened. Gives the
    /// time when it has to be called again although nothing did.
    pub(crate) fn turn(&self, state: &mut State<E>) -> Option<Instant> {
        if state.over {
            return None;
        }
        self.tick(state);
        let State { engine, waiting, now, .. } = &mut *state;
        engine.turn(&self.shared, *now);
        let wake = engine.due().map(|at| self.start + Duration::from_nanos(at.get()));
        let wake = wake.into_iter().chain(E::due_below(&self.shared)).min();
        engine.wake(&self.shared, wake);
        while let Some((tag, outcome)) = engine.poll_done() {
            // Where nobody waits, what was taken stays in memory until it is written, or the engine takes no changes any more.
            waiting.end(tag, outcome);
        }
        engine.notice();
        // Without anybody who waits it would still be a system call.
        if state.busy > 0 {
            self.progress.notify_all();
        }
        wake
    }

    /// Sleeps until something completes, but not for long.
    fn wait<'a>(&'a self, mut state: MutexGuard<'a, State<E>>) -> MutexGuard<'a, State<E>> {
        state.busy += 1;
        let mut state = wait_for(&self.progress, state, BUSY_WAIT);
        state.busy -= 1;
        state
    }

    /// Asks the engine until it is not busy. The number is the tag of the request.
    pub(crate) fn ask<T, R: From<Over>>(
        &self,
        mut what: impl FnMut(&mut State<E>, u64) -> Result<T, Refused<R>>,
    ) -> Result<T, R> {
        let _fuse = Fuse(self);
        let mut state = self.state();
        let mut since = None;
        loop {
            if state.over {
                return Err(Over.into());
            }
            let tag = state.waiting.tag();
            match what(&mut state, tag) {
                Ok(done) => {
                    state.waiting.taken();
                    if let Some(since) = since {
                        state.stalls.note(Instant::elapsed(&since));
                    }
                    return Ok(done);
                }
                Err(Refused::Busy) => {}
                Err(Refused::Never(refusal)) => return Err(refusal),
            }
            since.get_or_insert_with(Instant::now);
            self.turn(&mut state);
            state = self.wait(state);
        }
    }

    /// Asks the engine for something that it reports when it is over, and waits for that.
    pub(crate) fn ask_and_wait<T, R: From<Over>>(
        &self,
        mut what: impl FnMut(&mut State<E>, u64) -> Result<T, Refused<R>>,
    ) -> Result<(T, E::Outcome), R> {
        let answer = Answer::default();
        let done = self.ask::<T, R>(|state, tag| {
            let done = what(state, tag)?;
            state.waiting.expect(tag, &answer);
            self.turn(state);
            Ok(done)
        })?;
        Ok((done, answer.wait()))
    }

    /// Lets the engine go on until something is so.
    ///
    /// # Errors
    /// It was stopped, or a thread panicked, before that.
    pub(crate) fn until<T>(
        &self,
        mut what: impl FnMut(&mut State<E>) -> Option<T>,
    ) -> Result<T, Over> {
        let _fuse = Fuse(self);
        let mut state = self.state();
        loop {
            if state.over {
                return Err(Over);
            }
            self.turn(&mut state);
            match what(&mut state) {
                Some(done) => return Ok(done),
                None => state = self.wait(state),
            }
        }
    }

    /// A request to what lies below is over.
    fn completed(&self, job: E::Job) {
        let mut state = self.state();
        if state.over {
            return;
        }
        let now = state.now;
        state.engine.completed(now, job);
        self.turn(&mut state);
    }

    /// Nothing is done any more: whoever waits gets an error, and the threads end. What is under way below is waited for.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.fall();
        state.engine.wake(&self.shared, None);
        drop(state);
        E::close(&self.shared);
        self.watched.notify_all();
        self.progress.notify_all();
    }

    /// Whether somebody waits for the end of a request.
    #[cfg(test)]
    pub(crate) fn is_awaited(&self) -> bool {
        !self.state().waiting.is_empty()
    }
}

impl<E: Driven> State<E> {
    /// Nothing is done any more, and whoever waits gets an error.
    fn fall(&mut self) {
        self.over = true;
        self.engine.fall();
        self.waiting.end_all(E::fallen);
    }
}

/// Sleeps until something is told, or for so long.
fn wait_for<'a, E: Driven>(
    told: &Condvar,
    state: MutexGuard<'a, State<E>>,
    longest: Duration,
) -> MutexGuard<'a, State<E>> {
    let waited = told.wait_timeout(state, longest);
    waited.map_or_else(|poisoned| fallen(poisoned.into_inner().0), |waited| waited.0)
}

/// A panic left the state half done.
fn fallen<E: Driven>(mut state: MutexGuard<'_, State<E>>) -> MutexGuard<'_, State<E>> {
    state.fall();
    state
}
