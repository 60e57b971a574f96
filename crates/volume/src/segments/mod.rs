//! The log segments and where each one is in its life.
//!
//! ```text
//! free -> open (a stream fills it) -> closed -> empty (nothing live) -> checkpoint commits -> trimmed -> free
//! ```
//!
//! 1. A closed log segment without live blocks is given back only by a checkpoint that began after it became so: older
//!    roots still point into it.
//! 2. A root lists the log segments that may be taken before the next root: recovery looks at those only.
//! 3. A log segment that is read is not given back.

mod errors;
mod faulty;
mod segment;
pub(crate) mod trims;

use std::collections::VecDeque;

use onefold_format::volume::{QUARTERS, SegmentState};
use onefold_units::convert::{index, u32_from};
use onefold_units::{LogSegmentId, Nanos};

use crate::limits::{RESERVE_LIST, STRIKES_MAX};
use crate::log::Stream;

pub use faulty::Faulty;

pub(crate) use segment::{Errors, Segment};

/// All log segments of a volume.
#[derive(Debug)]
pub(crate) struct Segments {
    table: Vec<Segment>,
    free: VecDeque<LogSegmentId>,
    next_epoch: u64,
    /// Free log segments that are listed.
    available: u32,
    /// Closed log segments without live blocks.
    empty: u32,
    /// What pages of an uncounted run were found to replace, in quarters (`crate::map::runs`, invariant 2). A root still counts it
    /// as live, because a recovery from it would find them again.
    deferred: Vec<u32>,
    /// Quarters of live blocks that are not of the map.
    data: u64,
    /// Some log segment may have to go.
    leaves: bool,
    /// Those that could not be cleaned.
    held: Vec<LogSegmentId>,
    /// Those that are retired since the volume was opened (`crate::volume::log::suspects`, invariant 3).
    retired: Vec<LogSegmentId>,
    /// Those that failed, one after the other, since a batch was written last.
    failing: Vec<LogSegmentId>,
    /// Some log segment may be doubtful (`crate::volume::map::doubts`).
    doubts: bool,
}

impl Segments {
    /// `count` free log segments, but for those in `fixed`.
    pub(crate) fn new(count: u32, fixed: &[u32]) -> Self {
        let mut table = vec![Segment::FREE; index(count)];
        for segment in fixed {
            table[index(*segment)].state = SegmentState::Fixed;
        }
        let mut segments = Self::of_table(table, 1);
        segments.list_all();
        segments
    }

    /// Of a table, with those listed that are free.
    fn of_table(table: Vec<Segment>, next_epoch: u64) -> Self {
        let mut segments = Self {
            table,
            free: VecDeque::new(),
            next_epoch,
            available: 0,
            empty: 0,
            deferred: Vec::new(),
            data: 0,
            leaves: false,
            held: Vec::new(),
            retired: Vec::new(),
            failing: Vec::new(),
            doubts: false,
        };
        segments.free = segments.in_state(SegmentState::Free).collect();
        segments
    }

    /// Before the first root of an opening counts, any log segment may be taken: nothing is replayed from there.
    fn list_all(&mut self) {
        let free: Vec<_> = self.free.iter().copied().collect();
        self.list(&free);
    }

    /// The log segments as recovery found them.
    pub(crate) fn restore(table: Vec<Segment>, next_epoch: u64) -> Self {
        let mut segments = Self::of_table(table, next_epoch);
        segments.leaves = segments.table.iter().any(Segment::has_to_go);
        segments.doubts = segments.table.iter().any(|segment| segment.errors.doubtful);
        segments.count_anew();
        segments.list_all();
        segments
    }

    /// Sums up what log segments say of themselves.
    pub(crate) fn count_anew(&mut self) {
        self.empty = u32_from(self.iter().filter(|(_, one)| one.is_empty_closed()).count());
        let data = self.table.iter().filter(|segment| segment.stream != Stream::Meta);
        self.data = data.map(|segment| u64::from(segment.quarters)).sum();
    }

