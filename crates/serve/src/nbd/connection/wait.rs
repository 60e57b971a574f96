//! Waiting for input, for room in the socket, for the time of a reply, and for other threads.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use onefold_device::BlockDevice;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::super::registry::ConnectionError;
use super::super::workers::Workers;
use super::{Connection, Want};

/// A reply due sooner than this is waited for by looking at the clock: a sleep would end late.
const SPIN: Duration = Duration::from_micros(60);
/// How often an idle connection looks for input, giving way to other threads in between, before it
/// sleeps. A busy client's next requests come within that time; it then saves the wake-up, and more
/// of its requests are taken at once.
const LINGER: usize = 16;
/// How long a connection sleeps that waits for the shared budget.
const BUDGET_WAIT: Duration = Duration::from_millis(1);
/// How often a connection whose peer is behind looks whether others wait for what it holds.
const WATCH: Duration = Duration::from_millis(500);

impl<D: BlockDevice + 'static> Connection<D> {
    /// Waits until there is something to do, receiving input if it is wanted.
    pub(super) fn wait(&mut self, want: Want) -> Result<(), ConnectionError> {
        self.watch_progress(want)?;
        let idle = self.out.is_empty() && self.pending() == 0 && self.deadline.is_none();
        match want {
            Want::Input(bytes) if idle => {
                for _ in 0..LINGER {
                    if self.receive(bytes, RecvFlags::DONTWAIT)? {
                        return Ok(());
                    }
                    rustix::thread::sched_yield();
                }
                let came = self.receive(bytes, RecvFlags::empty())?;
                if came || !self.input.data().is_empty() { Ok(()) } else { self.rest() }
            }
            Want::Input(bytes) if self.due_soon() => {
                self.receive(bytes, RecvFlags::DONTWAIT).map(drop)
            }
            _ if self.due_soon() => {
                std::hint::spin_loop();
                Ok(())
            }
            _ => self.sleep(want),
        }
    }

    /// Waits for the next request without memory: a client may say nothing for days.
    fn rest(&mut self) -> Result<(), ConnectionError> {
        self.input.shrink();
        self.out.shrink();
        self.workers = None;
        self.account.settle(self.used());
        let mut fds = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(_) => Err(self.lost()),
        }
    }

    /// Ends a connection whose peer keeps memory from others: it takes no reply, or its request stays
    /// half-sent. Nobody is ended for being idle, or while nobody waits.
    fn watch_progress(&mut self, want: Want) -> Result<(), ConnectionError> {
        if !self.is_behind(want) {
            self.progress = Instant::now();
        }
        if self.progress.elapsed() < self.registry.limits.stall || !self.account.is_in_the_way() {
            return Ok(());
        }
        tracing::warn!(
            "an NBD client neither took its replies nor finished a request for {} s while others \
             waited for the memory; its connection is closed",
            self.registry.limits.stall.as_secs()
        );
        Err(ConnectionError::Stalled)
    }

    /// Whether the peer has something to do: to take replies, or to send the rest of a request.
    fn is_behind(&self, want: Want) -> bool {
        let half_sent = matches!(want, Want::Input(_)) && !self.input.data().is_empty();
        half_sent || !self.out.is_empty()
    }

    /// Whether the next reply is due so soon that sleeping would miss it.
    fn due_soon(&self) -> bool {
        let horizon = Instant::now() + SPIN;
        self.delayed.next_due().is_some_and(|due| due <= horizon)
    }

    fn sleep(&mut self, want: Want) -> Result<(), ConnectionError> {
        let now = Instant::now();
        let mut events = PollFlags::empty();
        if matches!(want, Want::Input(_)) {
            events |= PollFlags::IN;
        }
        if !self.out.is_empty() {
            events |= PollFlags::OUT;
        }
        let timeout = self.timeout(want, now).and_then(|time| Timespec::try_from(time).ok());
        let socket = PollFd::from_borrowed_fd(self.socket.as_fd(), events);
        let bell = self.workers.as_ref().map_or_else(|| self.socket.as_fd(), Workers::bell);
        let mut fds = [socket, PollFd::from_borrowed_fd(bell, PollFlags::IN)];
        let count = if self.workers.is_some() { 2 } else { 1 };
        match poll(&mut fds[..count], timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Err(self.lost()),
        }
        let news = fds[0].revents();
        if news.intersects(PollFlags::ERR | PollFlags::HUP) && !news.contains(PollFlags::IN) {
            return Err(self.lost());
        }
        match want {
            Want::Input(bytes) if news.contains(PollFlags::IN) => {
                self.receive(bytes, RecvFlags::DONTWAIT).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// How long a sleep may last.
    fn timeout(&self, want: Want, now: Instant) -> Option<Duration> {
        let due = self.delayed.next_due().map(|due| due.checked_sub(SPIN).unwrap_or(due));
        let first = due.into_iter().chain(self.deadline).min();
        let time = first.map(|first| first.saturating_duration_since(now));
        let looks = if want == Want::Budget {
            Some(BUDGET_WAIT)
        } else {
            self.is_behind(want).then_some(WATCH)
        };
        time.into_iter().chain(looks).min()
    }

    /// Receives what is there, waiting for it unless told otherwise. Says whether anything came.
    fn receive(&mut self, need: usize, flags: RecvFlags) -> Result<bool, ConnectionError> {
        let room = self.input.room(need);
        match rustix::net::recv(&*self.socket, room, flags) {
            Ok((_, 0)) if self.registry.stopping() => {
                self.reading = false;
                Ok(true)
            }
            Ok((_, 0)) => Err(ConnectionError::Lost),
            Ok((_, count)) => {
                self.input.received(count);
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(_) => Err(self.lost()),
        }
    }
}
