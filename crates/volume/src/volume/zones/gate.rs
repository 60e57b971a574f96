//! When a batch may be written, and when zones are finished (`crate::zones`, invariants 1 and 3).

use onefold_format::volume::SegmentState;
use onefold_units::{Location, LogSegmentId, Nanos};

use crate::io::{IoFailed, IoKind};
use crate::limits::BATCH_MIN;
use crate::log::{Batch, BatchId, Progress, Stream};
use crate::pending::Purpose;
use crate::volume::Volume;

impl Volume {
    /// Whether a batch may be written now.
    pub(crate) fn may_start(&self, id: BatchId) -> bool {
        if !self.layout.is_zoned() {
            return true;
        }
        let Batch { segment, start, .. } = *self.log.batch(id);
        let begins = start == self.start_of(segment);
        self.segments.of(segment).state != SegmentState::Suspect
            && self.log.sent_to(segment).first() == Some(&id)
            && !(begins && self.is_leaving_zones(id))
    }

    /// Whether some zone has to be full or finished before a batch begins another one: that which its stream had before, or one
    /// that was left. Zones wait only for those that were taken before them, so none waits for itself.
    fn is_leaving_zones(&self, id: BatchId) -> bool {
        let Batch { stream, segment, .. } = *self.log.batch(id);
        let epoch = self.segments.of(segment).epoch;
        let before = |other: &BatchId| {
            let other = self.log.batch(*other);
            let older = self.segments.of(other.segment).epoch < epoch;
            other.seq.is_some() && other.stream == stream && older
        };
        let finishing = self.finishes.waits(|wanted| self.segments.of(wanted).epoch < epoch);
        let held = self.finishes.held().is_some_and(|held| epoch >= held);
        held || finishing || self.log.active().iter().any(before)
    }

    /// Whether no zone is begun, or none has to be kept from that.
    pub(crate) const fn holds_zones(&self) -> bool {
        !self.layout.is_zoned() || self.finishes.held().is_some()
    }

    /// A write failed: its batch begins another zone, which would wait for the label, and the label for that zone.
    pub(crate) fn let_go_of_zones(&mut self) {
        if self.is_making_room() {
            self.finishes.hold(None);
        }
    }

    /// Makes room for one more active zone: a stream leaves its zone, and none is begun until [`Volume::release_zones`]. Not while a batch
    /// waits for one that it is to begin.
    pub(crate) fn hold_zones(&mut self) {
        let waits = |id: &BatchId| {
            let batch = self.log.batch(*id);
            batch.seq.is_some() && batch.progress == Progress::Waiting
        };
        if self.layout.is_zoned() && !self.log.active().iter().any(waits) {
            self.finishes.hold(Some(self.segments.next_epoch()));
            self.leave_segment(Stream::User);
        }
    }

    /// Whether there is room for one more active zone: what was left is full or finished.
    pub(crate) fn has_spare_zone(&self) -> bool {
        let Some(held) = self.finishes.held() else { return true };
        let left = |id: &BatchId| {
            let Batch { stream, segment, seq, .. } = *self.log.batch(*id);
            stream == Stream::User && seq.is_some() && self.segments.of(segment).epoch < held
        };
        let finishing = self.finishes.waits(|_| true);
        !finishing && !self.log.active().iter().any(left)
    }

    /// The volume froze.
    pub(crate) fn give_up_held(&mut self) {
        let waits = |id: &BatchId| {
            let batch = self.log.batch(*id);
            batch.seq.is_some() && batch.progress == Progress::Waiting && !self.may_start(*id)
        };
        let waiting: Vec<BatchId> = self.log.active().iter().copied().filter(waits).collect();
        for id in waiting {
            self.give_up_if_held(id);
        }
    }

    /// A volume that froze while no zone was to be begun will not begin one: who waits for such a batch is told that it failed.
    pub(crate) fn give_up_if_held(&mut self, id: BatchId) {
        if self.frozen.is_some() && self.finishes.held().is_some() {
            let mut waiters = std::mem::take(&mut self.log.batch_mut(id).waiters);
            self.release(&mut waiters, Err(IoFailed::Error));
        }
    }

    /// Zones may be begun again.
    pub(crate) fn release_zones(&mut self) {
        self.finishes.hold(None);
        self.start_waiting();
    }

    /// Has the batches written whose turn has come.
    pub(crate) fn start_waiting(&mut self) {
        if !self.layout.is_zoned() {
            return;
        }
        for id in self.log.active().to_vec() {
            let batch = self.log.batch(id);
            if batch.seq.is_some() && batch.progress == Progress::Waiting {
                self.start_batch(id);
            }
        }
    }

