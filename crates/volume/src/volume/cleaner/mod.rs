//! The cleaner at work (`crate::cleaner`).

mod fill;
mod moves;
mod pace;
mod remap;
mod victim;
mod walk;

use onefold_units::Nanos;

use crate::cleaner::walk::Walk;
use crate::log::Stream;
use crate::volume::Volume;

/// Reads of the cleaner that may be under way.
const MOVES_MAX: usize = 32;

/// Victims at once, where log segments are short: each waits for one header after the other.
const VICTIMS_MAX: usize = 4;

impl Volume {
    /// Asks for a log segment to be cleaned now, if there is one that is worth it.
    pub fn want_cleaning(&mut self) {
        self.cleaner.want();
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
        while at < self.cleaner.victims() {
            self.read_header(at);
            while self.cleaner.walk_at(at).has_blocks() && self.advance_moves(at) {
                self.read_header(at);
            }
            if self.cleaner.walk_at(at).is_over() {
                self.end_walk(at);
            } else {
                at += 1;
            }
        }
    }

    /// Moves some of the blocks at hand. `false` if that has to wait.
    fn advance_moves(&mut self, at: usize) -> bool {
        if self.cleaner.walk_at(at).remaps() {
            return self.relocate(at);
        }
        self.cleaner.moves_under_way() < MOVES_MAX && self.begin_move(at)
    }

    /// Chooses the next victim if there is need.
    fn begin_walk(&mut self) -> bool {
        let victims = self.cleaner.victims();
        let more = if victims == 0 {
            self.wants_victim()
        } else {
            let waits = !self.cleaner.walks().any(Walk::has_blocks);
            let fails = self.segments.holds_some();
            let short = self.free_soon() < self.low() && !self.waits_for_padding();
            waits && !fails && victims < VICTIMS_MAX && short
        };
        // Until then the counts of live blocks are too high to choose by.
        if !more || !self.is_counted() {
            return false;
        }
        let Some(segment) = self.choose_victim() else { return false };
        let live = self.segments.of(segment).live();
        if victims > 0 && !self.has_room_to_move(live) {
            return false;
        }
        let share = f64::from(live) / f64::from(self.segment_blocks());
        self.segments.pin(segment);
        self.cleaner.begin(segment, self.cleaner_remaps(), share);
        true
    }

    /// Whether all that is live in the victims fits where the cleaner may put it, and so many blocks more: several that come to a stop half
    /// way give back less than one that is empty.
    fn has_room_to_move(&self, more: u32) -> bool {
        let walks = self.cleaner.walks();
        let live =
            walks.map(|walk| u64::from(self.segments.of(walk.segment()).live())).sum::<u64>();
        live + u64::from(more) <= self.room_of(Stream::Clean)
    }

    /// Whether a first victim is needed.
    fn wants_victim(&mut self) -> bool {
        let free = self.free_soon();
        let background = free < self.high() && self.cleaner.pace().has_credit();
        let wanted = self.cleaner.take_wanted();
        // Log segments that a checkpoint is about to free may be taken up by checkpoints themselves: whoever waits for
        // one must not wait for those.
        let blocked = self.takeable(Stream::User) == 0;
        let leaves = self.is_evacuating() || self.segments.has_leaving(self.now);
        free < self.low() || background || wanted || blocked || leaves
    }

    fn end_walk(&mut self, at: usize) {
        let walk = self.cleaner.end(at);
        let segment = walk.segment();
        self.segments.unpin(segment);
        self.stats.cleaned_segments += 1;
        if walk.is_whole() || self.segments.of(segment).live() == 0 {
            self.segments.found_empty(segment);
        } else {
            self.segments.hold(segment, self.now);
            self.stats.damaged_segments += 1;
        }
    }

    /// When to look again at log segments that could not be cleaned, if their room is missed.
    pub(crate) fn held_deadline(&self) -> Option<Nanos> {
        let missed = self.free_soon() < self.low() || self.takeable(Stream::User) == 0;
        self.segments.held_deadline(self.now).filter(|_| missed && self.frozen.is_none())
    }
}
