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

use crate::limits::Limits;
use crate::memory::{Budget, ConnectionMemory};

/// How often a waiting new connection looks again; the wake-up normally comes first.
const RECHECK: Duration = Duration::from_millis(10);

/// How long a peer that will send no more may take to fetch its last replies while another waits.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Who is at the other end, for the cap per peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
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
    /// There were too many connections.
    Limit,
    /// It gave way to a newer one before its handshake was over.
    Crowded,
    /// The peer held up memory that others waited for.
    Stalled,
    /// The socket failed, or the peer left without a word.
    Lost,
    /// Replies could not be delivered before the server stopped.
    Stopped,
}

impl ConnectionError {
    /// Every kind, in report order.
    pub const ALL: [Self; 8] = [
        Self::Protocol,
        Self::Timeout,
        Self::PeerLimit,
        Self::Limit,
        Self::Crowded,
        Self::Stalled,
        Self::Lost,
        Self::Stopped,
    ];

    /// Stable name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Protocol => "protocol",
            Self::Timeout => "timeout",
            Self::PeerLimit => "peer_limit",
            Self::Limit => "limit",
            Self::Crowded => "crowded",
            Self::Stalled => "stalled",
            Self::Lost => "lost",
            Self::Stopped => "stopped",
        }
    }

    /// What a client is told that is refused.
    pub(super) const fn refusal(self) -> &'static str {
        match self {
            Self::PeerLimit => {
                "this client has as many NBD connections as the server allows to one client; \
                 close one of them"
            }
            _ => "the server has as many NBD connections as it allows; close one of them",
        }
    }

    const fn slot(self) -> usize {
        match self {
            Self::Protocol => 0,
            Self::Timeout => 1,
            Self::PeerLimit => 2,
            Self::Limit => 3,
            Self::Crowded => 4,
            Self::Stalled => 5,
            Self::Lost => 6,
            Self::Stopped => 7,
        }
    }
}

struct Entry {
    id: u64,
    socket: Arc<OwnedFd>,
    peer: Peer,
    /// Whether its handshake is over.
    entered: bool,
    /// Whether it may execute requests.
    in_transmission: bool,
    /// It gave way to a newer one.
    crowded: bool,
    abandoned: Arc<AtomicBool>,
}

impl Entry {
    /// Ends it: what it executes now is its last request.
    fn cut(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
        let _ = rustix::net::shutdown(&*self.socket, Shutdown::Both);
    }
}

/// The table of connections.
pub(crate) struct Registry {
    pub(super) limits: Limits,
    pub(super) budget: Arc<Budget>,
    entries: Mutex<Vec<Entry>>,
    changed: Condvar,
    stopping: AtomicBool,
    /// The device has no power: nobody begins I/O.
    powerless: AtomicBool,
    next_id: AtomicU64,
    errors: [AtomicU64; 8],
    /// A refusal was told since a connection was last let in.
    told: AtomicBool,
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
            budget: Budget::new(limits.total_bytes, limits.connections + limits.handshakes),
            limits,
            entries: Mutex::default(),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
            powerless: AtomicBool::new(false),
            next_id: AtomicU64::new(0),
            errors: Default::default(),
            told: AtomicBool::new(false),
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

    pub(crate) fn memory(&self) -> ConnectionMemory {
        self.budget.memory()
    }

    pub(super) fn count_error(&self, error: ConnectionError) {
        self.errors[error.slot()].fetch_add(1, Ordering::Relaxed);
    }

    /// Connections that ended badly, by kind.
    pub(crate) fn errors(&self, error: ConnectionError) -> u64 {
        self.errors[error.slot()].load(Ordering::Relaxed)
    }

