//! Limits of the front ends (frontends.md, section 7).

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// How much the clients together may ask for. At a limit the server stops reading a socket; it
/// neither drops requests nor grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; further ones wait in the listen queue.
    pub connections: usize,
    /// Connections at a time of one peer: an address, or the process behind a Unix socket.
    /// Further ones are closed.
    pub connections_per_peer: usize,
    /// Time for the handshake.
    pub handshake: Duration,
    /// Requests in flight per connection.
    pub requests: usize,
    /// Bytes of requests and replies in flight per connection, at least twice the largest payload.
    pub bytes: usize,
    /// Bytes of requests and replies in flight in all.
    pub total_bytes: usize,
    /// Time that a stopping server gives its clients to take their replies.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            connections_per_peer: 16,
            handshake: Duration::from_secs(10),
            requests: 128,
            bytes: 64 << 20,
            total_bytes: 512 << 20,
            drain: Duration::from_secs(4),
        }
    }
}

/// Memory that all connections share.
#[derive(Debug)]
pub(crate) struct Budget {
    free: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { free: AtomicUsize::new(bytes) }
    }

    /// Takes `bytes` if they are there.
    pub(crate) fn try_take(&self, bytes: usize) -> bool {
        self.free.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(bytes)).is_ok()
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.free.fetch_add(bytes, Relaxed);
    }
}
