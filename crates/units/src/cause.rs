//! Why a page was programmed (design.md, contract 3).

/// Why flash was programmed. Every programmed page has exactly one cause; write amplification is
/// computed from them and never counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Cause {
    /// Data the host wrote, whether or not it waited in the buffer.
    #[default]
    User,
    /// A valid page moved by garbage collection.
    Gc,
    /// A remap-log page.
    Rmm,
    /// A remap-log page moved by its own collection.
    RmmGc,
    /// A shared page given its own copy.
    Unshare,
    /// A remap executed as a copy.
    Fallback,
    /// A page of an L2P checkpoint.
    Checkpoint,
    /// Head pages, tail pages, translation pages and the table of snapshots.
    Metadata,
    /// Fill of a flash page or an indirection unit, including old data carried along by a
    /// read-modify-write, and programs of data that failed.
    Padding,
    /// A page moved by static wear levelling.
    Wear,
}

crate::keep_enum!(Cause {
    User,
    Gc,
    Rmm,
    RmmGc,
    Unshare,
    Fallback,
    Checkpoint,
    Metadata,
    Padding,
    Wear
});

impl Cause {
    /// Every cause, in report order.
    pub const ALL: [Self; 10] = [
        Self::User,
        Self::Gc,
        Self::Rmm,
        Self::RmmGc,
        Self::Unshare,
        Self::Fallback,
        Self::Checkpoint,
        Self::Metadata,
        Self::Padding,
        Self::Wear,
    ];

    /// Stable name in results and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Gc => "gc",
            Self::Rmm => "rmm",
            Self::RmmGc => "rmm_gc",
            Self::Unshare => "unshare",
            Self::Fallback => "fallback",
            Self::Checkpoint => "checkpoint",
            Self::Metadata => "metadata",
            Self::Padding => "padding",
            Self::Wear => "wear",
        }
    }

    const fn slot(self) -> usize {
        match self {
            Self::User => 0,
            Self::Gc => 1,
            Self::Rmm => 2,
            Self::RmmGc => 3,
            Self::Unshare => 4,
            Self::Fallback => 5,
            Self::Checkpoint => 6,
            Self::Metadata => 7,
            Self::Padding => 8,
            Self::Wear => 9,
        }
    }
}

/// One counter per [`Cause`], in 4 KiB pages unless its owner says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CauseCounts([u64; 10]);

crate::keep!(CauseCounts(counts));

impl CauseCounts {
    /// Adds `pages` to one cause.
    pub fn add(&mut self, cause: Cause, pages: u64) {
        self.0[cause.slot()] += pages;
    }

    /// The count of one cause.
    #[must_use]
    pub fn of(&self, cause: Cause) -> u64 {
        self.0[cause.slot()]
    }

    /// The sum over all causes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// What was counted since `earlier`, an older state of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut delta = *self;
        for (now, before) in delta.0.iter_mut().zip(earlier.0) {
            *now -= before;
        }
        delta
    }

    /// Every cause with its count, in report order.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        Cause::ALL.into_iter().map(|cause| (cause, self.of(cause)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, CauseCounts};

    #[test]
    fn each_cause_has_its_own_counter() {
        let mut counts = CauseCounts::default();
        for (n, cause) in (1..).zip(Cause::ALL) {
            counts.add(cause, n);
        }
        let listed: Vec<u64> = counts.iter().map(|(_, n)| n).collect();
        assert_eq!(listed, (1..=10).collect::<Vec<u64>>());
        assert_eq!(counts.total(), 55);
    }
}
