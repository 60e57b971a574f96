//! How a zoned volume is run, and the constants of dm-zoned (zoned.md, section 3).

use std::ops::Range;

use onefold_units::Nanos;

/// A device without requests for that long is idle.
pub const IDLE: Nanos = Nanos::new(10_000_000_000);

/// Metadata is flushed at least that often.
pub const FLUSH_PERIOD: Nanos = Nanos::new(10_000_000_000);

/// Longest sleep of a request that waits for reclaim or a free zone.
pub const WAIT: Nanos = Nanos::new(1_000_000_000);

/// Percentage of free cache zones up to which reclaim runs although the device is busy. The kernel target also has 50 %, from
/// which on it does not run; as it does not run in between either, that changes nothing.
pub const LOW_PERCENT: u32 = 30;

/// How long a volume that was opened keeps journal zones whose journal is not found (zoned.md, section 5).
pub(crate) const QUIET: Nanos = Nanos::new(60_000_000_000);

/// What becomes of the journal of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalMode {
    /// Nothing.
    #[default]
    Off,
    /// Its chunk is pinned to a conventional zone that reclaim leaves alone (Choi 2022; zoned.md, section 4).
    One,
    /// All of it lies in a journal zone set (zoned.md, section 5): its blocks are appended to sequential zones, or lie in pinned
    /// chunks as with `One`, where there are no zones or while the cache has room. It loses them when it is elsewhere or gone.
    Set,
}

impl JournalMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Off, Self::One, Self::Set];

    /// Stable name for configuration and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::One => "one",
            Self::Set => "set",
        }
    }
}

/// How a volume is run. None of it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Flushes and reuses zones in the kernel's order, and leaves FUA to the devices: that loses acknowledged data at power cuts. For
    /// the simulator only.
    pub kernel_flush: bool,
    /// What becomes of the journal.
    pub journal: JournalMode,
    /// Blocks of 4 KiB where the journal lies, in order and apart: its writes and copies are counted apart.
    pub journal_ranges: Vec<Range<u64>>,
    /// Those of them that are rewritten at any time, in order and apart: headers and fast-commit areas. The others are rings.
    pub journal_hot: Vec<Range<u64>>,
    /// Blocks that reclaim copies at once, at least one.
    pub copy_blocks: u32,
    /// Whether requests carry bytes. Without them only placement is simulated.
    pub bytes: bool,
    /// Opens a volume whose zones hold less than its metadata says, or whose metadata is damaged; what is missing, or not known,
    /// reads as zeroes from then on.
    pub give_up_lost: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kernel_flush: false,
            journal: JournalMode::Off,
            journal_ranges: Vec::new(),
            journal_hot: Vec::new(),
            copy_blocks: 128,
            bytes: true,
            give_up_lost: false,
        }
    }
}
