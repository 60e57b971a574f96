//! Log segments that were given back: trimmed on the backing, then free. On zones they are reset, and not free before: a trim may
//! be left out, a reset may not.

use std::collections::VecDeque;

use onefold_units::{LogSegmentId, Nanos};

use crate::config::Trim;
use crate::io::{IoFailed, IoKind};
use crate::log::Stream;
use crate::pending::Purpose;
use crate::volume::Volume;

/// Log segments on their way to the free list.
#[derive(Debug, Default)]
pub(crate) struct Trims {
    queue: VecDeque<LogSegmentId>,
    under_way: u32,
    over: Vec<LogSegmentId>,
    /// When the next one may be trimmed.
    next: Nanos,
}

impl Trims {
    pub(crate) fn push(&mut self, segment: LogSegmentId) {
        self.queue.push_back(segment);
    }

    /// Log segments that wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = LogSegmentId> + '_ {
        self.queue.iter().copied()
    }

    /// Log segments that are on their way.
    pub(crate) fn len(&self) -> u32 {
        onefold_units::convert::u32_from(self.queue.len() + self.over.len()) + self.under_way
    }

    pub(crate) fn deadline(&self) -> Option<Nanos> {
        (!self.queue.is_empty() && self.under_way == 0).then_some(self.next)
    }
}

impl Volume {
    /// The backing is through with a log segment. A zone that could not be reset is not taken again.
    pub(crate) fn trim_over(&mut self, segment: LogSegmentId, result: Result<(), IoFailed>) {
        self.trims.under_way -= 1;
        if result.is_err() && self.layout.is_sequential(segment) {
            self.segments.leave(&[segment]);
        }
        self.trims.over.push(segment);
    }

    /// Trims what waits, one log segment at a time and not too fast. Where log segments are short, they become free
    /// without: a trim that the backing never sees does no harm.
    pub(crate) fn step_trims(&mut self) {
        for segment in std::mem::take(&mut self.trims.over) {
            self.segments.freed(segment);
        }
        while !self.trims.queue.is_empty() {
            let front = self.trims.queue.front().copied();
            let leaving = front.is_some_and(|id| self.segments.of(id).leaving);
            let zoned = front.is_some_and(|id| self.layout.is_sequential(id));
            let wanted = zoned || self.trims_freed();
            let hurry = self.segments.free_count() < self.layout.low();
            let blocked = self.segments.available() <= Self::kept_from(Stream::User);
            let due =
                hurry || self.now >= self.trims.next || self.options.trim_pause == Nanos::ZERO;
            let alone = self.trims.under_way == 0
                || self.options.trim_pause == Nanos::ZERO
                || zoned && hurry;
            if wanted && !leaving && due && alone {
                let segment = self.trims.queue.pop_front().expect("checked above");
                self.trims.under_way += 1;
                self.trims.next = self.now + self.options.trim_pause;
                self.send_trim(segment);
            } else if leaving || !wanted || (!zoned && blocked) {
                let segment = self.trims.queue.pop_front().expect("checked above");
                self.segments.freed(segment);
            } else {
                return;
            }
        }
    }

    /// Whether a log segment that is given back now is trimmed.
    fn trims_freed(&self) -> bool {
        match self.options.trim {
            Trim::Never => false,
            Trim::Spare => self.segments.free_count() >= self.layout.high(),
            Trim::Always => true,
        }
    }

    fn send_trim(&mut self, segment: LogSegmentId) {
        let at = self.start_of(segment);
        if self.layout.is_sequential(segment) {
            self.stats.zone_resets += 1;
            let blocks = self.layout.geometry().zone_blocks;
            self.ask(IoKind::Reset, Purpose::Trim(segment), at, blocks);
        } else {
            let blocks = self.segment_blocks();
            self.stats.trim_sent += u64::from(blocks);
            self.ask(IoKind::Trim, Purpose::Trim(segment), at, blocks);
        }
    }
}
