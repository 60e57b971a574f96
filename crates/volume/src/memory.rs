//! Memory of the tables of the modes `sung` and `han` (volume.md, section 3, V12).

/// Memory of all tables, the temporary one included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Entries that are searched.
    pub valid_entries: u64,
    /// Entries of overwritten and trimmed blocks, kept until they are cleaned.
    pub invalid_entries: u64,
    /// Bytes as the papers count: 12 for each entry in memory, no tree around them.
    pub paper_bytes: u64,
    /// Bytes that tables take, spare room included.
    pub real_bytes: u64,
    /// The most that `paper_bytes` was since the volume was opened.
    pub peak_paper_bytes: u64,
    /// The most that tables, changes that are not committed, and arrays of the cleaner took since the volume was opened.
    pub peak_real_bytes: u64,
}
