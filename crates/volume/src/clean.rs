//! The cleaner: moves what is live out of a log segment, so that it can be given back.
//!
//! It walks the chain of headers of its victim, looks each block up in the map, reads those that the map still points at,
//! and appends them to the `clean` stream with their old checksums and their source. Where the backing can remap blocks it
//! does that instead of reading and writing them (`crate::remap`). The map points to the copy as soon as
//! that is in a batch; a block that was written or trimmed meanwhile is left alone. So neither readers nor writers wait for
//! a victim (volume.md, section 5.6).
//!
//! 1. A copy counts only if the map pointed to its source when it was put into its batch. The source stays as it is until a
//!    checkpoint covers the copy, so a replay needs no copies.
//! 2. All members whose entry points at a block point at its copy from the same moment on.
//! 3. A damaged block is moved as it is, with the checksum it should have: reading it stays an error.
//! 4. What cannot be read stays where it is, as it may be read later: a victim that cannot be emptied (its headers, its blocks or their
//!    pages of the map cannot be read) is *held*, and cleaned again after some time that doubles.
//! 5. A walk for which everything could be read knows what is live: what still counts after it does so in vain (`crate::doubts`).

mod fill;
mod moves;
mod victim;
mod walk;

use std::collections::VecDeque;

use onefold_units::{LogSegmentId, Nanos};

use crate::log::Stream;
use crate::volume::Volume;
use moves::Move;
use walk::Walk;

pub(crate) use walk::Found;

/// Reads of the cleaner that may be under way.
const MOVES_MAX: usize = 32;

/// Victims at once, where log segments are short: each waits for one header after the other.
const VICTIMS_MAX: usize = 4;

/// The state of the cleaner.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    /// The victims, the one that was chosen first at the front.
    walks: Vec<Walk>,
    moves: Vec<Option<Move>>,
    ready: VecDeque<Move>,
    /// Blocks to move before the host may write more.
    pub(crate) debt: f64,
    /// Blocks that may be moved without need.
    pub(crate) credit: f64,
    /// Mean share of live blocks in victims.
    pub(crate) utilisation: f64,
    /// A log segment is cleaned although there is no need.
    wanted: bool,
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
    fn walk_of(&mut self, segment: LogSegmentId) -> Option<&mut Walk> {
        self.walks.iter_mut().find(|walk| walk.segment == segment)
    }

    /// Has the victims at hand copied, and those that come next, so many in all.
    pub(crate) fn copy_next(&mut self, victims: u32) {
        self.copies_left = victims;
        for walk in &mut self.walks {
            walk.remaps = false;
        }
    }

    fn moves_under_way(&self) -> usize {
        self.walks.iter().map(|walk| walk.moves).sum()
    }
}

impl Volume {
    /// Asks for a log segment to be cleaned now, if there is one that is worth it.
    pub fn want_cleaning(&mut self) {
        self.cleaner.wanted = true;
    }

    pub(crate) fn step_cleaner(&mut self) {
        if self.frozen.is_some() || self.checkpoint.is_closing() {
            return;
        }
        loop {
            let waits = self.append_ready();
            // Where memory is short, the page that is waited for would make room for one of the next blocks, and that for it.
            if waits {
                return;
            }
            self.advance_walks();
            if !self.begin_walk() {
                return;
            }
        }
    }

    /// Does what can be done now for the victims, for those first that were chosen first.
    fn advance_walks(&mut self) {
        let mut at = 0;
        while at < self.cleaner.walks.len() {
            self.read_header(at);
            while self.cleaner.walks[at].has_blocks() && self.advance_moves(at) {
                self.read_header(at);
            }
            if self.cleaner.walks[at].is_over() {
                self.end_walk(at);
            } else {
                at += 1;
            }
        }
    }

    /// Moves some of the blocks at hand. `false` if that has to wait.
    fn advance_moves(&mut self, at: usize) -> bool {
        if self.cleaner.walks[at].remaps {
            return self.relocate(at);
        }
        self.cleaner.moves_under_way() < MOVES_MAX && self.begin_move(at)
    }

    /// Chooses the next victim if there is need.
    fn begin_walk(&mut self) -> bool {
        let walks = &self.cleaner.walks;
        let more = if walks.is_empty() {
            self.wants_victim()
        } else {
            let waits = !walks.iter().any(Walk::has_blocks);
            let fails = self.segments.holds_some();
            let short = self.free_soon() < self.low() && !self.waits_for_padding();
            waits && !fails && walks.len() < VICTIMS_MAX && short
        };
        // Until then the counts of live blocks are too high to choose by.
        if !more || !self.is_counted() {
            return false;
        }
        let Some(segment) = self.choose_victim() else { return false };
        let live = self.segments.of(segment).live();
        if !self.cleaner.walks.is_empty() && !self.has_room_to_move(live) {
            return false;
        }
        let share = f64::from(live) / f64::from(self.segment_blocks());
        self.cleaner.utilisation += (share - self.cleaner.utilisation) / 8.0;
        self.segments.pin(segment);
        self.cleaner.walks.push(Walk::new(segment, self.cleaner_remaps()));
        true
    }

    /// Whether all that is live in the victims fits where the cleaner may put it, and so many blocks more: several that come to a stop half
    /// way give back less than one that is empty.
    fn has_room_to_move(&self, more: u32) -> bool {
        let walks = self.cleaner.walks.iter();
        let live = walks.map(|walk| u64::from(self.segments.of(walk.segment).live())).sum::<u64>();
        live + u64::from(more) <= self.room_of(Stream::Clean)
    }

    /// Whether a first victim is needed.
    fn wants_victim(&mut self) -> bool {
        let free = self.free_soon();
        let background = free < self.high() && self.cleaner.credit >= 1.0;
        let wanted = std::mem::take(&mut self.cleaner.wanted);
        // Log segments that a checkpoint is about to free may be taken up by checkpoints themselves: whoever waits for
        // one must not wait for those.
        let blocked = self.takeable(Stream::User) == 0;
        let leaves = self.is_evacuating() || self.segments.has_leaving(self.now);
        free < self.low() || background || wanted || blocked || leaves
    }

    fn end_walk(&mut self, at: usize) {
        let walk = self.cleaner.walks.remove(at);
        self.segments.unpin(walk.segment);
        self.cleaner.copies_left = self.cleaner.copies_left.saturating_sub(1);
        self.stats.cleaned_segments += 1;
        if walk.whole || self.segments.of(walk.segment).live() == 0 {
            self.segments.found_empty(walk.segment);
        } else {
            self.segments.hold(walk.segment, self.now);
            self.stats.damaged_segments += 1;
        }
    }

    /// When to look again at log segments that could not be cleaned, if their room is missed.
    pub(crate) fn held_deadline(&self) -> Option<Nanos> {
        let missed = self.free_soon() < self.low() || self.takeable(Stream::User) == 0;
        self.segments.held_deadline(self.now).filter(|_| missed && self.frozen.is_none())
    }
}
