//! Changing the size of a volume, or of its backing, while it is used.
//!
//! 1. The newest label says how large device and backing are. It is written when nothing lies any more where a smaller one does not
//!    reach, and before anything lies where only a larger one does. So a power cut leaves the old size or the new one, and
//!    needs no record of what was under way: all that was done before the label does no harm to the old size.
//! 2. What no longer belongs to the exported device is unmapped in the last root, and in every block of the directory: it
//!    must not come back when the device grows again.
//! 3. Log segments that end behind a smaller backing are empty, and no root names them as places for batches.
//! 4. The sizes in memory change between checkpoints.
//! 5. Each member has a size of its own. That of the device changes no other; that of a clone is what the last root says, so
//!    nothing is written behind a smaller one before a root says the larger one.

use onefold_format::volume::VolumeLabel;
use thiserror::Error;

use crate::config::GeometryError;
use crate::layout::Layout;
use crate::retries::Failing;
use crate::snapshots::MemberId;

/// A new size in blocks of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resize {
    /// Of the exported device, or of a clone.
    Logical {
        /// Which.
        member: MemberId,
        /// Its blocks.
        blocks: u64,
        /// What lies behind a smaller end is lost. Without, it has to be unmapped.
        discard: bool,
    },
    /// Of the backing, which has to have as many already, or still.
    Backing {
        /// Its blocks.
        blocks: u64,
    },
}

/// Why a size was not changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResizeError {
    /// The new geometry cannot work.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// Copies of label and root would have to move.
    #[error(
        "a backing of {from} blocks of 4 KiB cannot have {to}: below 32,768 (128 MiB) roots lie in the middle, which must not move"
    )]
    Moves {
        /// Blocks now.
        from: u64,
        /// Blocks then.
        to: u64,
    },
    /// There is something behind the new end.
    #[error(
        "block {lba} is behind the new end and holds data; trim it, or have the tail discarded"
    )]
    Mapped {
        /// The first one.
        lba: u64,
    },
    /// The map of what is behind the new end cannot be read.
    #[error("the map of block {lba}, behind the new end, cannot be read")]
    Unreadable {
        /// The first block.
        lba: u64,
    },
    /// What the volume holds does not fit a smaller backing.
    #[error("{live} blocks are in use, and a backing of that size has room for {room}")]
    NoRoom {
        /// Blocks in use, with the map.
        live: u64,
        /// Room.
        room: u64,
    },
    /// A log segment behind the new end cannot be emptied.
    #[error(
        "log segment {segment} holds blocks that cannot be moved: its medium or its headers are damaged"
    )]
    Stuck {
        /// Which.
        segment: u32,
    },
    /// A snapshot or clone comes with the size of what it is made of. Try again after the next completion.
    #[error("a snapshot or clone is being made; try again")]
    Members,
    /// Zones are as many as the device has.
    #[error(
        "the volume lies on the zones of a device, all of them: only what it exports can change its size"
    )]
    Zoned,
    /// A snapshot never changes.
    #[error(
        "a snapshot keeps the size that it has; only the volume and its clones can change theirs"
    )]
    Snapshot,
    /// There is no such member.
    #[error("there is no clone of that name")]
    Missing,
    /// Another resize is under way.
    #[error("another resize is under way")]
    Busy,
    /// The volume takes no changes, or stopped taking them.
    #[error("the volume takes no changes")]
    ReadOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing may be mapped from here to the old end (invariant 2).
    Clear { at: u64, discard: bool },
    /// No image of those pages may be left (invariant 2).
    Forget,
    /// Log segments behind the new end become empty (invariant 3).
    Evacuate,
    /// This checkpoint has to count.
    Checkpoint { number: u64 },
    /// On zones a label takes one that may be active ([`crate::Volume::hold_zones`]).
    Room,
    /// Copies of the label are written one after the other, with a flush behind each: whatever a power cut does to one,
    /// the others are whole.
    Labels { next: usize },
    /// No checkpoint may run (invariant 4).
    Apply,
    /// This checkpoint says the size of a clone (invariant 5).
    Record { number: u64 },
}

#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) phase: Phase,
    /// The member that gets another size, its blocks then, and those that the host can use meanwhile. Those of the device where
    /// the backing gets another size.
    pub(crate) slot: usize,
    pub(crate) blocks: u64,
    pub(crate) usable: u64,
    pub(crate) layout: Layout,
    pub(crate) label: VolumeLabel,
    /// A copy of the label cannot be written.
    pub(crate) failing: Option<Failing>,
}

/// The resize under way, and how the last one ended.
#[derive(Debug, Default)]
pub(crate) struct Resizing {
    work: Option<Work>,
    outcome: Option<Result<(), ResizeError>>,
}

impl Resizing {
    /// One begins.
    pub(crate) fn begin(&mut self, work: Work) {
        *self = Self { work: Some(work), outcome: None };
    }

    /// Takes what is under way out, to go on with it.
    pub(crate) const fn take(&mut self) -> Option<Work> {
        self.work.take()
    }

    /// Puts it back, to wait.
    pub(crate) fn put(&mut self, work: Work) {
        self.work = Some(work);
    }

    /// It ended.
    pub(crate) fn end(&mut self, outcome: Result<(), ResizeError>) {
        self.outcome = Some(outcome);
    }

    /// How the last one ended, said once.
    pub(crate) const fn take_outcome(&mut self) -> Option<Result<(), ResizeError>> {
        self.outcome.take()
    }

    /// Whether one is under way.
    pub(crate) const fn is_under_way(&self) -> bool {
        self.work.is_some()
    }

    /// What is done next.
    pub(crate) fn phase(&self) -> Option<Phase> {
        self.work.as_ref().map(|work| work.phase)
    }

    /// The first block of a member that the host cannot use meanwhile, if it is its size that changes.
    pub(crate) fn usable(&self, slot: usize) -> Option<u64> {
        self.work.as_ref().filter(|work| work.slot == slot).map(|work| work.usable)
    }

    /// How a copy of the label fails.
    pub(crate) fn failing(&self) -> Option<Failing> {
        self.work.as_ref().and_then(|work| work.failing)
    }
}
