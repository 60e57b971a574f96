//! Threads of one connection for requests that wait for a drive: the others go on meanwhile.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use onefold_device::edge::Edge;
use onefold_device::{BlockDevice, Due};
use rustix::event::{EventfdFlags, eventfd};

use super::execute::{Scratch, execute};
use super::parse::{Command, Output, ReplyStyle, Request};

/// Threads of a connection at most: the queue depth that a drive sees of it.
const THREADS_MAX: usize = 32;

/// A request that was executed.
pub(super) struct Done {
    pub(super) due: Due,
    pub(super) command: Command,
    pub(super) reply: Vec<u8>,
    /// What it was counted with in [`Workers::bytes`].
    bytes: usize,
}

struct Job {
    style: ReplyStyle,
    request: Request,
    payload: Vec<u8>,
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
    edge: Arc<Edge<D>>,
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
    pub(super) fn new(edge: &Arc<Edge<D>>) -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (queue, work) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { edge: Arc::clone(edge), queue, work, bell });
        Ok(Self { shared, threads: Vec::new(), pending: 0, bytes: 0 })
    }

    /// Takes a request. `false`: there is no thread for it.
    pub(super) fn take(&mut self, style: ReplyStyle, request: Request, payload: &[u8]) -> bool {
        let idle = self.shared.queue().idle;
        if idle <= self.shared.queue().jobs.len() && self.threads.len() < THREADS_MAX {
            self.add_thread();
        }
        if self.threads.is_empty() {
            return false;
        }
        let bytes = payload.len() + reply_bytes(&request.command);
        self.pending += 1;
        self.bytes += bytes;
        let job = Job { style, request, payload: payload.to_vec(), bytes };
        self.shared.queue().jobs.push_back(job);
        self.shared.work.notify_one();
        true
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

    /// Bytes of their payloads and replies.
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
        let (mut out, mut scratch) = (Output::default(), Scratch::default());
        let watch = Watch(self);
        while let Some(Job { style, request, payload, bytes }) = self.next() {
            let due = execute(&*self.edge, style, &request, &payload, &mut out, &mut scratch);
            let reply = out.pending().to_vec();
            out.sent(reply.len());
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

/// Bytes of data in the reply to a request.
fn reply_bytes(command: &Command) -> usize {
    match command {
        Command::Read { len, .. } => onefold_units::convert::index(*len),
        _ => 0,
    }
}
