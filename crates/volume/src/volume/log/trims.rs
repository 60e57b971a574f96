//! Trimming or resetting log segments that were given back (`crate::segments::trims`).

use onefold_units::{LogSegmentId, Nanos};

use crate::config::Trim;
use crate::io::{IoFailed, IoKind};
use crate::log::Stream;
use crate::pending::Purpose;
use crate::segments::trims::SPARE_AGE;
use crate::volume::Volume;

/// What becomes of a log segment that was given back.
#[derive(Clone, Copy)]
enum Way {
    /// It is trimmed, then free.
    Trim,
    /// It is free.
    Free,
    /// It may stay free long enough to be trimmed.
    Wait,
}

impl Volume {
    /// The backing is through with a log segment. A zone that could not be reset is not free.
    pub(crate) fn trim_over(&mut self, segment: LogSegmentId, result: Result<(), IoFailed>) {
        self.trims.under_way -= 1;
        if result.is_err() && self.layout.is_sequential(segment) {
            self.trims.again(segment, self.now);
        } else {
            self.trims.later.retain(|(later, ..)| *later != segment);
            self.trims.over.push(segment);
        }
    }

    /// Trims what waits, one log segment at a time and not too fast. Where log segments are short, they become free
    /// without: a trim that the backing never sees does no harm.
    pub(crate) fn step_trims(&mut self) {
        for segment in std::mem::take(&mut self.trims.over) {
            self.segments.freed(segment);
        }
        self.reset_again();
        while let Some((segment, since)) = self.trims.queue.front().copied() {
            if self.is_finishing(segment) {
                return;
            }
            let zoned = self.layout.is_sequential(segment);
            let pauses = self.options.trim_pause > Nanos::ZERO;
            let hurry = self.segments.free_count() < self.layout.low();
            let due = hurry || !pauses || self.now >= self.trims.next;
            let alone = self.trims.under_way == 0 || !pauses || zoned && hurry;
            let blocked = self.takeable(Stream::User) == 0;
            match self.way_of(segment, since) {
                Way::Trim if due && alone => self.send_trim(segment),
                Way::Trim | Way::Wait if zoned || !blocked => return,
                _ => self.segments.freed(segment),
            }
            self.trims.queue.pop_front();
        }
    }

    /// Has zones reset of which that failed before. One that the backing is about to lose need not be.
    fn reset_again(&mut self) {
        for at in 0..self.trims.later.len() {
            let (segment, due, failures) = self.trims.later[at];
            if due.is_some_and(|due| due <= self.now) {
                self.trims.later[at] = (segment, None, failures);
                self.send_trim(segment);
            }
        }
    }

    /// What becomes of a log segment that was given back at `since`.
    fn way_of(&self, segment: LogSegmentId, since: Nanos) -> Way {
        let stays_free = self.segments.free_count() >= self.layout.high();
        match self.options.trim {
            _ if self.segments.of(segment).leaving => Way::Free,
            _ if self.layout.is_sequential(segment) => Way::Trim,
            Trim::Never => Way::Free,
            Trim::Spare if !stays_free => Way::Free,
            Trim::Spare if self.now < since + SPARE_AGE => Way::Wait,
            Trim::Spare | Trim::Always => Way::Trim,
        }
    }

    fn send_trim(&mut self, segment: LogSegmentId) {
        self.trims.under_way += 1;
        self.trims.next = self.now + self.options.trim_pause;
        let at = self.start_of(segment);
        if self.layout.is_sequential(segment) {
            self.forget_finish(segment);
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
