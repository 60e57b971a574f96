//! Why an FTL configuration cannot work.

/// Why an FTL configuration cannot work.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A share is outside its range.
    #[error("{key} is {value}, expected {min} to {max}")]
    Share {
        /// Configuration key.
        key: &'static str,
        /// What was found.
        value: f64,
        /// Smallest accepted value.
        min: f64,
        /// Largest accepted value.
        max: f64,
    },
    /// A count is outside its range.
    #[error("{key} is {value}, expected {min} to {max}")]
    Count {
        /// Configuration key.
        key: &'static str,
        /// What was found.
        value: u64,
        /// Smallest accepted value.
        min: u64,
        /// Largest accepted value.
        max: u64,
    },
    /// The reserve and the logical capacity do not fit the flash.
    #[error(
        "capacity.logical{} is {logical} B, but {usable} B of flash are usable beside the reserve of \
         {reserve} superblocks per pool (of {superblocks}): lower capacity.logical{} or ftl.gc_start, \
         add geometry.blocks, or make superblocks smaller with geometry.pages",
        with_snapshots(*snapshots, " with capacity.snapshots"), with_snapshots(*snapshots, ", capacity.snapshots")
    )]
    NoSpace {
        /// Logical capacity in bytes, that for snapshots included.
        logical: u64,
        /// Bytes of it for snapshots.
        snapshots: u64,
        /// Usable bytes.
        usable: u64,
        /// Superblocks kept free or open per pool.
        reserve: u64,
        /// Superblocks per pool.
        superblocks: u64,
    },
    /// The paper's rules know one slot per program only.
    #[error(
        "ftl.remap_mode = \"paper\" needs a mapping unit as large as a flash page, but {slots} units \
         are programmed together: set ftl.indirection to the page size, or use \"default\""
    )]
    PaperProgram {
        /// Mapping units programmed together.
        slots: u32,
    },
    /// The index of deduplication is larger than memory.
    #[error(
        "dedup.fingerprints is {entries}: they need {bytes} B of memory, more than there is: lower \
         dedup.fingerprints"
    )]
    FingerprintMemory {
        /// Contents to remember.
        entries: u32,
        /// Bytes of their table.
        bytes: u64,
    },
    /// Metadata leaves no room for data.
    #[error(
        "a superblock of {slots} mapping units has no room for data beside its head and tail \
         pages: use more geometry.pages, or ftl.metadata = \"oob\""
    )]
    NoDataSlots {
        /// Slots per superblock.
        slots: u32,
    },
}

/// What an error says if part of the capacity is for snapshots.
const fn with_snapshots(snapshots: u64, text: &'static str) -> &'static str {
    if snapshots > 0 { text } else { "" }
}
