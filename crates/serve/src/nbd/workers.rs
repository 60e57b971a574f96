//! Threads of one connection for requests that wait for a drive: the others go on meanwhile.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use onefold_device::observed::Observed;
use onefold_device::{BlockDevice, Due};
use rustix::event::{EventfdFlags, eventfd};

use super::execute::{execute, reply_bytes};
use super::parse::{Command, Output, ReplyStyle, Request};
use crate::memory::Buffer;

/// Threads of a connection at most: the queue depth that a drive sees of it.
const THREADS_MAX: usize = 32;

/// A request that was executed.
pub(super) struct Done {
    pub(super) due: Due,
    pub(super) command: Command,
    pub(super) reply: Output,
    /// What it was counted with in [`Workers::bytes`].
    bytes: usize,
}

/// The data of a write: a part of a buffer.
pub(super) type Payload = (Buffer, Range<usize>);

struct Job {
    style: ReplyStyle,
    request: Request,
    payload: Payload,
    bytes: usize,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    done: Vec<Done>,
    /// Threads that wait for a job.
    idle: usize,
    /// The bell was rung since what is done was last taken.
    rung: bool,
    /// Nothing is begun any more.
    over: bool,
    /// A thread panicked: its request is never answered.
    broken: bool,
}

struct Shared<D> {
    observed: Arc<Observed<D>>,
    queue: Mutex<Queue>,
    work: Condvar,
    /// Readable while something is done that nobody took.
    bell: OwnedFd,
}

/// The threads; dropping them waits for the requests that are being executed and forgets the others.
pub(super) struct Workers<D> {
    shared: Arc<Shared<D>>,
    threads: Vec<JoinHandle<()>>,
    pending: usize,
    bytes: usize,
}

impl<D: BlockDevice + 'static> Workers<D> {
    /// No threads yet. Fails for want of descriptors.
    pub(super) fn new(observed: &Arc<Observed<D>>) -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (queue, work) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { observed: Arc::clone(observed), queue, work, bell });
        Ok(Self { shared, threads: Vec::new(), pending: 0, bytes: 0 })
    }

    /// Whether there is a thread for one more request; starts one if that helps.
    pub(super) fn are_ready(&mut self) -> bool {
        let queue = self.shared.queue();
        let none_idle = queue.idle <= queue.jobs.len();
        drop(queue);
        if none_idle && self.threads.len() < THREADS_MAX {
            self.add_thread();
        }
        !self.threads.is_empty()
    }

    /// Takes a request.
    pub(super) fn take(&mut self, style: ReplyStyle, request: Request, payload: Payload) {
        let bytes = payload.0.len() + reply_bytes(&request.command);
        self.pending += 1;
        self.bytes += bytes;
        self.shared.queue().jobs.push_back(Job { style, request, payload, bytes });
        self.shared.work.notify_one();
    }

    fn add_thread(&mut self) {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("nbd-worker".into());
        match thread.spawn(move || shared.serve()) {
            Ok(thread) => self.threads.push(thread),
            Err(error) => tracing::debug!(%error, "cannot start a thread for requests"),
        }
    }

    /// Moves what was executed to `done`. `false`: a request will never be.
    pub(super) fn collect(&mut self, done: &mut Vec<Done>) -> bool {
        let from = done.len();
        let mut queue = self.shared.queue();
        if queue.rung {
            queue.rung = false;
            // It is readable, as the flag says.
            let _ = rustix::io::read(&self.shared.bell, &mut [0; 8]);
        }
        done.append(&mut queue.done);
        let broken = queue.broken;
        drop(queue);
        let taken = done.get(from..).unwrap_or_default();
        self.pending -= taken.len();
        self.bytes -= taken.iter().map(|done| done.bytes).sum::<usize>();
        !broken
    }
}

impl<D> Workers<D> {
    /// Requests that were taken and not collected.
    pub(super) const fn pending(&self) -> usize {
        self.pending
    }

    /// Memory of their payloads and replies, in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Readable when there is something to collect.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.shared.bell.as_fd()
    }
}

impl<D> Drop for Workers<D> {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.over = true;
        queue.jobs.clear();
        drop(queue);
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl<D> Shared<D> {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self, queue: &mut Queue) {
        if !queue.rung {
            queue.rung = true;
            // It cannot fail: the counter is at 0.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queue = self.queue();
        loop {
            if queue.over {
                return None;
            }
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            queue.idle += 1;
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }
}

impl<D: BlockDevice> Shared<D> {
    fn serve(&self) {
        let watch = Watch(self);
        while let Some(Job { style, request, payload, bytes }) = self.next() {
            let mut reply = Output::with_room(reply_bytes(&request.command));
            let (buffer, part) = &payload;
            let due = execute(&*self.observed, style, &request, &buffer[part.clone()], &mut reply);
            drop(payload);
            let mut queue = self.queue();
            queue.done.push(Done { due, command: request.command, reply, bytes });
            self.ring(&mut queue);
        }
        std::mem::forget(watch);
    }
}

/// Tells the connection if a thread panics.
struct Watch<'a, D>(&'a Shared<D>);

impl<D> Drop for Watch<'_, D> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.broken = true;
        self.0.ring(&mut queue);
    }
}
