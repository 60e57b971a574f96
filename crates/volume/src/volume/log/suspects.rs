//! Log segments in which a write failed.
//!
//! ```text
//! open or closed -> suspect (its batches go elsewhere) -> failed (closed, what is live moves out) -> given back -> free
//!                                                                                     third strike -> retired
//! ```
//!
//! 1. A batch is tried again in its place before it goes elsewhere (`crate::retries`): the longer, the more that costs. A log segment that
//!    is left is one that has to be cleaned, and where a checkpoint is under way it is begun again.
//! 2. A log segment that failed is emptied, given back, and used again. Each failure is a strike against it, unless the
//!    backing as a whole failed: that is told by the next place failing as well. Filling it without a failure takes strikes back.
//! 3. After [`STRIKES_MAX`] strikes it is retired: empty, and not taken again. A scrub that is
//!    through, and the next opening, try it once more.
//! 4. Nothing is given up: a batch that is moved is in memory until it is written.

use onefold_format::volume::SegmentState;
use onefold_units::{Location, LogSegmentId};

use crate::frozen::Frozen;
use crate::limits::BATCH_MIN;
use crate::log::{Batch, BatchId, Progress, Stream};
use crate::retries::{TRIES_FEW, TRIES_FINISH, TRIES_MANY, TRIES_SOME};
use crate::segments::Faulty;
use crate::volume::Volume;

impl Volume {
    /// Log segments in which the backing fails.
    #[must_use]
    pub fn faulty(&self) -> Faulty {
        let mut faulty = Faulty::default();
        for (_, segment) in self.segments.iter() {
            let retired = segment.state == SegmentState::Suspect && segment.live() == 0;
            faulty.failed += u32::from(segment.errors.failed && !retired);
            faulty.retired += u32::from(retired);
            let held = segment.errors.held_until > self.now;
            faulty.held += u32::from(held && !segment.errors.failed);
            faulty.strikes += u32::from(segment.errors.strikes);
            if segment.errors.failed || retired || held {
                let rest = self.segment_blocks().saturating_sub(segment.live());
                faulty.lost_blocks += u64::from(rest);
            }
        }
        faulty
    }

    /// Whether a write failed in some log segment, until that is used again.
    #[must_use]
    pub fn has_faulty(&self) -> bool {
        self.segments.any_failed()
    }

    /// Times that a batch is tried in its place (invariant 1).
    pub(crate) fn tries_of(&self, id: BatchId, refused: bool) -> u32 {
        let batch = self.log.batch(id);
        let costly = self.checkpoint.is_running() || batch.stream == Stream::Meta;
        let tries = match self.segments.free_count() {
            _ if !self.has_room_for(id) => return u32::MAX,
            // A zone that takes no more does not take the batch either, however often that is tried.
            _ if refused => return 1,
            _ if self.segments.of(batch.segment).state == SegmentState::Suspect => return 1,
            // Those that no root lists cannot be taken.
            free if free.min(self.segments.available()) <= self.reserve() => TRIES_MANY,
            free if free <= self.layout.low() || costly => TRIES_SOME,
            _ => TRIES_FEW,
        };
        // Places before failed as well, and nothing was written since: it is not the place.
        // A zone that was left has to be finished before the next one is begun, which takes its time.
        let (many, doublings) =
            if self.layout.is_zoned() { (TRIES_FINISH, 2) } else { (TRIES_MANY, 16) };
        match self.segments.failing() {
            0 => tries,
            places => tries.max(many << (places - 1).min(doublings)),
        }
    }

    /// A write failed for good: nothing more goes to its log segment.
    pub(crate) fn suspect(&mut self, stream: Stream, segment: LogSegmentId) {
        if self.segments.of(segment).state != SegmentState::Suspect {
            self.segments.strike(segment);
            self.let_go_of_zones();
            self.segments.set_aside(segment);
            self.leave_for_good(segment);
        }
        let state = self.log.stream_mut(stream);
        if state.segment == Some(segment) {
            state.segment = None;
        }
    }

    /// Writes a batch that failed, or that lies behind one, to another log segment, under the same number. `false` if
    /// that is no use.
    pub(crate) fn move_batch(&mut self, id: BatchId) -> bool {
        let stream = self.log.batch(id).stream;
        // What the stream put together meanwhile stays behind the batch that failed, so it is sent first.
        self.send_open(stream);
        if self.frozen.is_some() || !self.has_room_for(id) {
            self.freeze(Frozen::Writes);
            return false;
        }
        let (old, blocks) = (self.log.batch(id).segment, self.log.batch(id).stored());
        let unit = self.layout.geometry().unit_blocks;
        let least = (1 + blocks).next_multiple_of(unit).max(BATCH_MIN);
        let (segment, start, _) = self.next_place(stream, least);
        self.move_entries(id, start);
        let batch = self.log.batch_mut(id);
        batch.segment = segment;
        batch.start = start;
        batch.attempt += 1;
        let seq = batch.seq.unwrap_or(u64::MAX);
        self.segments.unpin(old);
        self.log.stream_mut(stream).used += self.log.extent(&self.layout, id);
        self.dispatch(id);
        self.stats.retried_batches += 1;
        self.checkpoint.note_moved(stream, seq);
        true
    }

    /// Whether a batch that failed, and all others of its log segment, can go elsewhere: they fit what its stream has left in another
    /// one, or a free one that neither the cleaner nor the next checkpoint will miss: without these nothing gets free. Else it is tried
    /// where it is.
    fn has_room_for(&self, id: BatchId) -> bool {
        let Batch { stream, segment, .. } = *self.log.batch(id);
        let state = self.log.stream(stream);
        let others = self.log.sent_to(segment);
        let blocks: u32 =
            others.iter().map(|id| self.log.extent(&self.layout, *id) + BATCH_MIN).sum();
        // What a checkpoint has written so far is written again.
        let goes_on = state.segment.is_some_and(|open| open != segment) && stream != Stream::Meta;
        let kept = u32::from(stream.is_user());
        self.takeable(Stream::Clean) > kept
            || goes_on && self.segment_blocks() - state.used >= blocks
    }

    /// Whether a batch that failed is to be written elsewhere. On zones it is, even if there is no place: what was written in part can
    /// never be written there.
    pub(crate) fn can_move(&self, id: BatchId) -> bool {
        self.layout.is_zoned() || self.has_room_for(id)
    }

    /// Has a batch written once more where it failed.
    pub(crate) fn write_in_place(&mut self, id: BatchId) {
        self.log.batch_mut(id).progress = Progress::UnderWay;
        self.write_batch(id, self.log.extent(&self.layout, id));
    }

    /// What pointed into a batch points to its new place.
    fn move_entries(&mut self, id: BatchId, start: Location) {
        let batch = self.log.batch(id);
        let at = |start: Location| (0..).map(move |at| batch.place(at).at(start.raw()));
        let moves = batch.records.lbas().zip(at(batch.start)).zip(at(start)).collect();
        self.move_all(moves);
    }
}
