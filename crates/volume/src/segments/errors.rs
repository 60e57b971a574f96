//! Log segments in which the backing fails: those that are emptied because a write failed (`crate::volume::log::suspects`), and those that could not
//! be emptied because reads do (`crate::cleaner`, invariant 4).

use onefold_format::volume::SegmentState;
use onefold_units::convert::u32_from;
use onefold_units::{LogSegmentId, Nanos};

use super::{Errors, Segments};

/// How long a log segment that could not be cleaned is left alone, the first time and at most.
const HOLD_MIN: Nanos = Nanos::new(5_000_000_000);

const HOLD_MAX: Nanos = Nanos::new(60_000_000_000);

impl Segments {
    /// The batches of a log segment in which a write failed are elsewhere: what else it holds moves out.
    pub(crate) fn empty_out(&mut self, id: LogSegmentId) {
        let segment = self.of_mut(id);
        segment.state = SegmentState::Closed;
        segment.errors.failed = true;
        self.leaves = true;
        self.empty += u32::from(self.of(id).is_empty_closed());
    }

    /// A batch was written: log segments that failed before failed by themselves.
    pub(crate) fn note_written(&mut self) {
        self.failing.clear();
    }

    /// How many failed, one after the other, since a batch was written last.
    pub(crate) fn failing(&self) -> u32 {
        u32_from(self.failing.len())
    }

    /// A write failed for good there: a strike against it, unless the backing as a whole failed (`crate::volume::log::suspects`, invariant 2).
    pub(crate) fn strike(&mut self, id: LogSegmentId) {
        match self.failing[..] {
            [] => self.of_mut(id).errors.strikes += 1,
            [first] => self.forgive(first),
            _ => {}
        }
        self.failing.push(id);
    }

    /// It was not the log segment that failed.
    fn forgive(&mut self, id: LogSegmentId) {
        let strikes = &mut self.of_mut(id).errors.strikes;
        *strikes = strikes.saturating_sub(1);
    }

    /// Log segments that are retired are free again, one strike short of being retired.
    pub(crate) fn try_retired(&mut self) {
        for id in std::mem::take(&mut self.retired) {
            // A resize may have taken it away.
            if self.table.get(id.index()).is_some_and(|of| of.state == SegmentState::Suspect) {
                self.of_mut(id).errors = Errors::RETIRED;
                self.freed(id);
            }
        }
    }

    /// Free zones that could not be reset: they are free when that is done ([`Segments::freed`]).
    pub(crate) fn keep_back(&mut self, ids: &[LogSegmentId]) {
        for id in ids {
            self.of_mut(*id).state = SegmentState::Prefree;
        }
        self.count_free();
    }

    /// Whether a write failed in some log segment, which was not given back since.
    pub(crate) fn any_failed(&self) -> bool {
        self.leaves && self.table.iter().any(|segment| segment.errors.failed)
    }

    /// A log segment could not be cleaned: it is not tried again for some time, which doubles each time.
    pub(crate) fn hold(&mut self, id: LogSegmentId, now: Nanos) {
        let segment = self.of_mut(id);
        let doubled = HOLD_MIN.get() << u32::from(segment.errors.holds).min(16);
        segment.errors.held_until = now + Nanos::new(doubled.min(HOLD_MAX.get()));
        segment.errors.holds = segment.errors.holds.saturating_add(1);
        if !self.held.contains(&id) {
            self.held.push(id);
        }
    }

    /// More may count as live in a log segment than is (`crate::volume::map::doubts`).
    pub(crate) fn doubt(&mut self, id: LogSegmentId) {
        self.of_mut(id).errors.doubtful = true;
        self.doubts = true;
    }

    /// Whether some log segment may be doubtful.
    pub(crate) const fn any_doubtful(&self) -> bool {
        self.doubts
    }

    /// No log segment is doubtful any more.
    pub(crate) fn forget_doubts(&mut self) {
        self.table.iter_mut().for_each(|segment| segment.errors.doubtful = false);
        self.doubts = false;
    }

    /// So many quarters are live in a log segment that is doubtful.
    pub(crate) fn correct(&mut self, id: LogSegmentId, live: u32) {
        let segment = self.of(id);
        if segment.errors.doubtful && segment.quarters > live {
            self.lose(id, segment.quarters - live);
        }
    }

    /// Nothing in a log segment is live, whatever counted.
    pub(crate) fn found_empty(&mut self, id: LogSegmentId) {
        self.of_mut(id).errors.doubtful = true;
        self.correct(id, 0);
        self.of_mut(id).errors.doubtful = false;
        self.release_held(id);
    }

    /// Whether some log segment could not be cleaned, and was not since.
    pub(crate) fn holds_some(&self) -> bool {
        !self.held.is_empty()
    }

    /// A log segment was cleaned, or is being used anew.
    pub(crate) fn release_held(&mut self, id: LogSegmentId) {
        self.held.retain(|held| *held != id);
        let segment = self.of_mut(id);
        (segment.errors.holds, segment.errors.held_until) = (0, Nanos::ZERO);
    }

    /// When the next one of those that could not be cleaned may be tried again.
    pub(crate) fn held_deadline(&self, now: Nanos) -> Option<Nanos> {
        self.held.iter().map(|id| self.of(*id).errors.held_until).filter(|until| *until > now).min()
    }
}