    /// Log segments that batches behind the root were found in: closed, in the use that was found.
    /// Those that the root listed (`listed`) and that were not used became free with it, in whatever state it describes them.
    pub(crate) fn take_over(
        &mut self,
        used: &[(LogSegmentId, u64, u8)],
        listed: &[LogSegmentId],
        next_epoch: u64,
    ) {
        for id in listed {
            let Some(segment) = self.table.get_mut(id.index()) else { continue };
            if segment.state == SegmentState::Closed && segment.quarters == 0 {
                (segment.state, segment.errors.failed) = (SegmentState::Free, false);
            }
        }
        for (id, epoch, stream) in used {
            let segment = self.of_mut(*id);
            segment.state = SegmentState::Closed;
            segment.epoch = *epoch;
            segment.stream = Stream::from_code(*stream).unwrap_or(Stream::User);
        }
        self.next_epoch = next_epoch;
        self.keep_unfound();
        self.free = self.in_state(SegmentState::Free).collect();
        self.count_anew();
        self.list_all();
    }

    /// What the root points to is kept even if no batch was found there: one block of its checkpoint that rotted makes the batch with it
    /// count for nothing, and the others of that are as good as before.
    fn keep_unfound(&mut self) {
        for segment in &mut self.table {
            if segment.state == SegmentState::Free && segment.quarters > 0 {
                (segment.state, segment.stream) = (SegmentState::Closed, Stream::Meta);
                segment.epoch = self.next_epoch;
                self.next_epoch += 1;
            }
        }
    }

