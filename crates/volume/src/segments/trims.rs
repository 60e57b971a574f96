//! Log segments that were given back: trimmed on the backing, then free. On zones they are reset, and not free before: a trim may
//! be left out, a reset may not.

use std::collections::VecDeque;

use onefold_units::{LogSegmentId, Nanos};

use crate::config::Trim;

/// How long a log segment waits before it is trimmed as one that stays free ([`Trim::Spare`]).
pub(crate) const SPARE_AGE: Nanos = Nanos::new(30_000_000_000);

/// How long a zone that could not be reset is left alone, at first and at most.
pub(crate) const AGAIN_MIN: Nanos = Nanos::new(1_000_000_000);

pub(crate) const AGAIN_MAX: Nanos = Nanos::new(60_000_000_000);

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

    /// The backing is through with a log segment that was to be trimmed or reset. Where it was `left` as it is, that is tried again.
    pub(crate) fn end(&mut self, segment: LogSegmentId, left: bool, now: Nanos) {
        self.under_way -= 1;
        if left {
            self.again(segment, now);
        } else {
            self.later.retain(|(later, ..)| *later != segment);
            self.over.push(segment);
        }
    }

    /// Those with which the backing is through since this was asked last.
    pub(crate) fn take_over(&mut self) -> Vec<LogSegmentId> {
        std::mem::take(&mut self.over)
    }

    /// The one that waits longest, and since when.
    pub(crate) fn first(&self) -> Option<(LogSegmentId, Nanos)> {
        self.queue.front().copied()
    }

    /// The one that waits longest does so no more.
    pub(crate) fn pop(&mut self) {
        self.queue.pop_front();
    }

    /// Whether none is under way.
    pub(crate) const fn is_idle(&self) -> bool {
        self.under_way == 0
    }

    /// Whether the pause behind the last one is over.
    pub(crate) fn is_rested(&self, now: Nanos) -> bool {
        now >= self.next
    }

    /// One is begun, and a pause.
    pub(crate) fn begin(&mut self, until: Nanos) {
        self.under_way += 1;
        self.next = until;
    }

    /// The next one that failed before and is due again: it is tried now.
    pub(crate) fn next_again(&mut self, now: Nanos) -> Option<LogSegmentId> {
        let is_due = |due: &Option<Nanos>| due.is_some_and(|due| due <= now);
        let (segment, due, _) = self.later.iter_mut().find(|(_, due, _)| is_due(due))?;
        *due = None;
        Some(*segment)
    }
}
