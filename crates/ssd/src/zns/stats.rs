//! What a zoned namespace counts.

use onefold_ftl::FtlStats;
use onefold_nand::SlowCounts;
use onefold_units::{Cause, CauseCounts};

/// What a zoned namespace did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZnsStats {
    /// Blocks programmed by cause.
    pub programs: CauseCounts,
    /// Blocks read from flash by cause.
    pub reads: CauseCounts,
    /// Superblocks erased.
    pub erases: u64,
    /// Zones reset that were not empty.
    pub resets: u64,
    /// Zones finished that were not full.
    pub finishes: u64,
    /// Zones opened by commands, and by writes.
    pub opens: [u64; 2],
    /// Zones closed to open another one.
    pub implicit_closes: u64,
    /// Appends; they are among the writes of the host as well.
    pub appends: u64,
    /// Zones moved to other blocks.
    pub moves: u64,
    /// Blocks that could not be read.
    pub media_failures: u64,
    /// Reads that needed retries, and programs that needed more pulses.
    pub slow: SlowCounts,
    /// What was done behind conventional zones, which is in the sums above as well.
    pub conventional: FtlStats,
}

impl ZnsStats {
    /// The same with what was done behind conventional zones.
    #[must_use]
    pub(crate) fn with_conventional(mut self, mapped: FtlStats) -> Self {
        for cause in Cause::ALL {
            self.programs.add(cause, mapped.programs.of(cause));
            self.reads.add(cause, mapped.reads.of(cause));
        }
        self.erases += mapped.erases;
        self.media_failures += mapped.media_failures;
        self.slow.reads += mapped.slow.reads;
        self.slow.programs += mapped.slow.programs;
        Self { conventional: mapped, ..self }
    }

    /// What was counted since `earlier`, an older state of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            programs: self.programs.since(&earlier.programs),
            reads: self.reads.since(&earlier.reads),
            erases: self.erases - earlier.erases,
            resets: self.resets - earlier.resets,
            finishes: self.finishes - earlier.finishes,
            opens: [self.opens[0] - earlier.opens[0], self.opens[1] - earlier.opens[1]],
            implicit_closes: self.implicit_closes - earlier.implicit_closes,
            appends: self.appends - earlier.appends,
            moves: self.moves - earlier.moves,
            media_failures: self.media_failures - earlier.media_failures,
            slow: self.slow.since(&earlier.slow),
            conventional: self.conventional.since(&earlier.conventional),
        }
    }
}
