//! The beginning of a checkpoint: the state at X.

use std::collections::BTreeSet;

use onefold_format::volume::{DIRECTORY_ENTRIES, OpenSegment, SegmentEntry};
use onefold_units::LogSegmentId;

use crate::checkpoint::sweep::Sweep;
use crate::checkpoint::{Phase, Work};
use crate::limits::RESERVE_LIST;
use crate::log::Stream;
use crate::map::Map;
use crate::volume::Volume;

impl Volume {
    /// The log segments that this checkpoint gives back, and those that may be taken after it. Nothing is given back before
    /// all runs are counted: a recovery from a root with an uncounted run takes the blocks that its records replaced from
    /// the counts once more, and they must not belong to another use of their log segment then.
    fn choose_reserve(&mut self, counts: bool) -> (Vec<LogSegmentId>, Vec<LogSegmentId>) {
        let counted = self.is_counted() && counts;
        let emptied = if counted { self.segments.empties() } else { Vec::new() };
        let free = self.segments.next_free(RESERVE_LIST);
        // What becomes free with this checkpoint may be taken as soon as it counts.
        let reserve = free.chain(self.trims.waiting()).chain(emptied.iter().copied());
        let reserve: Vec<_> = reserve.take(RESERVE_LIST).collect();
        self.segments.restrict(&reserve);
        (emptied, reserve)
    }

    /// Captures the state at X.
    pub(super) fn capture(&mut self) {
        self.send_user();
        self.send_open(Stream::Clean);
        let (number, before) = self.checkpoint.begin();
        let replaced = self.let_members_go();
        let sweep = self.begin_sweep();
        let is_last = sweep != Sweep::All && !self.is_moving_meta();
        if self.checkpoint.is_closing() && !is_last {
            // The last one follows.
            self.checkpoint.want();
        }
        let mut pages = self.choose_sweep(number, sweep);
        let recovered = !self.checkpoint.recovered().is_empty();
        let mut runs = self.capture_runs(number, before.1);
        let (emptied, reserve) = self.choose_reserve(!recovered);
        if let Some((slot, parent)) = self.welcome_member() {
            Self::share_capture(slot, parent, &mut pages, &mut runs);
        }
        let block_of = |key: &usize| {
            let (slot, page) = Map::of_key(*key);
            (slot, page / DIRECTORY_ENTRIES)
        };
        let directories: BTreeSet<(usize, usize)> = pages.iter().flatten().map(block_of).collect();
        let members = self.members.slots().map(|slot| (slot, self.members.of(slot).describe()));
        let members = members.collect();
        let work = Work {
            phase: Phase::Pages,
            seq: self.log.seq(),
            clean: self.checkpoint.is_closing() && is_last,
            pages: pages.into(),
            directories: directories.into_iter().collect(),
            runs,
            at: 0,
            members,
            body: Vec::new(),
            body_blocks: Vec::new(),
            segments: self.describe_segments(),
            open: self.describe_open(),
            reserve,
            emptied,
            next_epoch: self.segments.next_epoch(),
            swept: self.checkpoint.swept(),
            replaced,
            made: Vec::new(),
            old_images: Vec::new(),
            old_directory: Vec::new(),
            before,
            last_seq: 0,
            generation: 0,
            spoiled: false,
        };
        self.checkpoint.start(work, self.segments.next_epoch());
    }

    fn describe_segments(&self) -> Vec<SegmentEntry> {
        let describe = |(id, segment): (LogSegmentId, &crate::segments::Segment)| SegmentEntry {
            state: segment.state_on_disk(),
            stream: segment.stream.code(),
            live: self.layout.count_on_disk(segment.quarters + self.segments.deferred(id)),
            epoch: segment.epoch,
            doubtful: segment.errors.doubtful,
        };
        self.segments.iter().map(describe).collect()
    }

    fn describe_open(&self) -> Vec<OpenSegment> {
        let of = |stream: Stream| {
            let state = self.log.stream(stream);
            // A full one takes no more batches, and this checkpoint may give it back already.
            let segment = state.segment.filter(|_| state.used < self.segment_blocks())?;
            Some(OpenSegment { stream: stream.code(), segment, next: state.used })
        };
        Stream::ALL.into_iter().filter_map(of).collect()
    }
}
