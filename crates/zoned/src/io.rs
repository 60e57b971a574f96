//! What a zoned volume asks of its devices, and what is asked of it.

pub use onefold_units::IoFailed;
use onefold_units::PAGE_BYTES;
use onefold_units::convert::{index64, u64_from};

/// A request to a device that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IoId(pub(crate) u32);

impl IoId {
    /// A request by its number in the volume that asks for it.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// What a device has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoKind {
    /// Read into the buffer of the request.
    Read,
    /// Write the buffer of the request. Writes to a sequential zone are given out in order and have to get there in it.
    Write,
    /// Make every write and reset that completed before durable.
    Flush,
    /// Reset the sequential zone that begins at the block.
    Reset,
}

/// A request to a device. Its bytes are in [`crate::Volume::buffer`] from the moment it was given out until its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// To name it at its completion.
    pub id: IoId,
    /// The device, from 0 on.
    pub device: u32,
    /// What to do.
    pub kind: IoKind,
    /// First block of 4 KiB on that device.
    pub at: u64,
    /// Blocks.
    pub blocks: u32,
}

/// What a host asks of a volume. Blocks are of 4 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Read blocks.
    Read {
        /// First block.
        lba: u64,
        /// Blocks.
        blocks: u32,
    },
    /// Write blocks.
    Write {
        /// First block.
        lba: u64,
        /// Blocks.
        blocks: u32,
        /// Report it done when it is durable.
        fua: bool,
        /// As many bytes as the blocks have; none if [`crate::Options::bytes`] is off.
        data: Vec<u8>,
    },
    /// The blocks read as zeroes from now on: discard and write-zeroes alike (zoned.md, section 3).
    Discard {
        /// First block.
        lba: u64,
        /// Blocks.
        blocks: u32,
    },
    /// Make everything that was reported done durable.
    Flush,
}

/// How a request of the host ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// What the host called it.
    pub tag: u64,
    /// Whether it was done.
    pub result: Result<(), Failure>,
    /// What was read.
    pub data: Vec<u8>,
}

/// Why a request was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A device failed, or has no room.
    #[error("the device below {}", match .0 {
        IoFailed::Error => "failed",
        IoFailed::NoSpace => "has no room left",
    })]
    Device(IoFailed),
    /// The metadata of the chunk contradicts itself, so what its blocks hold is not known.
    #[error(
        "the metadata of the chunk is damaged: `onefold volume check --repair` gives up what is not known"
    )]
    Damaged,
    /// No zone is free, and reclaim can free none.
    #[error("no zone is left that reclaim could free")]
    NoSpace,
    /// The volume stopped taking changes after a failure of a device.
    #[error("it takes no changes any more, because a device below failed")]
    ReadOnly,
}

/// Why a request is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Too many are under way: try again after the next completion. Nothing was done.
    #[error("{REQUESTS_MAX} requests are under way: try again later")]
    Busy,
    /// The range leaves the device or is empty, or the bytes are not as many as the blocks have.
    #[error("the range leaves the device or is empty, or has other bytes than blocks")]
    InvalidField,
}

/// Most requests of the host under way.
pub const REQUESTS_MAX: usize = 4096;

/// Bytes of blocks.
pub(crate) fn bytes_of(blocks: u32) -> usize {
    index64(u64::from(blocks) * PAGE_BYTES)
}

/// Blocks of bytes; `None` unless they are whole.
pub(crate) fn blocks_of(bytes: usize) -> Option<u64> {
    let bytes = u64_from(bytes);
    bytes.is_multiple_of(PAGE_BYTES).then_some(bytes / PAGE_BYTES)
}
