//! What a database on a device asks of it.

use std::io;

use onefold_format::VectorRange;

/// A disk of blocks, past every cache. Buffers and offsets are multiples of a block.
pub(crate) trait Blocks {
    /// Size.
    fn bytes(&self) -> u64;
    /// Fills `buffer`.
    fn read(&self, buffer: &mut [u8], at: u64) -> io::Result<()>;
    /// Writes all of `bytes`.
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Makes durable what was written.
    fn sync(&self) -> io::Result<()>;
    /// Lets targets hold what sources hold. Ranges are in blocks; durable when it returns.
    fn remap(&self, ranges: &[VectorRange]) -> io::Result<()>;
    /// Whether a target has the content of its source, as the control export sees them.
    fn is_equal(&self, range: VectorRange) -> io::Result<bool>;
}
