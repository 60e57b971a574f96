//! Zones that have to be finished (`crate::zones`, invariant 3).

use onefold_units::{LogSegmentId, Nanos};

/// Zones that are left before they are full.
#[derive(Debug, Default)]
pub(crate) struct Finishes {
    /// Those that still have batches under way.
    wanted: Vec<LogSegmentId>,
    under_way: u32,
    /// Those that could not be finished and may still be active: when that is tried again, unless it is, and after how many failures.
    later: Vec<(LogSegmentId, Option<Nanos>, u32)>,
    /// A zone beside those of streams and roots is written: no zone of this use or a later one is begun.
    held: Option<u64>,
}

impl Finishes {
    /// A zone takes no more: it is finished when its batches are over. Whether that is new.
    pub(crate) fn want(&mut self, segment: LogSegmentId) -> bool {
        let is_new = !self.wanted.contains(&segment);
        if is_new {
            self.wanted.push(segment);
        }
        is_new
    }

    /// Whether a zone is being finished, or one of these has to be.
    pub(crate) fn waits(&self, of: impl Fn(LogSegmentId) -> bool) -> bool {
        self.under_way > 0 || self.wanted.iter().any(|wanted| of(*wanted))
    }

    /// The next zone whose batches are over, from a place in the list on: it is finished now.
    pub(crate) fn begin(
        &mut self,
        from: &mut usize,
        is_over: impl Fn(LogSegmentId) -> bool,
    ) -> Option<LogSegmentId> {
        while let Some(segment) = self.wanted.get(*from).copied() {
            if is_over(segment) {
                self.wanted.swap_remove(*from);
                self.under_way += 1;
                return Some(segment);
            }
            *from += 1;
        }
        None
    }

    /// A zone was finished, or could not be.
    pub(crate) fn end(&mut self) {
        self.under_way -= 1;
    }

    /// No zone of this use or a later one is begun; `None`: any is.
    pub(crate) const fn hold(&mut self, epoch: Option<u64>) {
        self.held = epoch;
    }

    /// The use from which on no zone is begun.
    pub(crate) const fn held(&self) -> Option<u64> {
        self.held
    }

    /// Whether a zone could be finished is noted: if it is to be tried `again`, that is later.
    pub(crate) fn note(&mut self, segment: LogSegmentId, again: bool, now: Nanos) {
        let known = self.later.iter().position(|(of, ..)| *of == segment);
        let failures = known.map_or(0, |at| self.later.swap_remove(at).2) + 1;
        if again {
            let pause = Nanos::new(1_000_000_000 << failures.min(6));
            self.later.push((segment, Some(now + pause), failures));
        }
    }

    /// The next zone that could not be finished and is due again: it is tried now.
    pub(crate) fn next_again(&mut self, now: Nanos) -> Option<LogSegmentId> {
        let is_due = |due: &Option<Nanos>| due.is_some_and(|due| due <= now);
        let (segment, due, _) = self.later.iter_mut().find(|(_, due, _)| is_due(due))?;
        *due = None;
        Some(*segment)
    }

    /// When a zone that could not be finished is tried next.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        self.later.iter().filter_map(|(_, due, _)| *due).min()
    }

    /// Whether a zone is being finished that could not be before.
    pub(crate) fn is_trying(&self, segment: LogSegmentId) -> bool {
        self.later.iter().any(|(later, due, _)| *later == segment && due.is_none())
    }

    /// A zone is reset, which makes it no longer active either.
    pub(crate) fn forget(&mut self, segment: LogSegmentId) {
        self.later.retain(|(later, ..)| *later != segment);
    }
}
