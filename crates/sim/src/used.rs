//! A drive that was used before.

use onefold_nand::NullMedia;
use onefold_ssd::Ssd;

/// Puts a block of 4 KiB into a buffer, by its number. Whether it can be read.
pub type ReadBlock = Box<dyn FnMut(u64, &mut [u8]) -> bool>;

/// A drive in the state of an image, to which a run is done.
pub struct Used {
    /// The drive, which knows where everything is.
    pub ssd: Ssd<NullMedia>,
    /// What it holds: the volume on it, if there is one, reads its label, its map and the headers of its log.
    pub read: ReadBlock,
}
