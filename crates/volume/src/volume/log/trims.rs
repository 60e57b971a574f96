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
        let left = result.is_err() && self.layout.is_sequential(segment);
        self.trims.end(segment, left, self.now);
    }

    /// Trims what waits, one log segment at a time and not too fast. Where log segments are short, they become free
    /// without: a trim that the backing never sees does no harm.
    pub(crate) fn step_trims(&mut self) {
        for segment in self.trims.take_over() {
            self.segments.freed(segment);
        }
        self.reset_again();
        while let Some((segment, since)) = self.trims.first() {
            if self.is_finishing(segment) {
                return;
            }
            let zoned = self.layout.is_sequential(segment);
            let pauses = self.options.trim_pause > Nanos::ZERO;
            let hurry = self.segments.free_count() < self.layout.low();
            let due = hurry || !pauses || self.trims.is_rested(self.now);
            let alone = self.trims.is_idle() || !pauses || zoned && hurry;
            let blocked = self.takeable(Stream::User) == 0;
            match self.way_of(segment, since) {
                Way::Trim if due && alone => self.send_trim(segment),
                Way::Trim | Way::Wait if zoned || !blocked => return,
                _ => self.segments.freed(segment),
            }
            self.trims.pop();
        }
    }

    /// Has zones reset of which that failed before. One that the backing is about to lose need not be.
    fn reset_again(&mut self) {
        while let Some(segment) = self.trims.next_again(self.now) {
            self.send_trim(segment);
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
        self.trims.begin(self.now + self.options.trim_pause);
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
