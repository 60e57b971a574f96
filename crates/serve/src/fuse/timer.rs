//! A thread that sends replies when they are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// A reply due sooner than this is waited for by looking at the clock: a sleep would end late.
const SPIN: Duration = Duration::from_micros(60);

/// Sends one reply.
type Send = Box<dyn FnOnce() + std::marker::Send>;

struct Waiting {
    due: Instant,
    number: u64,
    send: Send,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        (self.due, self.number) == (other.due, other.number)
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

#[derive(Default)]
struct Queue {
    heap: BinaryHeap<Reverse<Waiting>>,
    number: u64,
    thread: Option<Thread>,
}

/// Keeps replies until they are due.
#[derive(Default)]
pub(super) struct ReplyTimer {
    queue: Mutex<Queue>,
    stopped: AtomicBool,
}

impl ReplyTimer {
    pub(super) fn start() -> io::Result<Arc<Self>> {
        let timer = Arc::new(Self::default());
        let shared = Arc::clone(&timer);
        let thread =
            std::thread::Builder::new().name("fuse-timer".into()).spawn(move || shared.serve())?;
        timer.queue().thread = Some(thread.thread().clone());
        Ok(timer)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `send` at `due`, or as soon after the timer was stopped.
    pub(super) fn at(&self, due: Instant, send: Send) {
        let mut queue = self.queue();
        queue.number += 1;
        let number = queue.number;
        let first = queue.heap.peek().is_none_or(|Reverse(first)| due < first.due);
        queue.heap.push(Reverse(Waiting { due, number, send }));
        let thread = queue.thread.clone().filter(|_| first);
        drop(queue);
        if let Some(thread) = thread {
            thread.unpark();
        }
    }

    /// Ends the thread once it has sent what is due.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Relaxed);
        if let Some(thread) = &self.queue().thread {
            thread.unpark();
        }
    }

    fn serve(&self) {
        // Without it the kernel lets sleeps end up to 50 us late.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        loop {
            let now = Instant::now();
            match self.next(now) {
                Ok(send) => send(),
                Err(_) if self.stopped.load(Relaxed) => return,
                Err(None) => std::thread::park(),
                Err(Some(due)) => match due.checked_duration_since(now + SPIN) {
                    Some(time) if !time.is_zero() => std::thread::park_timeout(time),
                    _ => std::hint::spin_loop(),
                },
            }
        }
    }

    /// The first reply if it is due at `now`, else when it will be.
    fn next(&self, now: Instant) -> Result<Send, Option<Instant>> {
        let mut queue = self.queue();
        match queue.heap.peek() {
            Some(Reverse(first)) if first.due <= now => {}
            Some(Reverse(first)) => return Err(Some(first.due)),
            None => return Err(None),
        }
        queue.heap.pop().map(|Reverse(first)| first.send).ok_or(None)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use super::ReplyTimer;

    #[test]
    fn replies_are_sent_in_the_order_of_their_time_and_never_early() {
        let timer = ReplyTimer::start().unwrap();
        let (sender, receiver) = mpsc::channel();
        let start = Instant::now();
        for millis in [30, 10, 20] {
            let (sender, due) = (sender.clone(), start + Duration::from_millis(millis));
            timer.at(due, Box::new(move || sender.send((millis, Instant::now() >= due)).unwrap()));
        }
        drop(sender);
        let sent: Vec<_> = receiver.iter().collect();
        assert_eq!(sent, [(10, true), (20, true), (30, true)]);
        timer.stop();
    }
}
