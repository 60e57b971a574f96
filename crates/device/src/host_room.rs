//! Whether the file system of a host has the room that a sparse file may take.

use std::path::Path;

use crate::backing::{Access, Backing};

/// What a sparse file may still take, and what is left for it. Others may take it first, and so may other images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRoom {
    /// Bytes that the file may still take.
    pub wanted: u64,
    /// Bytes that the file system has.
    pub free: u64,
}

impl HostRoom {
    /// Of a file that somebody else may have open; `None` for what is no regular file, or cannot be looked at.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        let bytes = path.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
        let backing = Backing::open(path, Access::ReadOnly).ok()?;
        let wanted = bytes.saturating_sub(backing.allocated().ok()?);
        Some(Self { wanted, free: backing.free().ok()? })
    }

    /// Whether the file can grow to its size.
    #[must_use]
    pub const fn is_enough(&self) -> bool {
        self.wanted <= self.free
    }
}
