//! Requests to what lies below, and the threads that wait for them.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest sleep of a thread without anything to do.
const IDLE: Duration = Duration::from_hours(1);

struct Queue<J> {
    jobs: VecDeque<J>,
    /// When the volume has to be pumped although nothing happened.
    wake: Option<Instant>,
    closed: bool,
}

/// A queue of requests.
pub(crate) struct Jobs<J> {
    queue: Mutex<Queue<J>>,
    changed: Condvar,
}

/// What a thread has to do next.
pub(crate) enum Next<J> {
    /// This.
    Job(J),
    /// Pump the volume.
    Timeout,
    /// End.
    Closed,
}

impl<J> Default for Jobs<J> {
    fn default() -> Self {
        let queue = Queue { jobs: VecDeque::new(), wake: None, closed: false };
        Self { queue: Mutex::new(queue), changed: Condvar::new() }
    }
}

impl<J> Jobs<J> {
    fn queue(&self) -> MutexGuard<'_, Queue<J>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, job: J) {
        self.queue().jobs.push_back(job);
        self.changed.notify_one();
    }

    pub(crate) fn wake_at(&self, at: Option<Instant>) {
        let mut queue = self.queue();
        let sooner = at.is_some_and(|at| queue.wake.is_none_or(|wake| at < wake));
        queue.wake = at;
        if sooner {
            self.changed.notify_one();
        }
    }

    pub(crate) fn close(&self) {
        self.queue().closed = true;
        self.changed.notify_all();
    }

    /// Waits for something to do.
    pub(crate) fn next(&self) -> Next<J> {
        let mut queue = self.queue();
        loop {
            if queue.closed {
                return Next::Closed;
            }
            if let Some(job) = queue.jobs.pop_front() {
                return Next::Job(job);
            }
            let now = Instant::now();
            if queue.wake.is_some_and(|wake| wake <= now) {
                queue.wake = None;
                return Next::Timeout;
            }
            let wait = queue.wake.map_or(IDLE, |wake| wake - now);
            let waited = self.changed.wait_timeout(queue, wait);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
