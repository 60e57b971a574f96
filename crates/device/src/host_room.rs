//! Whether the file system of a host has the room that a sparse file may take.

use std::io;

use crate::backing::Backing;

/// What a sparse file may still take, and what is left for it. Others may take it first, and so may other images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRoom {
    /// Bytes that the file may still take.
    pub wanted: u64,
    /// Bytes that the file system has.
    pub free: u64,
}

impl HostRoom {
    pub(crate) fn of(backing: &Backing, bytes: u64) -> io::Result<Self> {
        Ok(Self { wanted: bytes.saturating_sub(backing.allocated()?), free: backing.free()? })
    }

    /// Whether the file can grow to its size.
    #[must_use]
    pub const fn is_enough(&self) -> bool {
        self.wanted <= self.free
    }
}
