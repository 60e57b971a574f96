//! Numbers that several parts know.

/// Free log segments that only checkpoints take.
pub(crate) const KEPT_FOR_META: u32 = 2;

/// Log segments that a root names as the next ones (volume.md, section 7).
pub(crate) const RESERVE_LIST: usize = 64;

/// Log segments that stay free beside those that the cleaner keeps free: those that streams fill, and two.
pub(crate) const SEGMENTS_SPARE: u32 = 6;

/// Strikes after which a log segment is not taken again.
pub(crate) const STRIKES_MAX: u8 = 3;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 4096;

/// Batches of the cleaner in memory at once, at most: 4 MiB.
pub(crate) const CLEAN_BATCHES_MAX: usize = 4;

/// Batches of checkpoints, likewise.
pub(crate) const META_BATCHES_MAX: usize = 4;

/// Batches that are not the host's.
pub(crate) const BATCHES_OWN: usize = CLEAN_BATCHES_MAX + META_BATCHES_MAX;

/// Most records of moved blocks that fit a header.
pub(crate) const CLEAN_RECORDS_MAX: u32 = 250;

/// The same with their places.
pub(crate) const PACKED_RECORDS_MAX: u32 = 222;

/// Fewest blocks of a batch: a header and a block.
pub(crate) const BATCH_MIN: u32 = 2;
