//! How much of the log checkpoints take.
//!
//! What one takes has to be there when it begins, because log segments become free only when it counts. So log segments are kept
//! for it, and it sweeps over no more pages than have room: a root lists no more than [`crate::limits::RESERVE_LIST`] log segments, and the map of
//! a large volume that changed everywhere takes more.

use onefold_units::convert::u64_from;

/// Blocks that a run takes at least: records and their index.
pub(crate) const RUN_MIN: u64 = 2;

/// Blocks of the image of a map page: the page and its checksums.
pub(crate) const IMAGE: u64 = 2;

/// Blocks of a body that describes few log segments and runs, twice.
pub(crate) const BODY: u64 = 16;

/// Blocks that a sweep takes for so many images of so many pages of members. Each page may lie in another block of its directory.
pub(crate) fn blocks_of_sweep(images: usize, pages: usize) -> u64 {
    IMAGE * u64_from(images) + u64_from(pages)
}
