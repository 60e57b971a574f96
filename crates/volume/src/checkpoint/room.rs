//! How much of the log checkpoints take.
//!
//! What one takes has to be there when it begins, because log segments become free only when it counts. So log segments are kept
//! for it, and it sweeps over no more pages than have room: a root lists no more than [`crate::limits::RESERVE_LIST`] log segments, and the map of
//! a large volume that changed everywhere takes more.

use onefold_format::volume::{BODY_PAYLOAD_BYTES, SegmentEntry};
use onefold_units::convert::{index64, narrow, u64_from};

use crate::checkpoint::RUNS_IN_A_HURRY;
use crate::layout::Layout;

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

impl Layout {
    /// Most log segments that a checkpoint of so many members takes which sweeps over one page of all: they may be in another one that is not full
    /// when it begins.
    pub(crate) fn checkpoint_segments(&self, members: u64) -> u32 {
        let sweep = blocks_of_sweep(index64(members), index64(members));
        let blocks = members * RUN_MIN + sweep + BODY;
        narrow(blocks.div_ceil(self.full_blocks().into())) + 1
    }

    /// Blocks of a body that describe log segments.
    pub(crate) fn body_of_segments(&self) -> u64 {
        let bytes = u64::from(self.segments()) * u64_from(SegmentEntry::BYTES);
        bytes / u64_from(BODY_PAYLOAD_BYTES)
    }

    /// Log segments that the bodies of checkpoints are left in until a sweep in a hurry has come round twice. Beside the reserve that is nothing
    /// but where log segments are many and short: 78 blocks describe 20,000, and with every checkpoint they come once more.
    pub(crate) fn kept_for_bodies(&self) -> u32 {
        let blocks = 2 * RUNS_IN_A_HURRY * self.body_of_segments();
        narrow(blocks / u64::from(self.full_blocks()))
    }
}