    /// Whether a batch of so many blocks can go where so many are left. Where one block would be left behind a batch that takes all its
    /// memory, that could not be padded.
    pub(crate) fn fits(&self, stream: Stream, rest: u32, blocks: u32) -> bool {
        let pads = blocks < self.batch_memory(stream) || !self.layout.is_zoned();
        rest >= blocks && (rest - blocks != 1 || pads)
    }

    /// Blocks that a batch may have where so many are left. It leaves none on a zone that are too few for another batch.
    pub(crate) fn capacity_in(&self, stream: Stream, rest: u32) -> u32 {
        let most = rest.min(self.blocks_of_batch(stream));
        let zoned = self.layout.is_zoned();
        if zoned && (1..BATCH_MIN).contains(&(rest - most)) { rest - BATCH_MIN } else { most }
    }

    /// A stream leaves a zone of which so many blocks were not written.
    pub(crate) fn finish_rest(&mut self, segment: LogSegmentId, rest: u32) {
        if self.layout.is_zoned() && rest > 0 {
            self.leave_for_good(segment);
        }
    }

    /// A log segment takes no more: when its batches are over it is finished, if it is a zone.
    pub(crate) fn leave_for_good(&mut self, segment: LogSegmentId) {
        if self.finishes.want(segment) {
            // Nobody resets it meanwhile.
            self.segments.pin(segment);
        }
    }

    /// Finishes zones that have no batch under way any more.
    pub(crate) fn step_finishes(&mut self) {
        self.finish_again();
        let mut at = 0;
        loop {
            let log = &self.log;
            let is_over = |segment| log.sent_to(segment).is_empty();
            let Some(segment) = self.finishes.begin(&mut at, is_over) else { return };
            if !self.layout.is_sequential(segment) {
                self.finish_over(segment, Ok(()));
                continue;
            }
            self.finish_zone(Purpose::Finish(segment), self.start_of(segment));
        }
    }

    /// Has the zone that begins there finished.
    pub(crate) fn finish_zone(&mut self, purpose: Purpose, at: Location) {
        self.stats.zone_finishes += 1;
        self.ask(IoKind::Finish, purpose, at, self.layout.geometry().zone_blocks);
    }

    /// Has zones finished of which that failed before. The volume goes on meanwhile: most of them can only be read, which is as good. One whose
    /// blocks are being moved is not left out: what they move to may be a zone that waits for it.
    fn finish_again(&mut self) {
        while let Some(segment) = self.finishes.next_again(self.now) {
            // Nobody gives it back meanwhile.
            self.segments.pin(segment);
            self.finish_zone(Purpose::FinishAgain(segment), self.start_of(segment));
        }
    }

    /// A zone that could not be finished was, or again could not be.
    pub(crate) fn finish_again_over(
        &mut self,
        segment: LogSegmentId,
        result: Result<(), IoFailed>,
    ) {
        self.segments.unpin(segment);
        self.note_finish(segment, result);
        self.root_finished_again(segment);
    }

    /// Notes whether a zone was finished: if not, that is tried again later.
    pub(crate) fn note_finish(&mut self, segment: LogSegmentId, result: Result<(), IoFailed>) {
        let again = result.is_err() && !self.segments.is_free(segment) && self.frozen.is_none();
        self.finishes.note(segment, again, self.now);
    }

    /// When a zone that could not be finished is tried next.
    pub(crate) fn finish_deadline(&self) -> Option<Nanos> {
        self.finishes.deadline().filter(|_| self.frozen.is_none())
    }

    /// Whether a zone is being finished that could not be before.
    pub(crate) fn is_finishing(&self, segment: LogSegmentId) -> bool {
        self.finishes.is_trying(segment)
    }

    /// A zone is reset, which makes it no longer active either.
    pub(crate) fn forget_finish(&mut self, segment: LogSegmentId) {
        self.finishes.forget(segment);
    }

    /// A zone was finished, or could not be: then it can only be read, which is as good, or is tried again later.
    pub(crate) fn finish_over(&mut self, segment: LogSegmentId, result: Result<(), IoFailed>) {
        self.finishes.end();
        self.segments.unpin(segment);
        self.note_finish(segment, result);
        if self.segments.of(segment).state == SegmentState::Suspect {
            self.segments.empty_out(segment);
            // What checkpoints put there is written anew. On a zone that is offline a replay would end at the first batch that it took
            // along, which the map does not need.
            self.move_meta_soon();
        }
        self.start_waiting();
    }
}