    /// Enters a connection into the table. If too many are in their handshake, the oldest of these gives
    /// way, so that clients that say nothing keep nobody out. `None` when the server stops.
    pub(super) fn admit(self: &Arc<Self>, socket: &Arc<OwnedFd>, peer: Peer) -> Option<Membership> {
        let mut entries = self.entries();
        while !self.stopping() && greeting(&entries).count() >= self.limits.handshakes {
            let leaves = greeting(&entries).any(|entry| entry.crowded);
            if !leaves && let Some(oldest) = entries.iter_mut().find(|entry| !entry.entered) {
                oldest.crowded = true;
                let _ = rustix::net::shutdown(&*oldest.socket, Shutdown::Both);
                self.tell_once("too many NBD clients are in their handshake; the oldest is closed");
            }
            // Until it has left: there is memory for no more of them.
            entries = self.wait(entries, RECHECK);
        }
        if self.stopping() {
            return None;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let abandoned = Arc::new(AtomicBool::new(false));
        entries.push(Entry {
            id,
            socket: Arc::clone(socket),
            peer,
            entered: false,
            in_transmission: false,
            crowded: false,
            abandoned: Arc::clone(&abandoned),
        });
        Some(Membership { registry: Arc::clone(self), id, abandoned })
    }

    /// Writes a line about a refusal to the log, once until somebody is let in again.
    fn tell_once(&self, what: &str) {
        if !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!("{what}");
        }
    }

    /// The device loses its power: every connection ends without another answer, and those that come wait with their requests
    /// until [`Registry::power_is_back`].
    pub(crate) fn lose_power(&self) {
        let entries = self.entries();
        self.powerless.store(true, Ordering::Release);
        entries.iter().for_each(Entry::cut);
    }

    pub(crate) fn power_is_back(&self) {
        let _entries = self.entries();
        self.powerless.store(false, Ordering::Release);
        self.changed.notify_all();
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
                entries.iter().for_each(Entry::cut);
                // A request that the device executes now still ends before the final flush.
                entries = self.wait(entries, Duration::from_millis(50));
            } else {
                entries = self.wait(entries, left);
            }
        }
    }
}

impl Membership {
    /// Whether the connection gave way to a newer one.
    pub(super) fn is_crowded(&self) -> bool {
        self.registry.entries().iter().any(|entry| entry.id == self.id && entry.crowded)
    }

    /// Counts the connection among those whose handshake is over, or says which limit is reached.
    pub(super) fn enter(&self) -> Result<(), ConnectionError> {
        let mut entries = self.registry.entries();
        let limits = &self.registry.limits;
        let Some(at) = entries.iter().position(|entry| entry.id == self.id) else {
            return Err(ConnectionError::Lost);
        };
        let peer = entries[at].peer.clone();
        let all = entries.iter().filter(|entry| entry.entered);
        let of_peer = all.clone().filter(|entry| entry.peer == peer).count();
        let reached = if all.count() >= limits.connections {
            ConnectionError::Limit
        } else if of_peer >= limits.connections_per_peer {
            ConnectionError::PeerLimit
        } else {
            entries[at].entered = true;
            self.registry.told.store(false, Ordering::Relaxed);
            self.registry.changed.notify_all();
            return Ok(());
        };
        drop(entries);
        self.registry.count_error(reached);
        self.registry.tell_once(reached.refusal());
        Err(reached)
    }

    /// Whether the rest of the requests is to be dropped.
    pub(super) fn abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Waits until every dead connection has finished, then lets this one execute requests.
    pub(super) fn begin_transmission(&self) {
        let mut entries = self.registry.entries();
        while self.registry.powerless.load(Ordering::Acquire) && !self.registry.stopping() {
            entries = self.registry.wait(entries, RECHECK);
        }
        let dead = dead_connections(&entries);
        let deadline = Instant::now() + LAST_WORDS;
        while entries.iter().any(|entry| dead.contains(&entry.id)) {
            if Instant::now() >= deadline {
                // A half-closed peer that fetches nothing. What is executed now still ends first.
                entries.iter().filter(|entry| dead.contains(&entry.id)).for_each(Entry::cut);
            }
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

/// Connections whose handshake is not over.
fn greeting(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(|entry| !entry.entered)
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
