//! Why a volume cannot be made or opened.

use onefold_format::volume::{BlockError, VolumeMode};
use thiserror::Error;

use crate::config::{GeometryError, OptionsError};
use crate::zones::ZoneError;

/// Why a volume cannot be made or opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MountError {
    /// The geometry cannot work.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The zones of the backing cannot be used.
    #[error(transparent)]
    Zones(#[from] ZoneError),
    /// The options cannot work.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// No copy of the label can be used.
    #[error("no label of a volume: {0}")]
    Label(BlockError),
    /// The backing is smaller than when the volume was made.
    #[error(
        "the backing has {found} blocks of 4 KiB, and the volume was made on {expected}; nothing was changed"
    )]
    Shrunk {
        /// Blocks now.
        found: u64,
        /// Blocks then.
        expected: u64,
    },
    /// The volume is of a mode that this engine does not run.
    #[error("the volume is of mode {0:?}, which this engine does not run")]
    Mode(VolumeMode),
    /// Blocks of data have no checksums in this mode.
    #[error(
        "a volume of mode {} has no checksums of data to scrub; `onefold volume check --data` reads it all",
        .0.name()
    )]
    NoSums(VolumeMode),
    /// No root can be used.
    #[error(
        "none of the {slots} roots can be used; `volume check --rebuild` makes a new one from the log"
    )]
    NoRoot {
        /// Slots.
        slots: usize,
    },
    /// What the newest root points to cannot be used.
    #[error("the {what} at block {at} cannot be used: {why}; nothing was changed")]
    Damaged {
        /// What it is.
        what: &'static str,
        /// Where.
        at: u64,
        /// Why.
        why: BlockError,
    },
    /// Blocks could not be read.
    #[error("the {what} at block {at} cannot be read; nothing was changed")]
    Read {
        /// What.
        what: &'static str,
        /// Where.
        at: u64,
    },
    /// The members contradict one another.
    #[error("the table of members is damaged: {0}; nothing was changed")]
    MemberTable(&'static str),
    /// The memory for the map is too small for the members.
    #[error(
        "the volume has {found} members, which take at least {} map pages in memory; {pages} are allowed: give it more \
         memory for the map, or delete snapshots with more",
        4 * found
    )]
    Members {
        /// Members.
        found: usize,
        /// Map pages that may be in memory.
        pages: usize,
    },
    /// Nothing but a root says which tables of this mode count.
    #[error(
        "a root of mode {0:?} cannot be made anew: nothing else says which of its tables count; nothing was changed"
    )]
    NoRebuild(VolumeMode),
    /// There is no room for the checkpoint of a volume that is made anew.
    #[error(
        "making the volume anew takes {wanted} blocks that nothing is read from, in log segments without live blocks, and {spare} of these \
         beside; there are {empty}, and no others can be written without losing what a second attempt would need. Nothing was changed"
    )]
    NoRoom {
        /// Blocks of the checkpoint.
        wanted: u64,
        /// Log segments without live blocks.
        empty: usize,
        /// Those that have to stay.
        spare: usize,
    },
    /// The volume can be opened.
    #[error("the volume can be opened, so there is nothing to make anew; nothing was changed")]
    Opens,
    /// What had been durable is not there.
    #[error(
        "batch {missing} was durable and is missing or damaged, which no power cut does; nothing was changed. \
         Opening read-only up to batch {last} is possible"
    )]
    Lost {
        /// The first batch that is missing.
        missing: u64,
        /// The last one before it.
        last: u64,
    },
    /// The backing failed.
    #[error("the backing failed while {0}")]
    Backing(&'static str),
}
