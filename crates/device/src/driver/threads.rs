//! The threads of what is driven: what becomes of callers when one panics, and how they end.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::jobs::{Jobs, Next};

/// What is driven by several threads.
pub(crate) trait Driven: Send + Sync {
    /// Ends the threads. What is under way is waited for.
    fn stop(&self);

    /// Nothing is done any more: whoever waits gets an error, and the threads end.
    fn fall(&self);
}

/// Held by whoever drives the volume: a panic answers all who wait.
pub(crate) struct Fuse<'a, T: Driven>(pub(crate) &'a T);

impl<T: Driven> Drop for Fuse<'_, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fall();
        }
    }
}

/// Ends the threads with the last handle.
pub(crate) struct Threads<T: Driven> {
    driven: Arc<T>,
    list: Mutex<Vec<JoinHandle<()>>>,
}

impl<T: Driven + 'static> Threads<T> {
    pub(crate) fn new(driven: &Arc<T>) -> Self {
        Self { driven: Arc::clone(driven), list: Mutex::default() }
    }

    pub(crate) fn push(&self, thread: JoinHandle<()>) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }

    /// Starts a thread.
    ///
    /// # Errors
    /// The system has none.
    pub(crate) fn start(
        &self,
        name: String,
        run: impl FnOnce(&T) + Send + 'static,
    ) -> std::io::Result<()> {
        let driven = Arc::clone(&self.driven);
        let run = move || {
            let _fuse = Fuse(&*driven);
            run(&driven);
        };
        self.push(thread::Builder::new().name(name).spawn(run)?);
        Ok(())
    }
}

impl<T: Driven> Drop for Threads<T> {
    fn drop(&mut self) {
        self.driven.stop();
        let list = std::mem::take(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in list {
            let _ = thread.join();
        }
    }
}

/// Does one job after the other, and what is due in between, until the queue is closed.
pub(crate) fn work<J>(jobs: &Jobs<J>, due: impl Fn(), job: impl Fn(J)) {
    loop {
        match jobs.next() {
            Next::Closed => return,
            Next::Timeout => due(),
            Next::Job(one) => job(one),
        }
    }
}
