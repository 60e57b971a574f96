//! The words of a block interface.

use std::fmt;

/// What a host asks a block device to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// Read bytes.
    Read,
    /// Write bytes.
    Write,
    /// Make every completed write durable.
    Flush,
    /// Discard: the range reads as zeroes from now on and holds no flash.
    Trim,
    /// Make the range read as zeroes. May deallocate like [`Op::Trim`].
    WriteZeroes,
}

impl Op {
    /// Every operation, in report order.
    pub const ALL: [Self; 5] =
        [Self::Read, Self::Write, Self::Flush, Self::Trim, Self::WriteZeroes];

    /// Stable name in results and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Trim => "trim",
            Self::WriteZeroes => "write_zeroes",
        }
    }
}

/// How a command ended, in the words that every front end can translate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok,
    /// The range leaves the device, or the request is malformed.
    InvalidField,
    /// The device cannot take the write: no space is left that collection could free.
    NoSpace,
    /// The medium lost or refused the data.
    MediaError,
    /// The device stopped accepting commands after an I/O error of its backing store.
    Poisoned,
}

impl fmt::Display for Status {
    /// What people are told.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "it is done",
            Self::InvalidField => "it leaves the device, or is malformed",
            Self::NoSpace => "there is no room left",
            Self::MediaError => "what lies below failed",
            Self::Poisoned => "nothing changes any more until the device is opened again",
        })
    }
}

/// Why a device could not do what a layer above asked of it.
///
/// Either may pass: the same request may succeed when it is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoFailed {
    /// The request failed.
    Error,
    /// The device has no room for it now, such as an image whose host file system is full. Nothing that was stored before is
    /// lost, and the device still reads.
    NoSpace,
}

impl From<IoFailed> for Status {
    fn from(failed: IoFailed) -> Self {
        match failed {
            IoFailed::Error => Self::MediaError,
            IoFailed::NoSpace => Self::NoSpace,
        }
    }
}
