//! One log segment.

use onefold_format::volume::{QUARTERS, SegmentState};
use onefold_units::Nanos;

use crate::limits::STRIKES_MAX;
use crate::log::Stream;

/// Errors of the backing in a log segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errors {
    /// A write failed there: what it holds moves out (`crate::volume::log::suspects`).
    pub(crate) failed: bool,
    /// Times that a write failed there.
    pub(crate) strikes: u8,
    /// Times in a row that it could not be cleaned, and until when it is not tried again (`crate::cleaner`, invariant 4).
    pub(crate) holds: u8,
    pub(crate) held_until: Nanos,
    /// More may count as live than is (`crate::volume::map::doubts`).
    pub(crate) doubtful: bool,
}

impl Errors {
    pub(crate) const NONE: Self =
        Self { failed: false, strikes: 0, holds: 0, held_until: Nanos::ZERO, doubtful: false };

    /// Of one that was retired and is tried once more.
    pub(crate) const RETIRED: Self = Self { failed: true, strikes: STRIKES_MAX - 1, ..Self::NONE };
}

/// One log segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) state: SegmentState,
    pub(crate) stream: Stream,
    /// What the map or a root points at, in quarters of blocks; an upper bound until recovery has read the whole map.
    pub(crate) quarters: u32,
    /// Number of this use among all uses of log segments in the life of the volume.
    pub(crate) epoch: u64,
    /// Reads and writes under way.
    pub(crate) pins: u32,
    /// The last root names it among those that may be taken (invariant 2).
    pub(crate) listed: bool,
    pub(crate) errors: Errors,
    /// The backing is about to lose it: it is never taken again.
    pub(crate) leaving: bool,
    /// It is a zone that is offline: what was there is gone.
    pub(crate) gone: bool,
    /// Of one of the journal set: how far its stream was when it was left (`crate::log::journal`).
    pub(crate) mark: u64,
}

impl Segment {
    pub(crate) const FREE: Self = Self {
        state: SegmentState::Free,
        stream: Stream::User,
        quarters: 0,
        epoch: 0,
        pins: 0,
        listed: false,
        errors: Errors::NONE,
        leaving: false,
        gone: false,
        mark: 0,
    };

    /// Blocks that the map or a root points at.
    pub(crate) const fn live(&self) -> u32 {
        self.quarters.div_ceil(QUARTERS)
    }

    /// Whether all that it holds has to move out.
    pub(crate) const fn has_to_go(&self) -> bool {
        self.leaving || self.errors.failed
    }

    /// Whether it holds data that the cleaner can move now.
    pub(crate) fn is_movable(&self, now: Nanos) -> bool {
        self.is_data() && self.pins == 0 && self.quarters > 0 && self.errors.held_until <= now
    }

    /// Whether it holds data, and is not being filled.
    pub(crate) fn is_data(&self) -> bool {
        self.state == SegmentState::Closed && self.stream != Stream::Meta
    }

    /// Its state as a root says it: one in which a write failed is known as such when the volume is opened again.
    pub(crate) fn state_on_disk(&self) -> SegmentState {
        let failed = self.errors.failed && self.state == SegmentState::Closed;
        if failed { SegmentState::Suspect } else { self.state }
    }

    /// Whether it is closed, and no write failed there.
    pub(crate) fn is_sound(&self) -> bool {
        self.state == SegmentState::Closed && !self.errors.failed
    }

    pub(crate) fn is_empty_closed(&self) -> bool {
        self.state == SegmentState::Closed && self.quarters == 0
    }
}
