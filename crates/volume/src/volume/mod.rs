//! The volume: its parts, and the loop that a driver runs.

mod check;
mod checkpoint;
mod cleaner;
mod engine;
mod host;
mod inspect;
mod log;
mod map;
pub(crate) mod recovery;
mod resize;
mod scrub;
mod snapshots;
mod stall;
mod unmap;
mod zones;

use onefold_format::volume::{SegmentState, VolumeLabel};
use onefold_units::convert::u32_from;
use onefold_units::{Location, LogSegmentId, Nanos};

use crate::answers::Answers;
use crate::checkpoint::Checkpoint;
use crate::cleaner::Cleaner;
use crate::config::Options;
use crate::frozen::Frozen;
use crate::io::{Done, Io, IoFailed, IoId, IoKind};
use crate::layout::Layout;
use crate::limits::{KEPT_FOR_META, RESERVE_LIST};
use crate::log::flush::Flushes;
use crate::log::heat::Heat;
use crate::log::journal::JournalSet;
use crate::log::{BatchId, Log, Stream};
use crate::map::Map;
use crate::map::counting::Counting;
use crate::map::loads::Loads;
use crate::pending::{Pending, Purpose};
use crate::resize::Resizing;
use crate::retries::Retries;
use crate::scrub::Scrub;
use crate::segments::Segments;
use crate::segments::trims::Trims;
use crate::snapshots::Members;
use crate::stall::Stall;
use crate::stats::Stats;
use crate::zones::Finishes;

pub use check::SegmentInfo;
pub use inspect::{check_copies, inspect};
pub use scrub::scrub;

/// A log-structured volume.
///
/// The calling order: requests of the host ([`Volume::write`], [`Volume::read`], [`Volume::trim`], [`Volume::flush`]) and
/// completions ([`Volume::completed`]) in any order; then [`Volume::pump`] once; then every [`Volume::poll_io`] is carried
/// out and every [`Volume::poll_done`] reported. Without anything to do, [`Volume::poll_timeout`] says when to pump again.
/// `now` never decreases.
///
/// Nothing waits inside: a request that cannot be taken now is refused as busy, and the host asks again after the next
/// completion.
#[derive(Debug)]
pub struct Volume {
    layout: Layout,
    options: Options,
    label: VolumeLabel,
    incarnation: u32,
    map: Map,
    members: Members,
    counting: Counting,
    segments: Segments,
    log: Log,
    heat: Heat,
    journal: JournalSet,
    answers: Answers,
    pending: Pending,
    retries: Retries,
    stall: Stall,
    flushes: Flushes,
    loads: Loads,
    checkpoint: Checkpoint,
    cleaner: Cleaner,
    trims: Trims,
    finishes: Finishes,
    resizing: Resizing,
    scrub: Scrub,
    stats: Stats,
    /// Why nothing may change any more.
    frozen: Option<Frozen>,
    now: Nanos,
}

impl Volume {
    /// What was counted since the volume was opened.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Where things lie.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Why the volume stopped taking changes, if it did.
    #[must_use]
    pub const fn frozen(&self) -> Option<Frozen> {
        self.frozen
    }

    /// Log segments that are free.
    #[must_use]
    pub fn free_segments(&self) -> u32 {
        self.segments.free_count()
    }

