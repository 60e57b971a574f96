//! The parts of a buffer.

use crate::Stream;

/// One list of a policy: its name in statistics, and the kind of data its programs carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// Name in statistics. Lists with the same name are one area there.
    pub name: &'static str,
    /// Stream of its programs.
    pub stream: Stream,
}

impl Area {
    /// A list whose programs carry any kind of data.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, stream: Stream::Other }
    }

    /// A list whose programs carry append-only data.
    #[must_use]
    pub const fn append_only(name: &'static str) -> Self {
        Self { name, stream: Stream::AppendOnly }
    }

    /// A list of ghosts: keys without bytes.
    #[must_use]
    pub const fn ghosts() -> Self {
        Self::new("ghosts")
    }
}
