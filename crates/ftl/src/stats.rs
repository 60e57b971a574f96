//! What the FTL counted, and how its flash is divided.

use onefold_nand::SlowCounts;
use onefold_units::{Cause, CauseCounts};

/// Counters since the device was built, in 4 KiB pages unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FtlStats {
    /// Pages programmed, by cause.
    pub programs: CauseCounts,
    /// Pages read from flash, by cause: `user`, `gc`, `wear`, `metadata` (translation pages, tails,
    /// the table of snapshots),
    /// `padding` (old data of a read-modify-write).
    pub reads: CauseCounts,
    /// Superblock erases.
    pub erases: u64,
    /// Flash reads and programs that failed.
    pub media_failures: u64,
    /// Reads that needed retries, and programs that needed more pulses.
    pub slow: SlowCounts,
    /// Superblocks emptied because a read of them needed retries or failed ([`FtlConfig::relocate`](crate::FtlConfig)).
    pub relocated: u64,
    /// Map-cache hits.
    pub map_hits: u64,
    /// Map-cache misses.
    pub map_misses: u64,
    /// Checkpoints committed.
    pub checkpoints: u64,
    /// Records appended to the trim log.
    pub trim_records: u64,
    /// Pages written without a program.
    pub saved: SavedPages,
}

onefold_units::keep!(FtlStats {
    programs,
    reads,
    erases,
    media_failures,
    slow,
    relocated,
    map_hits,
    map_misses,
    checkpoints,
    trim_records,
    saved
});

impl FtlStats {
    /// What was counted since `earlier`, an older state of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            programs: self.programs.since(&earlier.programs),
            reads: self.reads.since(&earlier.reads),
            erases: self.erases - earlier.erases,
            media_failures: self.media_failures - earlier.media_failures,
            slow: self.slow.since(&earlier.slow),
            relocated: self.relocated - earlier.relocated,
            map_hits: self.map_hits - earlier.map_hits,
            map_misses: self.map_misses - earlier.map_misses,
            checkpoints: self.checkpoints - earlier.checkpoints,
            trim_records: self.trim_records - earlier.trim_records,
            saved: self.saved.since(&earlier.saved),
        }
    }

    /// Pages moved or written inside the device, beyond what the host asked for.
    #[must_use]
    pub fn internal_pages(&self) -> u64 {
        self.programs.total() - self.programs.of(Cause::User)
    }
}

/// What superblocks of data hold, in 4 KiB pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Pages with the current content of a logical page, or of several that share it.
    pub valid_pages: u64,
    /// Pages of full superblocks without such a content: what collection can reclaim.
    pub stale_pages: u64,
}

onefold_units::keep!(Held { valid_pages, stale_pages });

/// 4 KiB pages of units that the host wrote and that were not programmed, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedPages {
    /// They share a page that the host had read: copies.
    pub copy_read: u64,
    /// They share a page that the host had written, and not read since.
    pub copy_write: u64,
    /// They were all zeroes and are unmapped instead.
    pub zero: u64,
}

onefold_units::keep!(SavedPages { copy_read, copy_write, zero });

impl SavedPages {
    /// What was counted since `earlier`, an older state of the same counters.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            copy_read: self.copy_read - earlier.copy_read,
            copy_write: self.copy_write - earlier.copy_write,
            zero: self.zero - earlier.zero,
        }
    }

    /// What two devices counted.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            copy_read: self.copy_read + other.copy_read,
            copy_write: self.copy_write + other.copy_write,
            zero: self.zero + other.zero,
        }
    }

    /// By name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let Self { copy_read, copy_write, zero } = *self;
        [("copy_read", copy_read), ("copy_write", copy_write), ("zero", zero)].into_iter()
    }

    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.copy_read + self.copy_write + self.zero
    }
}

/// A die that failed, and what was lost with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedDie {
    /// Which.
    pub die: u32,
    /// 4 KiB pages of the host and of snapshots that lie on it.
    pub lost_pages: u64,
}

/// The device's map of its flash (ssd.md 1.1 and 3.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpaceMap {
    /// Superblocks of the array.
    pub superblocks: u32,
    /// Superblocks out of use.
    pub bad_superblocks: u32,
    /// Superblocks that collection keeps free, over all pools.
    pub reserve_superblocks: u32,
    /// Superblocks that hold checkpoints now.
    pub checkpoint_superblocks: u32,
    /// Superblocks that hold the remap log now.
    pub log_superblocks: u32,
    /// Slots of a superblock.
    pub slots: u32,
    /// Slots of a superblock that hold data.
    pub data_slots: u32,
    /// T: 4 KiB pages that hold data in the steady state, without reserved ones.
    pub usable_pages: u64,
    /// U: 4 KiB pages of the logical space (translation pages included, if any).
    pub logical_pages: u64,
    /// U / T.
    pub rho: f64,
}

/// Wear of the device, in erases per superblock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wear {
    /// Fewest.
    pub min: u32,
    /// Mean.
    pub mean: f64,
    /// Most.
    pub max: u32,
}
