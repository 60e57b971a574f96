//! In what the modes `sung` and `han` differ.

use onefold_format::volume::VolumeMode;

/// What is cleaned at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All partitions, one after the other.
    All,
    /// One partition.
    Partition(usize),
}

/// What a mode decides about cleaning with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation<'a> {
    /// Blocks of free regions, all together.
    pub(crate) free_blocks: u64,
    /// The same after the last cleaning.
    pub(crate) free_after_cleaning: u64,
    /// Blocks of free regions below which cleaning is due (`Options::free_share`).
    pub(crate) free_wanted: u64,
    /// The partition that the last write left, if it was not looked at since.
    pub(crate) left: Option<usize>,
    /// A write waits for space, or cleaning was asked for.
    pub(crate) wanted: bool,
    /// The partition that is written.
    pub(crate) current: usize,
    /// Invalid / written blocks of a partition above which it is cleaned (`Options::clean_share`).
    pub(crate) clean_share: f64,
    /// Valid and invalid entries of each partition.
    pub(crate) counts: &'a [(u32, u32)],
    /// Invalid entries that the last cleaning of each partition left.
    pub(crate) holes_left: &'a [u32],
}

/// A mode.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) mode: VolumeMode,
    /// Logs or map files.
    pub(crate) files: u32,
    /// How many partitions there are; `None`: as many as fit.
    pub(crate) partitions: Option<u32>,
    /// A copy of the table serves reads while a partition is cleaned.
    pub(crate) temporary_table: bool,
    /// What to clean now.
    pub(crate) choose: fn(&Situation<'_>) -> Option<Scope>,
}

impl Rules {
    /// The log or map file for what is written to a partition.
    pub(crate) fn file_of(&self, partition: usize) -> u32 {
        if self.files == 1 { 0 } else { onefold_units::convert::u32_from(partition) }
    }
}
