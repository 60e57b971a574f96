//! Log segments that were given back: trimmed on the backing, then free. On zones they are reset, and not free before: a trim may
//! be left out, a reset may not.

use std::collections::VecDeque;

use onefold_units::{LogSegmentId, Nanos};

use crate::config::Trim;
use crate::io::{IoFailed, IoKind};
use crate::log::Stream;
use crate::pending::Purpose;
use crate::volume::Volume;

/// How long a log segment waits before it is trimmed as one that stays free ([`Trim::Spare`]).
const SPARE_AGE: Nanos = Nanos::new(30_000_000_000);

/// How long a zone that could not be reset is left alone, at first and at most.
const AGAIN_MIN: Nanos = Nanos::new(1_000_000_000);
const AGAIN_MAX: Nanos = Nanos::new(60_000_000_000);

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

/// Log segments on their way to the free list.
#[derive(Debug, Default)]
pub(crate) struct Trims {
    /// Those that wait, and since when.
    queue: VecDeque<(LogSegmentId, Nanos)>,
    under_way: u32,
    over: Vec<LogSegmentId>,
    /// When the next one may be trimmed.
    next: Nanos,
    /// Zones that could not be reset: when that is tried again, unless it is being reset, and after how many failures.
    later: Vec<(LogSegmentId, Option<Nanos>, u32)>,
}

impl Trims {
    pub(crate) fn push(&mut self, segment: LogSegmentId, now: Nanos) {
        self.queue.push_back((segment, now));
    }

    /// Log segments that wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = LogSegmentId> + '_ {
        self.queue.iter().map(|(segment, _)| *segment)
    }

    /// Log segments that are on their way.
    pub(crate) fn len(&self) -> u32 {
        onefold_units::convert::u32_from(self.queue.len() + self.over.len()) + self.under_way
    }

    /// Whether zones could not be reset: they get free later.
    pub(crate) const fn has_stuck(&self) -> bool {
        !self.later.is_empty()
    }

    pub(crate) fn deadline(&self, trim: Trim) -> Option<Nanos> {
        let later = self.later.iter().filter_map(|(_, due, _)| *due).min();
        let next = self.queue.front().filter(|_| self.under_way == 0).map(|(_, since)| {
            let aged = if trim == Trim::Spare { *since + SPARE_AGE } else { Nanos::ZERO };
            self.next.max(aged)
        });
        next.into_iter().chain(later).min()
    }

    /// A zone could not be reset: that is tried again after a time that doubles.
    pub(crate) fn again(&mut self, segment: LogSegmentId, now: Nanos) {
        let known = self.later.iter().position(|(of, ..)| *of == segment);
        let failures = known.map_or(0, |at| self.later.swap_remove(at).2) + 1;
        let doubled = AGAIN_MIN.get() << failures.min(8);
        let due = now + Nanos::new(doubled.min(AGAIN_MAX.get()));
        self.later.push((segment, Some(due), failures));
    }
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
