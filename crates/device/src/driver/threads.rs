//! The threads of a driver: what becomes of callers when one panics, and how they end.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::jobs::{Jobs, Next};
use super::{Driven, Driver};

/// Held by whoever drives the engine: a panic answers all who wait.
pub(crate) struct Fuse<'a, E: Driven>(pub(crate) &'a Driver<E>);

impl<E: Driven> Drop for Fuse<'_, E> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

/// Ends the threads with the last handle.
pub(crate) struct Threads<E: Driven> {
    driver: Arc<Driver<E>>,
    list: Mutex<Vec<JoinHandle<()>>>,
}

impl<E: Driven> Threads<E> {
    pub(crate) fn new(driver: &Arc<Driver<E>>) -> Self {
        Self { driver: Arc::clone(driver), list: Mutex::default() }
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
        run: impl FnOnce(&Driver<E>) + Send + 'static,
    ) -> std::io::Result<()> {
        let driver = Arc::clone(&self.driver);
        let run = move || {
            let _fuse = Fuse(&*driver);
            run(&driver);
        };
        self.push(thread::Builder::new().name(name).spawn(run)?);
        Ok(())
    }
}

impl<E: Driven> Drop for Threads<E> {
    fn drop(&mut self) {
        self.driver.stop();
        let list = std::mem::take(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in list {
            let _ = thread.join();
        }
    }
}

/// Does one job of a queue after the other, and what is due in between, until the queue is closed.
pub(crate) fn work<E: Driven>(driver: &Driver<E>, jobs: &Jobs<E::Job>) {
    loop {
        match jobs.next() {
            Next::Closed => return,
            Next::Timeout => {
                E::tidy_below(&driver.shared);
                driver.turn(&mut driver.state());
            }
            Next::Job(mut job) => {
                E::execute(&driver.shared, &mut job);
                driver.completed(job);
            }
        }
    }
}
