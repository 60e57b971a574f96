//! Limits of the front ends (frontends.md, section 7).

use std::time::Duration;

/// How much the clients together may ask for. At a limit of memory the server stops reading a socket; it
/// neither drops requests nor grows. A connection too many is refused in its handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time that have finished their handshake.
    pub connections: usize,
    /// The same of one peer: an address, or the process behind a Unix socket.
    pub connections_per_peer: usize,
    /// Connections at a time that have not finished it. One more makes the oldest of them give way.
    pub handshakes: usize,
    /// Time for the handshake.
    pub handshake: Duration,
    /// Requests in flight per connection.
    pub requests: usize,
    /// Bytes of requests and replies in flight per connection, at least twice the largest payload.
    pub bytes: usize,
    /// Memory of all connections together, at least four times the largest payload.
    pub total_bytes: usize,
    /// How long a client may neither take a reply nor finish a request while its connection has memory
    /// that another one waits for.
    pub stall: Duration,
    /// After this time without a request a connection gives all its memory back.
    pub idle: Duration,
    /// Time that a stopping server gives its clients to take their replies.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            connections_per_peer: 16,
            handshakes: 32,
            handshake: Duration::from_secs(10),
            requests: 128,
            bytes: 64 << 20,
            total_bytes: 512 << 20,
            stall: Duration::from_secs(30),
            idle: Duration::from_secs(1),
            drain: Duration::from_secs(4),
        }
    }
}
