//! What a volume asks of its backing.

use onefold_units::{Location, ZoneId};

pub use onefold_units::IoFailed;

/// A request to the backing that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IoId(pub(crate) u32);

impl IoId {
    /// A request by its number in the engine that asks for it.
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

/// What the backing has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoKind {
    /// Read into the buffer of the request.
    Read,
    /// Write the buffer of the request. If that fails a part may have been written; the volume may ask for the rest alone then.
    Write,
    /// Make every write that completed before durable.
    Flush,
    /// The blocks hold nothing any more. A hint: failing does no harm.
    Trim,
    /// The blocks are to hold what others hold ([`crate::Volume::relocations`]), and no data is to be moved for that. Like a
    /// write it is durable with the next flush. Where the backing cannot do it for all of them it fails, and may leave any
    /// of them changed: the volume copies then.
    Remap,
    /// Empty the zone of these blocks, all of it: it is written from its start again. Durable with the next flush. Only a
    /// volume on zones asks for it, of zones without a request under way. A zone whose reset fails is not used again.
    Reset,
    /// The zone of these blocks, all of it, takes no more writes until it is reset. Durable with the next flush. Only a volume on
    /// zones asks for it, of zones without a write under way. Failing does no harm beyond an active zone.
    Finish,
    /// Say what the zone of these blocks, all of it, is like now ([`crate::Volume::zone_reported`]). Only a volume on zones asks for it, after
    /// a write there failed and while nothing is under way in it.
    Report,
}

/// Blocks that are to hold what others hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// The first one.
    pub to: Location,
    /// The first one of those others. They stay as they are.
    pub from: Location,
    /// Blocks.
    pub blocks: u32,
}

/// A request to the backing. Its bytes are in [`crate::Volume::buffer`] from the moment it was given out until its
/// completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// To name it at its completion.
    pub id: IoId,
    /// What to do.
    pub kind: IoKind,
    /// First block.
    pub at: Location,
    /// Blocks.
    pub blocks: u32,
}

impl Io {
    /// The zone of a [`IoKind::Reset`], [`IoKind::Finish`] or [`IoKind::Report`], which cover the addresses of one.
    #[must_use]
    pub fn zone(&self) -> ZoneId {
        ZoneId::new(self.at.raw() / self.blocks.max(1))
    }
}

/// How a request of the host ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// What the host called it.
    pub tag: u64,
    /// Whether it was done.
    pub result: Result<(), IoFailed>,
}

/// Why a request is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not now: try again after the next completion or timeout. Nothing was done.
    #[error("it is busy")]
    Busy,
    /// The range leaves the device, or is empty or too long.
    #[error("the range leaves the device, or is empty or too long")]
    InvalidField,
    /// No log segment is left that cleaning could free.
    #[error("no log segment is left that cleaning could free")]
    NoSpace,
    /// The backing does not take writes now. Reads go on, and so does the volume when the backing does.
    #[error("the device below does not take writes now")]
    Backing(IoFailed),
    /// The volume stopped taking changes after a failure of its backing.
    #[error("it takes no changes any more, because the device below failed")]
    ReadOnly,
    /// The map of the range cannot be read.
    #[error("its map cannot be read")]
    MediaError,
    /// There is no such member.
    #[error("there is no such snapshot or clone")]
    NoMember,
    /// The member is a snapshot.
    #[error("a snapshot takes no changes")]
    WriteProtected,
}

/// Bytes at an address that is a multiple of 4 KiB, as direct access wants them.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

const ALIGN: usize = 4096;

impl Buffer {
    /// Zeroes.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let bytes = vec![0; len + ALIGN];
        let start = bytes.as_ptr().align_offset(ALIGN).min(ALIGN);
        Self { bytes, start, len }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    /// The bytes, to be filled.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}