    /// Whether no more log segments are free than the volume keeps for itself: writes of the host wait for the cleaner until more
    /// are (f < R of volume.md, section 5.7).
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.free_segments() <= self.kept_from(Stream::User)
    }

    /// Blocks of the backing that are live: data and map.
    #[must_use]
    pub fn live_blocks(&self) -> u64 {
        self.segments.live_total()
    }

    /// Map pages in memory.
    #[must_use]
    pub const fn resident_pages(&self) -> usize {
        self.map.resident()
    }

    /// Blocks sent to the log since the last checkpoint began.
    #[must_use]
    pub const fn blocks_since_checkpoint(&self) -> u64 {
        self.checkpoint.sent_blocks()
    }

    /// Blocks sent to the backing since its last flush began.
    #[must_use]
    pub const fn blocks_since_flush(&self) -> u64 {
        self.flushes.sent()
    }

    /// Lets everything go on that can: batches, flushes, checkpoint, cleaning.
    pub fn pump(&mut self, now: Nanos) {
        self.now = now;
        while let Some(id) = self.retries.next(now) {
            self.send_again(id);
        }
        self.step_full_of_runs();
        self.send_due();
        self.step_flushes();
        self.step_marker();
        self.step_damaged();
        self.step_counting();
        self.step_deletion();
        self.step_doubts();
        self.step_scrub();
        self.step_checkpoint();
        self.step_cleaner();
        self.step_trims();
        self.step_finishes();
        if self.is_resizing() {
            self.step_resize();
        }
        self.step_preload();
        if self.is_resizing() || self.checkpoint.is_forgotten() {
            // What came after it may want one, and zones finished: nobody may call again for long.
            self.step_checkpoint();
            self.step_finishes();
        }
        // The host is told what is so when all went on that can.
        self.step_stall();
    }

    /// The next request to the backing.
    pub fn poll_io(&mut self) -> Option<Io> {
        self.pending.next()
    }

    /// The next request of the host that ended.
    pub fn poll_done(&mut self) -> Option<Done> {
        self.answers.next()
    }

    /// When [`Volume::pump`] has to be called although nothing happened.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let batches =
            self.log.active().iter().filter_map(|id| self.log.batch_deadline(&self.options, *id));
        let flush = self.flushes.deadline(&self.options);
        let checkpoint = self.checkpoint.deadline(&self.options, self.now);
        batches
            .chain(flush.into_iter().chain(checkpoint).filter(|_| self.frozen.is_none()))
            .chain(self.marker_due())
            .chain(self.trims.deadline(self.options.trim))
            .chain(self.scrub.deadline())
            .chain(self.retries.deadline())
            .chain(self.held_deadline())
            .chain(self.stall_deadline())
            .chain(self.full_of_runs_deadline())
            .chain(self.finish_deadline())
            .chain(self.deletion_deadline())
            .chain(self.doubts_deadline())
            .chain((self.deletes_on() || self.preloads()).then_some(self.now))
            .min()
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.pending.is_idle()
    }

    /// The stream that a write belongs to, as a hint where the backing places streams apart; `None` for labels, roots and
    /// all that is no write.
    #[must_use]
    pub fn stream(&self, id: IoId) -> Option<Stream> {
        match self.pending.purpose(id) {
            Purpose::Batch(batch) => Some(self.log.batch(batch).stream),
            _ => None,
        }
    }

    /// The bytes of a request to the backing: what to write, where it is one.
    #[must_use]
    pub fn buffer(&self, id: IoId) -> &[u8] {
        let bytes = match self.pending.purpose(id) {
            Purpose::Batch(batch) => self.log.batch(batch).buffer.bytes(),
            _ => self.pending.buffer(id),
        };
        self.rest_of(id, bytes)
    }

    /// Where to put the bytes of a read; empty for data where blocks carry no bytes.
    #[must_use]
    pub fn buffer_mut(&mut self, id: IoId) -> &mut [u8] {
        self.pending.buffer_mut(id)
    }

    /// The backing is through with a request.
    pub fn completed(&mut self, now: Nanos, id: IoId, result: Result<(), IoFailed>) {
        self.now = now;
        match result {
            Err(why) if self.is_sent_again(id, why) => return,
            Ok(()) if !self.retries.is_empty() => self.retries.over(id),
            _ => {}
        }
        let ended = self.pending.end(id);
        match ended.purpose {
            Purpose::Batch(batch) => self.batch_over(batch, result),
            Purpose::Remap(batch) => self.remap_over(batch, result),
            Purpose::Flush { covers } => self.flush_over(covers, result),
            Purpose::Root => self.root_over(result),
            Purpose::LabelReset => self.label_reset_over(result),
            Purpose::LabelFinish => self.label_finished(result),
            Purpose::Label => self.label_over(result),
            Purpose::LabelFlush => self.label_durable(result),
            Purpose::RootReset => self.root_reset_over(result),
            Purpose::Trim(segment) => self.trim_over(segment, result),
            Purpose::Finish(segment) => self.finish_over(segment, result),
            Purpose::FinishAgain(segment) => self.finish_again_over(segment, result),
            Purpose::RootFinish => self.root_finish_over(result),
            Purpose::Load(number) => self.load_over(number, ended.buffer, result),
            Purpose::CleanHeader(segment) => {
                self.clean_header_over(segment, &ended.buffer, result);
            }
            Purpose::CleanData(at) => self.clean_data_over(at, ended.buffer, result),
            Purpose::Scrub => self.scrub_over(&ended.buffer, result),
            Purpose::ScrubLabel(place) => self.scrub_label_over(place, result),
            Purpose::Pointer(write) => {
                let told = ended.told.ok_or(IoFailed::Error);
                self.pointer_over(write, result.and(told));
            }
            Purpose::Compare(write) => {
                self.compare_over(write, &ended.buffer, result.map(|()| ended.io.blocks));
            }
        }
    }

    /// Asks the backing for something.
    pub(crate) fn ask(
        &mut self,
        kind: IoKind,
        purpose: Purpose,
        at: Location,
        blocks: u32,
    ) -> IoId {
        self.pending.ask((kind, purpose), at, blocks, self.options.bytes)
    }

    /// Tells the host that a request ended.
    pub(crate) fn report(&mut self, tag: u64, result: Result<(), IoFailed>) {
        self.answers.report(tag, result);
    }

    /// A batch that `waiters` waited for is over.
    pub(crate) fn release(&mut self, waiters: &mut Vec<u32>, result: Result<(), IoFailed>) {
        for waiter in waiters.drain(..) {
            match self.answers.over(waiter, result) {
                Some((tag, Ok(()), true)) => self.flush_at(tag, self.log.seq()),
                Some((tag, result, _)) => self.report(tag, result),
                None => {}
            }
        }
    }

    pub(crate) fn freeze(&mut self, why: Frozen) {
        self.frozen = self.frozen.or(Some(why));
        self.fail_flushes(0, IoFailed::Error);
        self.fail_members();
        self.give_up_held();
    }

    /// The live count of what a location names grows by what it takes.
    pub(crate) fn gain(&mut self, at: Location) {
        self.segments.gain(self.layout.segment_of(at), self.layout.quarters_of(at));
    }

    /// The live count of what a location named falls by what it took.
    pub(crate) fn lose(&mut self, at: Location) {
        if at.is_block() {
            self.segments.lose(self.layout.segment_of(at), self.layout.quarters_of(at));
        }
    }

    /// The batch in memory that holds a block, if its log segment is being filled.
    #[inline]
    pub(crate) fn batch_of(&self, at: Location) -> Option<BatchId> {
        if !at.is_block() {
            return None;
        }
        let segment = self.segments.of(self.layout.segment_of(at));
        (segment.pins > 0 || segment.state == SegmentState::Open)
            .then(|| self.log.in_memory(self.layout.block_of(at)))
            .flatten()
    }

    /// Free log segments that a stream must not take.
    pub(crate) const fn kept_from(&self, stream: Stream) -> u32 {
        match stream {
            Stream::Clean => KEPT_FOR_META + self.members.kept_more(),
            Stream::Meta => 0,
            _ => self.reserve(),
        }
    }

    /// Log segments that a stream may take now. As many as are kept from it stay free; listed by the root are no more of these than half of what it
    /// has room for, because the map of a large volume of short log segments may grow to more than a root lists.
    pub(crate) fn takeable(&self, stream: Stream) -> u32 {
        let (kept, segments) = (self.kept_from(stream), &self.segments);
        let listed = segments.available().saturating_sub(kept.min(u32_from(RESERVE_LIST / 2)));
        listed.min(segments.free_count().saturating_sub(kept))
    }

    /// Log segments that only the cleaner and the map may take (R of volume.md, section 5.7). Where many members come with short log
    /// segments, a checkpoint takes more of them, and so does a map that has not grown to all that it may take.
    #[must_use]
    pub const fn reserve(&self) -> u32 {
        Layout::reserve() + self.members.kept_more()
    }

    pub(crate) fn segment_blocks(&self) -> u32 {
        self.layout.geometry().segment_blocks
    }

    pub(crate) fn start_of(&self, segment: LogSegmentId) -> Location {
        self.layout.start_of(segment)
    }
}
