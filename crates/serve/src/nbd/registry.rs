//! All NBD connections of a device: caps, the rule E6, and stopping.
//!
//! E6: when a connection dies, its thread finishes the request that it executes. No new connection
//! starts I/O before that, else a late old write could overwrite a retried newer one. A new
//! connection therefore looks for sockets whose peer has hung up and waits until their threads
//! have left.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::Shutdown;

use crate::limits::{Budget, Limits};

/// How often a waiting new connection looks again; the wake-up normally comes first.
const RECHECK: Duration = Duration::from_millis(10);

/// Who is at the other end, for the cap per peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Address(std::net::IpAddr),
    Process(i32),
    Unknown,
}

/// Why a connection ended badly, as told in the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionError {
    /// The peer broke the protocol.
    Protocol,
    /// The handshake took too long.
    Timeout,
    /// The peer had too many connections.
    PeerLimit,
    /// The socket failed, or the peer left without a word.
    Lost,
    /// Replies could not be delivered before the server stopped.
    Stopped,
}

impl ConnectionError {
    /// Every kind, in report order.
    pub const ALL: [Self; 5] =
        [Self::Protocol, Self::Timeout, Self::PeerLimit, Self::Lost, Self::Stopped];

    /// Stable name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Protocol => "protocol",
            Self::Timeout => "timeout",
            Self::PeerLimit => "peer_limit",
            Self::Lost => "lost",
            Self::Stopped => "stopped",
        }
    }

    const fn slot(self) -> usize {
        match self {
            Self::Protocol => 0,
            Self::Timeout => 1,
            Self::PeerLimit => 2,
            Self::Lost => 3,
            Self::Stopped => 4,
        }
    }
}

struct Entry {
    id: u64,
    socket: Arc<OwnedFd>,
    peer: Peer,
    /// Whether it may execute requests.
    in_transmission: bool,
    abandoned: Arc<AtomicBool>,
}

/// The table of connections.
pub(crate) struct Registry {
    pub(super) limits: Limits,
    pub(super) budget: Budget,
    entries: Mutex<Vec<Entry>>,
    changed: Condvar,
    stopping: AtomicBool,
    next_id: AtomicU64,
    errors: [AtomicU64; 5],
}

/// A connection's place in the table; it leaves when dropped.
pub(super) struct Membership {
    registry: Arc<Registry>,
    id: u64,
    abandoned: Arc<AtomicBool>,
}

impl Registry {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            budget: Budget::new(limits.total_bytes),
            limits,
            entries: Mutex::default(),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
            next_id: AtomicU64::new(0),
            errors: Default::default(),
        }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        entries: MutexGuard<'a, Vec<Entry>>,
        time: Duration,
    ) -> MutexGuard<'a, Vec<Entry>> {
        self.changed.wait_timeout(entries, time).unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Number of connections now.
    pub(crate) fn len(&self) -> usize {
        self.entries().len()
    }

    pub(super) fn count_error(&self, error: ConnectionError) {
        self.errors[error.slot()].fetch_add(1, Ordering::Relaxed);
    }

    /// Connections that ended badly, by kind.
    pub(crate) fn errors(&self, error: ConnectionError) -> u64 {
        self.errors[error.slot()].load(Ordering::Relaxed)
    }

    /// Waits until a connection may be accepted; `false` when the server stops.
    pub(super) fn wait_for_room(&self) -> bool {
        let mut entries = self.entries();
        while entries.len() >= self.limits.connections && !self.stopping() {
            entries = self.wait(entries, Duration::from_millis(200));
        }
        !self.stopping()
    }

    /// Enters a connection into the table, unless its peer has too many.
    pub(super) fn admit(
        self: &Arc<Self>,
        socket: &Arc<OwnedFd>,
        peer: Peer,
    ) -> Result<Membership, ConnectionError> {
        let mut entries = self.entries();
        if self.stopping() {
            return Err(ConnectionError::Stopped);
        }
        if entries.iter().filter(|entry| entry.peer == peer).count()
            >= self.limits.connections_per_peer
        {
            return Err(ConnectionError::PeerLimit);
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let abandoned = Arc::new(AtomicBool::new(false));
        entries.push(Entry {
            id,
            socket: Arc::clone(socket),
            peer,
            in_transmission: false,
            abandoned: Arc::clone(&abandoned),
        });
        Ok(Membership { registry: Arc::clone(self), id, abandoned })
    }

    /// Tells every connection to end: no more requests are read.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        for entry in self.entries().iter() {
            // Fails only if the peer is gone already, and then the thread ends anyway.
            let _ = rustix::net::shutdown(&*entry.socket, Shutdown::Read);
        }
        self.changed.notify_all();
    }

    /// Waits until all connections have ended; cuts those that have not by the deadline.
    pub(crate) fn wait_until_empty(&self, deadline: Instant) {
        let mut entries = self.entries();
        while !entries.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                for entry in entries.iter() {
                    entry.abandoned.store(true, Ordering::Relaxed);
                    let _ = rustix::net::shutdown(&*entry.socket, Shutdown::Both);
                }
                // A request that the device executes now still ends before the final flush.
                entries = self.wait(entries, Duration::from_millis(50));
            } else {
                entries = self.wait(entries, left);
            }
        }
    }
}

impl Membership {
    /// Whether the rest of the requests is to be dropped.
    pub(super) fn abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Waits until every dead connection has finished, then lets this one execute requests.
    pub(super) fn begin_transmission(&self) {
        let mut entries = self.registry.entries();
        let dead = dead_connections(&entries);
        while entries.iter().any(|entry| dead.contains(&entry.id)) {
            entries = self.registry.wait(entries, RECHECK);
        }
        if let Some(entry) = entries.iter_mut().find(|entry| entry.id == self.id) {
            entry.in_transmission = true;
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.registry.entries().retain(|entry| entry.id != self.id);
        self.registry.changed.notify_all();
    }
}

/// Connections that may execute requests although their peer has hung up.
fn dead_connections(entries: &[Entry]) -> Vec<u64> {
    let live: Vec<&Entry> = entries.iter().filter(|entry| entry.in_transmission).collect();
    let mut fds: Vec<PollFd<'_>> = live
        .iter()
        .map(|entry| PollFd::from_borrowed_fd(entry.socket.as_fd(), PollFlags::RDHUP))
        .collect();
    if poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_err() {
        return Vec::new();
    }
    let gone = PollFlags::HUP | PollFlags::ERR;
    let mut dead = Vec::new();
    for (entry, fd) in live.iter().zip(&fds) {
        if fd.revents().intersects(gone) {
            // Nobody can take a reply. A half-closed peer (RDHUP alone) said good-bye and still
            // gets what it asked for.
            entry.abandoned.store(true, Ordering::Relaxed);
        }
        if fd.revents().intersects(gone | PollFlags::RDHUP) {
            dead.push(entry.id);
        }
    }
    dead
}
