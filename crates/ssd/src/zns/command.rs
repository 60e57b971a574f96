//! The words of a zoned namespace.

use onefold_nand::MediaError;
use onefold_units::ZoneId;

use super::ZoneState;

/// What a host asks of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ZoneAction {
    /// Make it explicitly open.
    Open,
    /// Give back its open resource.
    Close,
    /// Make it full.
    Finish,
    /// Erase it.
    Reset,
    /// Take a read-only zone out of service.
    Offline,
}

impl ZoneAction {
    /// Every action.
    pub const ALL: [Self; 5] = [Self::Open, Self::Close, Self::Finish, Self::Reset, Self::Offline];

    /// Stable name in results and errors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Close => "close",
            Self::Finish => "finish",
            Self::Reset => "reset",
            Self::Offline => "offline",
        }
    }
}

/// The zones of a zone management command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// One zone.
    One(ZoneId),
    /// Every zone that the action is legal for and changes (the "select all" bit).
    All,
}

/// What is known of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneInfo {
    /// The zone.
    pub zone: ZoneId,
    /// Its state.
    pub state: ZoneState,
    /// First 4 KiB block.
    pub start: u64,
    /// It is conventional: it is written anywhere.
    pub conventional: bool,
    /// 4 KiB blocks that can be written.
    pub capacity: u32,
    /// Block that the next write has to begin at. `None` where that means nothing: conventional, full, read only, offline.
    pub write_pointer: Option<u64>,
    /// Resets so far.
    pub resets: u32,
}

/// Answer to a zone report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneReport {
    /// Zones that match: all from the first on, or with `partial` those reported.
    pub matching: u32,
    /// The zones reported.
    pub zones: Vec<ZoneInfo>,
}

/// Why a command of a zoned namespace failed, in the words of the NVMe Zoned Namespace command set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ZnsError {
    /// The range leaves the namespace.
    #[error("LBA Out of Range: blocks {lba} to {lba} + {blocks} of {capacity}")]
    LbaOutOfRange {
        /// First 4 KiB block.
        lba: u64,
        /// 4 KiB blocks.
        blocks: u64,
        /// Blocks of the namespace.
        capacity: u64,
    },
    /// A field of the command cannot be right.
    #[error("Invalid Field in Command: {what}")]
    InvalidField {
        /// What is wrong, and what was expected.
        what: &'static str,
    },
    /// A write ends behind the capacity, or a read behind the end of a zone.
    #[error("Zone Boundary Error: it ends at block {end} of {zone:?}, expected at most {limit}")]
    ZoneBoundary {
        /// The zone.
        zone: ZoneId,
        /// Where the command ends, counted from the start of the zone.
        end: u64,
        /// Where it has to end.
        limit: u32,
    },
    /// A write to a full zone.
    #[error("Zone Is Full: {zone:?}")]
    ZoneIsFull {
        /// The zone.
        zone: ZoneId,
    },
    /// A write to a zone that can only be read.
    #[error("Zone Is Read Only: {zone:?}")]
    ZoneIsReadOnly {
        /// The zone.
        zone: ZoneId,
    },
    /// A zone out of service.
    #[error("Zone Is Offline: {zone:?}")]
    ZoneIsOffline {
        /// The zone.
        zone: ZoneId,
    },
    /// A write that does not begin at the write pointer.
    #[error("Zone Invalid Write: block {at} of {zone:?}, whose write pointer is {write_pointer}")]
    ZoneInvalidWrite {
        /// The zone.
        zone: ZoneId,
        /// Where it begins, counted from the start of the zone.
        at: u32,
        /// Where it has to begin.
        write_pointer: u32,
    },
    /// One more active zone than the device can have.
    #[error("Too Many Active Zones: {max} are active, which is the limit")]
    TooManyActiveZones {
        /// The limit.
        max: u32,
    },
    /// One more open zone than the device can have, and none that it may close by itself.
    #[error("Too Many Open Zones: {max} are explicitly open, which is the limit")]
    TooManyOpenZones {
        /// The limit.
        max: u32,
    },
    /// An action that the state of the zone does not allow.
    #[error("Invalid Zone State Transition: {} of {zone:?}, which is {}", action.name(), state.name())]
    ZoneInvalidTransition {
        /// The zone.
        zone: ZoneId,
        /// The action.
        action: ZoneAction,
        /// Its state.
        state: ZoneState,
    },
    /// A program failed and no spare blocks are left: the zone can only be read from now on.
    #[error("Write Fault: {zone:?} can only be read from now on")]
    WriteFault {
        /// The zone.
        zone: ZoneId,
    },
    /// A block cannot be read back.
    #[error("Unrecovered Read Error: block {lba}")]
    UnrecoveredRead {
        /// The block.
        lba: u64,
    },
    /// The medium failed as a whole.
    #[error(transparent)]
    Media(MediaError),
}

impl ZnsError {
    /// Whether the command was right and flash could not be read.
    #[must_use]
    pub const fn is_unreadable(&self) -> bool {
        matches!(self, Self::UnrecoveredRead { .. })
    }

    /// NVMe status code type and status code.
    #[must_use]
    pub const fn status(&self) -> (u8, u8) {
        match self {
            Self::InvalidField { .. } => (0x0, 0x02),
            Self::Media(_) => (0x0, 0x06),
            Self::LbaOutOfRange { .. } => (0x0, 0x80),
            Self::ZoneBoundary { .. } => (0x1, 0xB8),
            Self::ZoneIsFull { .. } => (0x1, 0xB9),
            Self::ZoneIsReadOnly { .. } => (0x1, 0xBA),
            Self::ZoneIsOffline { .. } => (0x1, 0xBB),
            Self::ZoneInvalidWrite { .. } => (0x1, 0xBC),
            Self::TooManyActiveZones { .. } => (0x1, 0xBD),
            Self::TooManyOpenZones { .. } => (0x1, 0xBE),
            Self::ZoneInvalidTransition { .. } => (0x1, 0xBF),
            Self::WriteFault { .. } => (0x2, 0x80),
            Self::UnrecoveredRead { .. } => (0x2, 0x81),
        }
    }
}
