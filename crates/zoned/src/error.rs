//! Why a volume cannot be made or opened.

use onefold_format::{DmzJournalError, DmzRootError};
use onefold_units::ZoneId;
use thiserror::Error;

use crate::layout::LayoutError;

/// A zone that holds less than the metadata says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{zone:?} of {} is written up to block {written}, and {blocks} blocks behind that should hold data",
    owner(*.chunk)
)]
pub struct Lost {
    /// The zone.
    pub zone: ZoneId,
    /// Whose it is; `None`: the journal's.
    pub chunk: Option<u32>,
    /// Its write pointer, in blocks from its start.
    pub written: u32,
    /// Valid blocks behind it.
    pub blocks: u32,
}

/// Whose a zone is, in words.
#[must_use]
pub fn owner(chunk: Option<u32>) -> String {
    chunk.map_or_else(|| "the journal".to_owned(), |chunk| format!("chunk {chunk}"))
}

/// What is wrong with a journal block map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JournalFault {
    /// Its first block is none.
    #[error("{0}")]
    Head(DmzJournalError),
    /// The root record has other sizes.
    #[error("it has {expected} blocks, the root record says {found}")]
    Blocks {
        /// What the root record says.
        found: u32,
        /// What its slots need.
        expected: u32,
    },
    /// A zone cannot be in the journal zone set.
    #[error("it has {zone:?}, {what}")]
    Zone {
        /// The zone.
        zone: ZoneId,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A block is not one of the volume.
    #[error("block {block} in {zone:?} is none of the volume")]
    Outside {
        /// The block.
        block: u64,
        /// The zone it is said to lie in.
        zone: ZoneId,
    },
    /// A block is valid in two places.
    #[error("block {block} is valid in {zone:?} and elsewhere")]
    Twice {
        /// The block.
        block: u64,
        /// One of the zones.
        zone: ZoneId,
    },
}

/// Why a volume cannot be made or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MountError {
    /// A device failed.
    #[error("device {device} failed at block {at}")]
    Device {
        /// Which one, from 0 on.
        device: usize,
        /// Block of 4 KiB on it.
        at: u64,
    },
    /// The zones have no room, or the root record is of other zones.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A name of the volume or of a device is missing.
    #[error("the volume and each of its devices need a UUID that is not all zero")]
    Identity,
    /// Neither metadata set has a root record.
    #[error(
        "no metadata set is valid; the first says: {0}. Is this the first device of the volume?"
    )]
    NoRoot(DmzRootError),
    /// A root record names another place.
    #[error(
        "the root record at block {at} says that it is at block {found}: it was copied from elsewhere"
    )]
    Misplaced {
        /// Block over all devices.
        at: u64,
        /// What it says.
        found: u64,
    },
    /// A device after the first has no copy of the root record.
    #[error("device {device} is not part of a volume: {error}")]
    Copy {
        /// Which one.
        device: usize,
        /// What its root record says.
        error: DmzRootError,
    },
    /// A device after the first is of another volume.
    #[error("device {device} is part of another volume or at another place in the list of devices")]
    OtherVolume {
        /// Which one.
        device: usize,
    },
    /// A device lost what it had called durable.
    #[error("{0}: the device lost that, or somebody reset the zone")]
    Lost(Lost),
    /// Blocks of both metadata sets are damaged.
    #[error(
        "{blocks} blocks of the metadata are damaged in both sets, block {first} first: \
         `onefold volume check --repair` gives up what they say"
    )]
    Damaged {
        /// How many.
        blocks: u64,
        /// The first one, from the start of a set.
        first: u32,
    },
    /// The map is damaged.
    #[error("chunk {chunk} is mapped to {zone:?}, {what}: the map is damaged")]
    Map {
        /// The chunk.
        chunk: u32,
        /// The zone.
        zone: ZoneId,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The journal block map is damaged.
    #[error("the journal block map is damaged: {0}")]
    Journal(JournalFault),
}
