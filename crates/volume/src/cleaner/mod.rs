//! The cleaner: moves what is live out of a log segment, so that it can be given back.
//!
//! It walks the chain of headers of its victim, looks each block up in the map, reads those that the map still points at,
//! and appends them to the `clean` stream with their old checksums and their source. Where the backing can remap blocks it
//! does that instead of reading and writing them (`crate::volume::cleaner::remap`). The map points to the copy as soon as
//! that is in a batch; a block that was written or trimmed meanwhile is left alone. So neither readers nor writers wait for
//! a victim (volume.md, section 5.6).
//!
//! 1. A copy counts only if the map pointed to its source when it was put into its batch. The source stays as it is until a
//!    checkpoint covers the copy, so a replay needs no copies.
//! 2. All members whose entry points at a block point at its copy from the same moment on.
//! 3. A damaged block is moved as it is, with the checksum it should have: reading it stays an error.
//! 4. What cannot be read stays where it is, as it may be read later: a victim that cannot be emptied (its headers, its blocks or their
//!    pages of the map cannot be read) is *held*, and cleaned again after some time that doubles.
//! 5. A walk for which everything could be read knows what is live: what still counts after it does so in vain (`crate::volume::map::doubts`).

pub(crate) mod moves;
pub(crate) mod walk;

use std::collections::VecDeque;

use onefold_units::LogSegmentId;

use moves::Move;
use walk::Walk;

pub(crate) use walk::Found;

/// The state of the cleaner.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    /// The victims, the one that was chosen first at the front.
    pub(crate) walks: Vec<Walk>,
    pub(crate) moves: Vec<Option<Move>>,
    pub(crate) ready: VecDeque<Move>,
    /// Blocks to move before the host may write more.
    pub(crate) debt: f64,
    /// Blocks that may be moved without need.
    pub(crate) credit: f64,
    /// Mean share of live blocks in victims.
    pub(crate) utilisation: f64,
    /// A log segment is cleaned although there is no need.
    pub(crate) wanted: bool,
    /// Victims that are copied before a remap is tried again.
    pub(crate) copies_left: u32,
    /// Batches that are begun now are remapped.
    pub(crate) remaps: bool,
}

impl Cleaner {
    pub(crate) const fn is_walking(&self) -> bool {
        !self.walks.is_empty()
    }

    pub(crate) fn walk_at(&mut self, at: usize) -> &mut Walk {
        &mut self.walks[at]
    }

    /// Whether a log segment is a victim.
    pub(crate) fn cleans(&self, segment: LogSegmentId) -> bool {
        self.walks.iter().any(|walk| walk.segment == segment)
    }

    /// The walk over a log segment, if that is a victim.
    pub(crate) fn walk_of(&mut self, segment: LogSegmentId) -> Option<&mut Walk> {
        self.walks.iter_mut().find(|walk| walk.segment == segment)
    }

    /// Has the victims at hand copied, and those that come next, so many in all.
    pub(crate) fn copy_next(&mut self, victims: u32) {
        self.copies_left = victims;
        for walk in &mut self.walks {
            walk.remaps = false;
        }
    }

    pub(crate) fn moves_under_way(&self) -> usize {
        self.walks.iter().map(|walk| walk.moves).sum()
    }
}
