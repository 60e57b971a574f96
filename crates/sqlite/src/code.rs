//! Result codes of SQLite.

/// A result code of SQLite that is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) i32);

impl Code {
    /// An extended code of `SQLITE_IOERR`.
    const fn io(kind: i32) -> Self {
        Self(10 + 256 * kind)
    }

    pub(crate) const OK: i32 = 0;
    pub(crate) const ERROR: Self = Self(1);
    pub(crate) const BUSY: Self = Self(5);
    pub(crate) const FULL: Self = Self(13);
    pub(crate) const CANTOPEN: Self = Self(14);
    pub(crate) const READ: Self = Self::io(1);
    pub(crate) const SHORT_READ: Self = Self::io(2);
    pub(crate) const WRITE: Self = Self::io(3);
    pub(crate) const SYNC: Self = Self::io(4);
    pub(crate) const DELETE: Self = Self::io(10);
    pub(crate) const SHM_OPEN: Self = Self::io(18);
    pub(crate) const LOCK: Self = Self::io(15);
}