    fn in_state(&self, state: SegmentState) -> impl Iterator<Item = LogSegmentId> + '_ {
        (0..u32_from(self.table.len()))
            .map(LogSegmentId::new)
            .filter(move |id| self.of(*id).state == state)
    }

    #[inline]
    pub(crate) fn of(&self, id: LogSegmentId) -> &Segment {
        &self.table[id.index()]
    }

    #[inline]
    pub(crate) fn of_mut(&mut self, id: LogSegmentId) -> &mut Segment {
        &mut self.table[id.index()]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LogSegmentId, &Segment)> {
        (0..).map(LogSegmentId::new).zip(&self.table)
    }

    pub(crate) fn is_free(&self, id: LogSegmentId) -> bool {
        self.of(id).state == SegmentState::Free
    }

    pub(crate) fn free_count(&self) -> u32 {
        u32_from(self.free.len())
    }

    /// The first free log segments.
    pub(crate) fn next_free(&self, most: usize) -> impl Iterator<Item = LogSegmentId> + '_ {
        self.free.iter().copied().take(most)
    }

    /// Free log segments that may be taken now (invariant 2).
    pub(crate) const fn available(&self) -> u32 {
        self.available
    }

    /// Whether the next root would list free log segments that none lists yet.
    pub(crate) fn can_list_more(&self) -> bool {
        index(self.available) < self.free.len().min(RESERVE_LIST)
    }

    /// A root counts that lists these log segments.
    pub(crate) fn list(&mut self, ids: &[LogSegmentId]) {
        for segment in &mut self.table {
            segment.listed = false;
        }
        for id in ids {
            self.of_mut(*id).listed = true;
        }
        let listed = self.free.iter().filter(|id| self.of(**id).listed).count();
        self.available = u32_from(listed);
    }

    /// A root is being written that lists these log segments: until it counts, only those that both roots list may be
    /// taken.
    pub(crate) fn restrict(&mut self, ids: &[LogSegmentId]) {
        let both: Vec<_> = ids.iter().copied().filter(|id| self.of(*id).listed).collect();
        self.list(&both);
    }

    pub(crate) const fn next_epoch(&self) -> u64 {
        self.next_epoch
    }

    /// Takes the next free log segment for a stream.
    pub(crate) fn open(&mut self, stream: Stream) -> Option<LogSegmentId> {
        let at = self.free.iter().position(|id| self.of(*id).listed)?;
        let id = self.free.remove(at)?;
        self.available -= 1;
        let epoch = self.next_epoch;
        self.next_epoch += 1;
        let errors = Errors { strikes: self.of(id).errors.strikes, ..Errors::NONE };
        *self.of_mut(id) =
            Segment { state: SegmentState::Open, stream, epoch, errors, ..Segment::FREE };
        Some(id)
    }

    pub(crate) fn close(&mut self, id: LogSegmentId, mark: u64) {
        let segment = self.of_mut(id);
        assert!(segment.state == SegmentState::Open, "log segment {id:?} is closed twice");
        segment.mark = mark;
        segment.state = SegmentState::Closed;
        self.empty += u32::from(self.of(id).is_empty_closed());
    }

    /// Nothing is written to a log segment any more, and nothing is moved out of it.
    pub(crate) fn set_aside(&mut self, id: LogSegmentId) {
        self.empty -= u32::from(self.of(id).is_empty_closed());
        self.of_mut(id).state = SegmentState::Suspect;
    }

    /// The closed log segments that hold nothing live and that nobody reads (invariants 1 and 3).
    pub(crate) fn empties(&self) -> Vec<LogSegmentId> {
        self.iter()
            .filter(|(_, segment)| segment.is_empty_closed() && segment.pins == 0)
            .map(|(id, _)| id)
            .collect()
    }

    /// Gives an empty log segment back after a checkpoint; it is free once [`Segments::freed`] says so.
    pub(crate) fn give_back(&mut self, id: LogSegmentId) {
        self.empty -= 1;
        let segment = self.of_mut(id);
        assert!(segment.is_empty_closed(), "invariant 1");
        segment.state = SegmentState::Prefree;
        segment.quarters = 0;
        if !segment.errors.failed {
            segment.errors.strikes = 0;
        }
        if segment.errors.holds > 0 {
            self.release_held(id);
        }
    }

    /// Puts a log segment that was given back at the end of the free list, unless it is retired (`crate::volume::log::suspects`, invariant 3).
    pub(crate) fn freed(&mut self, id: LogSegmentId) {
        let segment = self.of_mut(id);
        if segment.errors.strikes >= STRIKES_MAX {
            segment.state = SegmentState::Suspect;
            self.retired.push(id);
            return;
        }
        (segment.state, segment.errors.failed) = (SegmentState::Free, false);
        if !self.of(id).leaving {
            self.available += u32::from(self.of(id).listed);
            self.free.push_back(id);
        }
    }

    /// Whether data has to move out of some log segment.
    pub(crate) fn has_leaving(&self, now: Nanos) -> bool {
        let goes = |segment: &Segment| segment.has_to_go() && segment.is_movable(now);
        self.leaves && self.table.iter().any(goes)
    }

    /// The backing is about to lose these log segments, or takes no more there.
    pub(crate) fn leave(&mut self, ids: &[LogSegmentId]) {
        self.leaves |= !ids.is_empty();
        for id in ids {
            self.of_mut(*id).leaving = true;
        }
        self.count_free();
    }

    /// The backing keeps what it was about to lose.
    pub(crate) fn stay(&mut self) {
        self.table.iter_mut().for_each(|segment| segment.leaving = false);
        self.count_free();
    }

    /// Another number of log segments, of which those in `fixed` hold labels and roots. What is gone was free.
    pub(crate) fn resize(&mut self, count: u32, fixed: &[u32]) {
        fit(&mut self.table, count, fixed);
        self.table.iter_mut().for_each(|segment| segment.leaving = false);
        self.count_free();
    }

    fn count_free(&mut self) {
        let mut free: VecDeque<_> = std::mem::take(&mut self.free);
        let is_free = |id: &LogSegmentId| {
            self.table
                .get(id.index())
                .is_some_and(|segment| segment.state == SegmentState::Free && !segment.leaving)
        };
        free.retain(is_free);
        let known: std::collections::BTreeSet<_> = free.iter().copied().collect();
        free.extend(
            self.in_state(SegmentState::Free).filter(|id| is_free(id) && !known.contains(id)),
        );
        self.available = u32_from(free.iter().filter(|id| self.of(**id).listed).count());
        self.free = free;
    }

    /// More of a log segment is live, in quarters of blocks.
    pub(crate) fn gain(&mut self, id: LogSegmentId, quarters: u32) {
        // What the cleaner takes back may belong to one that was empty meanwhile.
        self.empty -= u32::from(self.of(id).is_empty_closed());
        let segment = self.of_mut(id);
        segment.quarters += quarters;
        if segment.stream != Stream::Meta {
            self.data += u64::from(quarters);
        }
    }

    /// Less of a log segment is live, in quarters of blocks.
    pub(crate) fn lose(&mut self, id: LogSegmentId, quarters: u32) {
        let segment = self.of_mut(id);
        assert!(segment.quarters >= quarters, "log segment {id:?} loses more than it has");
        segment.quarters -= quarters;
        let (emptied, is_meta) = (segment.is_empty_closed(), segment.stream == Stream::Meta);
        self.data -= if is_meta { 0 } else { u64::from(quarters) };
        self.empty += u32::from(emptied);
    }

    /// Closed log segments that a checkpoint would give back.
    pub(crate) const fn empty_count(&self) -> u32 {
        self.empty
    }

    /// A block of an uncounted run was found to have replaced a live one.
    pub(crate) fn defer(&mut self, id: LogSegmentId, quarters: u32) {
        if self.deferred.is_empty() {
            self.deferred = vec![0; self.table.len()];
        }
        self.deferred[id.index()] += quarters;
    }

    pub(crate) fn deferred(&self, id: LogSegmentId) -> u32 {
        self.deferred.get(id.index()).copied().unwrap_or(0)
    }

    /// Every run is counted from now on.
    pub(crate) fn forget_deferred(&mut self) {
        self.deferred = Vec::new();
    }

    pub(crate) fn pin(&mut self, id: LogSegmentId) {
        self.of_mut(id).pins += 1;
    }

    pub(crate) fn unpin(&mut self, id: LogSegmentId) {
        let segment = self.of_mut(id);
        assert!(segment.pins > 0, "log segment {id:?} was not pinned");
        segment.pins -= 1;
    }

    /// Live blocks of data.
    pub(crate) fn data_total(&self) -> u64 {
        self.data.div_ceil(QUARTERS.into())
    }

    /// Live blocks of all log segments.
    pub(crate) fn live_total(&self) -> u64 {
        let quarters: u64 = self.table.iter().map(|segment| u64::from(segment.quarters)).sum();
        quarters.div_ceil(QUARTERS.into())
    }

    pub(crate) fn meta(&self) -> impl Iterator<Item = &Segment> {
        let open = |segment: &Segment| segment.state == SegmentState::Open;
        let meta = self.iter().map(|(_, segment)| segment);
        meta.filter(move |one| one.stream == Stream::Meta && (one.live() > 0 || open(one)))
    }

    /// Log segments that checkpoints fill.
    pub(crate) fn meta_segments(&self) -> u32 {
        u32_from(self.meta().count())
    }

    /// Blocks of checkpoints that count.
    pub(crate) fn meta_live(&self) -> u64 {
        self.meta().map(|segment| u64::from(segment.live())).sum()
    }

    /// Whether what checkpoints need lies in log segments that leave.
    pub(crate) fn has_leaving_meta(&self) -> bool {
        let meta = |segment: &Segment| {
            segment.has_to_go() && segment.stream == Stream::Meta && segment.live() > 0
        };
        self.iter().any(|(_, segment)| meta(segment))
    }
}

/// Fits a table to a layout: log segments that are new are free, and so are those that no longer hold a label.
pub(crate) fn fit(table: &mut Vec<Segment>, count: u32, fixed: &[u32]) {
    table.resize(index(count), Segment::FREE);
    for (id, segment) in (0..).zip(table) {
        if fixed.contains(&id) {
            *segment = Segment { state: SegmentState::Fixed, ..Segment::FREE };
        } else if segment.state == SegmentState::Fixed {
            segment.state = SegmentState::Free;
        }
    }
}
