//! What a host asks, and what it gets back.

use onefold_ftl::{FtlError, RemapError};
use onefold_nand::{Delay, MediaError};
use onefold_units::{Nanos, Op, Status};

/// One command of a block namespace. Offsets and lengths are bytes, at any alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What to do.
    pub op: Op,
    /// A write is durable when it completes.
    pub fua: bool,
    /// Whose command it is, for statistics.
    pub tenant: u8,
    /// Placement id of a write.
    pub stream: u16,
    /// First byte.
    pub offset: u64,
    /// Bytes; 0 for a flush.
    pub len: u64,
}

impl Command {
    /// A command of tenant 0 without placement.
    #[must_use]
    pub const fn new(op: Op, offset: u64, len: u64) -> Self {
        Self { op, fua: false, tenant: 0, stream: 0, offset, len }
    }
}

/// The bytes that go with a command.
#[derive(Debug)]
pub enum Payload<'a> {
    /// None: the command is counted and timed only.
    None,
    /// Where a read puts them; as long as the command.
    Read(&'a mut [u8]),
    /// What a write stores; as long as the command.
    Write(&'a [u8]),
    /// Zeroes.
    Zeroes,
    /// What a write stores where the medium stores no bytes: an id per 4 KiB page touched, equal for
    /// equal contents. 0: nothing is known of the page, and it is taken to be like no other.
    Contents(&'a [u128]),
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When it completes.
    pub at: Nanos,
    /// Why it waited, if it did.
    pub delay: Delay,
}

/// Why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SsdError {
    /// The range leaves the device, or is empty.
    #[error("bytes {offset} to {offset} + {len} are not inside the device of {capacity} B")]
    OutOfRange {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
        /// Capacity in bytes.
        capacity: u64,
    },
    /// The flash translation layer failed.
    #[error(transparent)]
    Ftl(#[from] FtlError),
}

impl SsdError {
    /// Whether the command was right and flash could not be read.
    #[must_use]
    pub const fn is_unreadable(&self) -> bool {
        matches!(self, Self::Ftl(FtlError::Unreadable { .. }))
    }

    /// Whether the command was right, and the drive takes no changes any more because a die failed.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        matches!(self, Self::Ftl(FtlError::Media(MediaError::DieFailed { .. })))
    }

    /// The error in the words of a block interface.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Ftl(FtlError::Remap(RemapError::LostSource { .. })) => Status::MediaError,
            Self::OutOfRange { .. } | Self::Ftl(FtlError::Remap(_)) => Status::InvalidField,
            Self::Ftl(FtlError::NoSpace) => Status::NoSpace,
            Self::Ftl(_) => Status::MediaError,
        }
    }
}

/// Whether nothing more is done, because there is no power.
pub(crate) const fn is_power_lost(error: &SsdError) -> bool {
    matches!(error, SsdError::Ftl(FtlError::Media(MediaError::PowerLost)))
}
