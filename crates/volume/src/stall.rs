//! Whether the backing takes writes, and what is known of that (`crate::volume::stall`).

use onefold_units::Nanos;

use crate::io::IoFailed;
use crate::retries::PATIENCE;

/// Why a volume stalls, and what may make it stall.
#[derive(Debug, Default)]
pub(crate) struct Stall {
    /// Why the backing takes no writes now.
    stalled: Option<IoFailed>,
    /// Since when a write of the host waits for log segments.
    short_since: Option<Nanos>,
    /// When a request to the backing failed last, and how.
    last_failure: Option<(Nanos, IoFailed)>,
}

impl Stall {
    /// Why the backing takes no writes now, if it does not.
    pub(crate) const fn why(&self) -> Option<IoFailed> {
        self.stalled
    }

    pub(crate) const fn set(&mut self, why: Option<IoFailed>) {
        self.stalled = why;
    }

    /// A write of the host waits for log segments.
    pub(crate) fn note_short(&mut self, now: Nanos) {
        self.short_since = self.short_since.or(Some(now));
    }

    /// There are log segments for the host.
    pub(crate) const fn end_short(&mut self) {
        self.short_since = None;
    }

    /// Since when a write of the host waits for log segments.
    pub(crate) const fn short_since(&self) -> Option<Nanos> {
        self.short_since
    }

    /// A request to the backing failed.
    pub(crate) const fn note_failure(&mut self, now: Nanos, why: IoFailed) {
        self.last_failure = Some((now, why));
    }

    /// How the last request failed, if that was since then and not long ago.
    pub(crate) fn failure_since(&self, since: Nanos, now: Nanos) -> Option<IoFailed> {
        let fails = |(at, _): &(Nanos, IoFailed)| since <= *at && now < *at + PATIENCE;
        self.last_failure.filter(fails).map(|(_, why)| why)
    }
}
