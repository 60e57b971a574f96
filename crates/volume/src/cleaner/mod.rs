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
pub(crate) mod pace;
pub(crate) mod walk;

use std::collections::VecDeque;

use onefold_units::LogSegmentId;

use moves::Move;
use pace::Pace;
use walk::Walk;

pub(crate) use walk::Found;

/// The state of the cleaner.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    /// The victims, the one that was chosen first at the front.
    walks: Vec<Walk>,
    moves: Vec<Option<Move>>,
    ready: VecDeque<Move>,
    pace: Pace,
    /// A log segment is cleaned although there is no need.
    wanted: bool,
    /// Victims that are copied before a remap is tried again.
    copies_left: u32,
    /// Batches that are begun now are remapped.
    remaps: bool,
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
        self.walks.iter().any(|walk| walk.segment() == segment)
    }

    /// The walk over a log segment, if that is a victim.
    pub(crate) fn walk_of(&mut self, segment: LogSegmentId) -> Option<&mut Walk> {
        self.walks.iter_mut().find(|walk| walk.segment() == segment)
    }

    /// Has the victims at hand copied, and those that come next, so many in all.
    pub(crate) fn copy_next(&mut self, victims: u32) {
        self.copies_left = victims;
        for walk in &mut self.walks {
            walk.copy();
        }
    }

    pub(crate) fn moves_under_way(&self) -> usize {
        self.walks.iter().map(Walk::moves).sum()
    }

    /// A log segment is to be cleaned although there is no need.
    pub(crate) const fn want(&mut self) {
        self.wanted = true;
    }

    /// Whether one is; said once.
    pub(crate) const fn take_wanted(&mut self) -> bool {
        std::mem::replace(&mut self.wanted, false)
    }

    pub(crate) const fn pace(&self) -> &Pace {
        &self.pace
    }

    pub(crate) const fn pace_mut(&mut self) -> &mut Pace {
        &mut self.pace
    }

    /// How many victims there are.
    pub(crate) const fn victims(&self) -> usize {
        self.walks.len()
    }

    /// The walks over them, the one that was chosen first at the front.
    pub(crate) fn walks(&self) -> impl Iterator<Item = &Walk> {
        self.walks.iter()
    }

    /// A log segment is cleaned, of which this share is live.
    pub(crate) fn begin(&mut self, segment: LogSegmentId, remaps: bool, share: f64) {
        self.pace.note_victim(share);
        self.walks.push(Walk::new(segment, remaps));
    }

    /// A victim is done with.
    pub(crate) fn end(&mut self, at: usize) -> Walk {
        self.copies_left = self.copies_left.saturating_sub(1);
        self.walks.remove(at)
    }

    /// Whether the next victim may be remapped: none has to be copied first.
    pub(crate) const fn may_remap(&self) -> bool {
        self.copies_left == 0
    }

    /// Whether batches that are begun now are remapped.
    pub(crate) const fn remaps(&self) -> bool {
        self.remaps
    }

    pub(crate) const fn set_remaps(&mut self, remaps: bool) {
        self.remaps = remaps;
    }

    /// Blocks of a victim are read; `again`: each by itself. Gives the number of the read, if the victim is still at hand.
    pub(crate) fn begin_move(
        &mut self,
        victim: LogSegmentId,
        blocks: Vec<Found>,
        again: bool,
    ) -> Option<usize> {
        self.walk_of(victim)?.begin_move();
        let slot = self.moves.iter().position(Option::is_none).unwrap_or_else(|| {
            self.moves.push(None);
            self.moves.len() - 1
        });
        self.moves[slot] = Some(Move::new(blocks, again));
        Some(slot)
    }

    /// A read is over.
    pub(crate) fn take_move(&mut self, slot: usize) -> Option<Move> {
        self.moves[slot].take()
    }

    /// Blocks were read, and wait to be appended.
    pub(crate) fn push_ready(&mut self, ready: Move) {
        self.ready.push_back(ready);
    }

    /// The next ones that wait.
    pub(crate) fn next_ready(&mut self) -> Option<Move> {
        self.ready.pop_front()
    }

    /// They go on waiting.
    pub(crate) fn put_back(&mut self, ready: Move) {
        self.ready.push_front(ready);
    }

    /// Blocks of a victim are where they stay.
    pub(crate) fn end_move(&mut self, victim: Option<LogSegmentId>) {
        if let Some(walk) = victim.and_then(|victim| self.walk_of(victim)) {
            walk.end_move();
        }
    }

    /// Something of a victim could not be read.
    pub(crate) fn miss(&mut self, victim: Option<LogSegmentId>) {
        if let Some(walk) = victim.and_then(|victim| self.walk_of(victim)) {
            walk.miss();
        }
    }
}
