//! Requests to devices that failed, and when they are sent again.
//!
//! An error of a device may pass: a path that comes back, a full host that gets room. So before anything follows from a failed
//! request, the same request is sent again, unchanged, after a pause that grows from [`PAUSE_MIN`] to [`PAUSE_MAX`].
//!
//! 1. Only requests that come to the same when they are carried out twice are sent again: reads, and writes to one place. A write
//!    to a sequential zone is among them: the zone refuses it if a part of it was written. Resets have pauses of their own
//!    ([`crate::faults`]).
//! 2. A flush is not, unless there was nothing to make durable: after one that failed nobody knows what the caches below still
//!    have.
//! 3. A request that waits here is under way for all others: its place is not given back, and its bytes do not change.

use onefold_units::Nanos;

use crate::io::{IoFailed, IoId};

/// The first pause.
const PAUSE_MIN: Nanos = Nanos::new(1_000_000);

/// The longest pause.
const PAUSE_MAX: Nanos = Nanos::new(1_000_000_000);

/// Times that a request is sent before its failure counts, where something else can be done then: 85 ms of pauses.
pub(crate) const TRIES_FEW: u32 = 5;

/// How long a write may fail before the host is told. Longer than what most paths to a drive take to come back.
pub(crate) const PATIENCE: Nanos = Nanos::new(5_000_000_000);

/// How long to wait after a number of failures in a row.
fn pause(failures: u32) -> Nanos {
    let grown = PAUSE_MIN.get() << failures.saturating_sub(1).saturating_mul(2).min(20);
    Nanos::new(grown.min(PAUSE_MAX.get()))
}

/// How something fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failing {
    /// Since when.
    pub(crate) since: Nanos,
    /// How it failed last.
    pub(crate) why: IoFailed,
}

impl Failing {
    /// Whether the host is told: at once when the device says that it is full.
    pub(crate) fn stalls(&self, now: Nanos) -> bool {
        self.why == IoFailed::NoSpace || now >= self.since + PATIENCE
    }
}

#[derive(Clone, Copy, Debug)]
struct Retry {
    id: IoId,
    failures: u32,
    failing: Failing,
    /// When it is sent again; `None` while it is under way.
    due: Option<Nanos>,
    /// Nobody goes on without it.
    is_needed: bool,
}

/// All requests that failed and are not over.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    list: Vec<Retry>,
}

impl Retries {
    /// Whether nothing fails.
    pub(crate) const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A request failed. Whether it is sent again: it is while it failed fewer than `tries` times, and for ever without.
    pub(crate) fn again(
        &mut self,
        id: IoId,
        tries: Option<u32>,
        (now, why): (Nanos, IoFailed),
    ) -> bool {
        let at = self.list.iter().position(|retry| retry.id == id).unwrap_or_else(|| {
            let failing = Failing { since: now, why };
            let is_needed = tries.is_none();
            self.list.push(Retry { id, failures: 0, failing, due: None, is_needed });
            self.list.len() - 1
        });
        let retry = &mut self.list[at];
        retry.failures = retry.failures.saturating_add(1);
        retry.failing.why = why;
        if tries.is_some_and(|tries| retry.failures >= tries) {
            self.list.swap_remove(at);
            return false;
        }
        retry.due = Some(now + pause(retry.failures));
        true
    }

    /// A request ended.
    pub(crate) fn over(&mut self, id: IoId) {
        self.list.retain(|retry| retry.id != id);
    }

    /// The next request that is sent again now.
    pub(crate) fn next(&mut self, now: Nanos) -> Option<IoId> {
        let retry = self.list.iter_mut().find(|retry| retry.due.is_some_and(|due| due <= now))?;
        retry.due = None;
        Some(retry.id)
    }

    /// The next request that waits, and how it failed: it is not sent again.
    pub(crate) fn give_up(&mut self) -> Option<(IoId, IoFailed)> {
        let at = self.list.iter().position(|retry| retry.due.is_some())?;
        let Retry { id, failing, .. } = self.list.swap_remove(at);
        Some((id, failing.why))
    }

    /// When the next request is sent again, or the host is told.
    pub(crate) fn deadline(&self, now: Nanos) -> Option<Nanos> {
        let told = |retry: &Retry| retry.failing.since + PATIENCE;
        let told = self.list.iter().map(told).filter(|at| *at > now);
        self.list.iter().filter_map(|retry| retry.due).chain(told).min()
    }

    /// What fails that nobody goes on without.
    pub(crate) fn needed(&self) -> impl Iterator<Item = Failing> + '_ {
        self.list.iter().filter(|retry| retry.is_needed).map(|retry| retry.failing)
    }
}

#[cfg(test)]
mod tests {
    use onefold_units::Nanos;

    use super::{PAUSE_MAX, Retries, TRIES_FEW, pause};
    use crate::io::{IoFailed, IoId};

    /// Pauses as the constants say them.
    #[test]
    fn pauses_grow_to_a_second() {
        let all = |tries| (1..tries).map(|failures| pause(failures).get()).sum::<u64>();
        assert_eq!((all(TRIES_FEW), all(TRIES_FEW + 2)), (85_000_000, 1_341_000_000));
        assert_eq!(pause(u32::MAX), PAUSE_MAX);
    }

    /// A request is sent as often as it may, each time when it is due.
    #[test]
    fn a_request_is_sent_again_until_its_tries_are_used_up() {
        let mut retries = Retries::default();
        let mut now = Nanos::new(7);
        for _ in 1..TRIES_FEW {
            assert!(retries.again(IoId(3), Some(TRIES_FEW), (now, IoFailed::Error)));
            assert_eq!(retries.next(now), None);
            now = retries.deadline(now).expect("it waits");
            assert_eq!(retries.next(now), Some(IoId(3)));
            assert_eq!(retries.next(now), None);
        }
        assert!(!retries.again(IoId(3), Some(TRIES_FEW), (now, IoFailed::Error)));
        assert!(retries.is_empty());
    }

    /// What nobody goes on without is sent again for ever.
    #[test]
    fn a_needed_request_is_never_given_up() {
        let mut retries = Retries::default();
        for second in 0..1000 {
            let now = Nanos::new(second * PAUSE_MAX.get());
            assert!(retries.again(IoId(3), None, (now, IoFailed::Error)));
        }
        let failing = retries.needed().next().expect("it fails");
        assert_eq!(failing.since, Nanos::ZERO);
        assert!(failing.stalls(Nanos::new(5_000_000_000)));
        assert!(!failing.stalls(Nanos::new(4_999_999_999)));
    }
}
