//! Requests to the backing that failed, and when they are sent again.
//!
//! An error of a backing may pass: a path that comes back, a full host that gets room. So before anything follows from a failed
//! request, the same request is sent again, unchanged, after a pause that doubles from [`PAUSE_MIN`] to [`PAUSE_MAX`].
//!
//! 1. Only requests that come to the same when they are carried out twice are sent again: reads, writes to one place, resets and
//!    finishes of zones. Of a write to a sequential zone what is missing is sent (`crate::zones`).
//! 2. A flush is not: after one that failed nobody knows what the caches below still have (`crate::log::flush`, invariant 2).
//! 3. A request that waits here is under way for all others: its place is not given back, and its bytes do not change.

use onefold_units::Nanos;

use crate::io::{IoFailed, IoId};

/// How long a write may fail before the host is told. Longer than what most paths to a drive take to come back.
pub(crate) const PATIENCE: Nanos = Nanos::new(5_000_000_000);

/// The first pause.
const PAUSE_MIN: Nanos = Nanos::new(1_000_000);

/// The longest pause.
const PAUSE_MAX: Nanos = Nanos::new(1_000_000_000);

/// Times that a request is sent before its failure counts, where something else can be done then: 85 ms of pauses.
pub const TRIES_FEW: u32 = 5;

/// The same where that something is costly: 4 s of pauses, before the host is told (`crate::volume::stall`).
pub(crate) const TRIES_SOME: u32 = 10;

/// The same for finishing a zone: 0.34 s of pauses. One that can only be read is not worth more, and while one may still be active no other is begun.
pub(crate) const TRIES_FINISH: u32 = 6;

/// The same where it is the last resort: a minute of pauses.
pub const TRIES_MANY: u32 = 65;

/// How long to wait after a number of failures in a row.
pub(crate) fn pause(failures: u32) -> Nanos {
    let doubled = PAUSE_MIN.get() << failures.saturating_sub(1).saturating_mul(2).min(20);
    Nanos::new(doubled.min(PAUSE_MAX.get()))
}

/// How a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failing {
    /// Since when.
    pub since: Nanos,
    /// How it failed last.
    pub why: IoFailed,
}

impl Failing {
    /// Whether the host is told at `now`: after five seconds, or at once if the backing is full.
    #[must_use]
    pub fn stalls(&self, now: Nanos) -> bool {
        self.why == IoFailed::NoSpace || now >= self.since + PATIENCE
    }
}

#[derive(Clone, Copy, Debug)]
struct Retry {
    id: IoId,
    is_write: bool,
    failures: u32,
    failing: Failing,
    /// Its zone does not take it, however often it is sent.
    refused: bool,
    /// When it is sent again; `None` while it is under way.
    due: Option<Nanos>,
}

/// All requests that failed and are not over.
#[derive(Debug, Default)]
pub struct Retries {
    list: Vec<Retry>,
    /// Since when requests fail now and then, and when one did last.
    spell: Option<(Nanos, Nanos)>,
}

impl Retries {
    /// Whether nothing fails.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A request failed. Since when that goes on: failures that follow each other soon are one spell.
    pub(crate) fn spell_goes_on(&mut self, now: Nanos) -> Nanos {
        let lasts = self.spell.filter(|(_, last)| now < *last + PATIENCE);
        let since = lasts.map_or(now, |(since, _)| since);
        self.spell = Some((since, now));
        since
    }

    /// A request failed. Whether it is sent again: it is while it failed fewer than `tries` times. `since` says since when its
    /// bytes could not be written, if that was tried elsewhere before.
    pub fn again(
        &mut self,
        (id, is_write): (IoId, bool),
        tries: u32,
        (now, why): (Nanos, IoFailed),
        since: Option<Nanos>,
    ) -> bool {
        let at = self.list.iter().position(|retry| retry.id == id).unwrap_or_else(|| {
            let failing = Failing { since: since.unwrap_or(now), why };
            self.list.push(Retry { id, is_write, failures: 0, failing, refused: false, due: None });
            self.list.len() - 1
        });
        let retry = &mut self.list[at];
        retry.failures = retry.failures.saturating_add(1);
        retry.failing.why = why;
        if retry.failures >= tries {
            self.list.swap_remove(at);
            return false;
        }
        retry.due = Some(now + pause(retry.failures));
        true
    }

    /// The zone of a write does not take it.
    pub(crate) fn refuse(&mut self, id: IoId) {
        self.list.iter_mut().filter(|retry| retry.id == id).for_each(|retry| retry.refused = true);
    }

    /// Whether the zone of a write did not take it when that was asked last.
    pub(crate) fn is_refused(&self, id: IoId) -> bool {
        self.list.iter().any(|retry| retry.id == id && retry.refused)
    }

    /// Since when requests fail now and then; one did just now.
    pub(crate) fn since(&self, now: Nanos) -> Nanos {
        self.spell.map_or(now, |(since, _)| since)
    }

    /// A request ended.
    pub fn over(&mut self, id: IoId) {
        self.list.retain(|retry| retry.id != id);
    }

    /// The next request that is sent again now.
    pub fn next(&mut self, now: Nanos) -> Option<IoId> {
        let retry = self.list.iter_mut().find(|retry| retry.due.is_some_and(|due| due <= now))?;
        (retry.due, retry.refused) = (None, false);
        Some(retry.id)
    }

    /// When the next request is sent again.
    #[must_use]
    pub fn deadline(&self) -> Option<Nanos> {
        self.list.iter().filter_map(|retry| retry.due).min()
    }

    /// The writes that fail.
    pub fn writes(&self) -> impl Iterator<Item = Failing> + '_ {
        self.list.iter().filter(|retry| retry.is_write).map(|retry| retry.failing)
    }
}

#[cfg(test)]
mod tests {
    use onefold_units::Nanos;

    use super::{PAUSE_MAX, Retries, TRIES_FEW, TRIES_MANY, TRIES_SOME, pause};
    use crate::io::{IoFailed, IoId};

    /// Pauses as the constants say them.
    #[test]
    fn pauses_grow_to_a_second() {
        let all = |tries| (1..tries).map(|failures| pause(failures).get()).sum::<u64>();
        assert_eq!(all(TRIES_FEW), 85_000_000);
        assert_eq!((all(TRIES_SOME), all(TRIES_MANY)), (4_341_000_000, 59_341_000_000));
        assert_eq!(pause(u32::MAX), PAUSE_MAX);
    }

    /// A request is sent as often as it may, each time when it is due.
    #[test]
    fn a_request_is_sent_again_until_its_tries_are_used_up() {
        let mut retries = Retries::default();
        let mut now = Nanos::new(7);
        for _ in 1..TRIES_FEW {
            let failed = (now, IoFailed::Error);
            assert!(retries.again((IoId(3), true), TRIES_FEW, failed, None));
            assert_eq!(retries.next(now), None);
            now = retries.deadline().expect("it waits");
            assert_eq!(retries.next(now), Some(IoId(3)));
            assert_eq!((retries.next(now), retries.deadline()), (None, None));
        }
        assert_eq!(retries.writes().next().map(|failing| failing.since), Some(Nanos::new(7)));
        assert!(!retries.again((IoId(3), true), TRIES_FEW, (now, IoFailed::Error), None));
        assert!(retries.is_empty());
    }
}
