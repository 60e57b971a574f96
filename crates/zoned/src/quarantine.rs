//! Zones that are left alone for a while: by everybody before they are reset, or by reclaim (invariants 2 and 3 of
//! `crate::faults`).

use onefold_units::convert::index;
use onefold_units::{Nanos, ZoneId};

/// How long reclaim leaves alone what it could not read or copy.
pub(crate) const AGAIN: Nanos = Nanos::new(60_000_000_000);

/// How long a zone rests after so many failures in a row.
const fn rest(strikes: u32) -> Nanos {
    const SECONDS: [u64; 4] = [1, 4, 16, 60];
    let at = if strikes > 4 { 3 } else { strikes.saturating_sub(1) };
    Nanos::new(SECONDS[index(at)] * 1_000_000_000)
}

/// What is left alone for a while.
#[derive(Debug, Default)]
pub(crate) struct Quarantine {
    /// Empty zones, and when they are reset.
    resting: Vec<(ZoneId, Nanos)>,
    /// Since when there are such zones, and none of them came back.
    since: Option<Nanos>,
    /// Mapped zones, and when reclaim looks at them again.
    barred: Vec<(ZoneId, Nanos)>,
}

impl Quarantine {
    /// When the next zone is looked at again.
    pub(crate) fn due(&self) -> Option<Nanos> {
        self.resting.iter().chain(&self.barred).map(|(_, due)| *due).min()
    }

    /// Since when zones rest.
    pub(crate) const fn since(&self) -> Option<Nanos> {
        self.since
    }

    pub(crate) fn is_barred(&self, zone: ZoneId) -> bool {
        self.barred.iter().any(|(barred, _)| *barred == zone)
    }

    /// An empty zone that failed so often in a row rests from now on.
    pub(crate) fn rest(&mut self, zone: ZoneId, strikes: u32, now: Nanos) {
        self.since.get_or_insert(now);
        self.resting.push((zone, now + rest(strikes)));
    }

    /// The next zone that rested long enough.
    pub(crate) fn next_rested(&mut self, now: Nanos) -> Option<ZoneId> {
        let at = self.resting.iter().position(|(_, due)| *due <= now)?;
        Some(self.resting.swap_remove(at).0)
    }

    /// A zone that rested can be used again.
    pub(crate) fn came_back(&mut self, now: Nanos) {
        self.since = (!self.resting.is_empty()).then_some(now);
    }

    /// Reclaim leaves a mapped zone alone from now on.
    pub(crate) fn bar(&mut self, zone: ZoneId, now: Nanos) {
        self.barred.retain(|(barred, _)| *barred != zone);
        self.barred.push((zone, now + AGAIN));
    }

    /// Whether reclaim may look again at a zone that it left alone long enough.
    pub(crate) fn unbar(&mut self, now: Nanos) -> bool {
        let before = self.barred.len();
        self.barred.retain(|(_, due)| *due > now);
        self.barred.len() < before
    }
}
