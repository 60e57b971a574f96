//! Blocks that are being moved.

use super::walk::Found;
use crate::io::Buffer;
use crate::limits::BLOCK;

/// Blocks that are being read, or wait to be appended. There is at least one.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) blocks: Vec<Found>,
    /// Blocks that were appended.
    pub(crate) done: usize,
    pub(crate) buffer: Buffer,
    /// They were read before, with others.
    pub(crate) again: bool,
    /// The read failed.
    pub(crate) lost: bool,
}

impl Move {
    /// The bytes of the next block.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        self.buffer.bytes().get(self.done * BLOCK..(self.done + 1) * BLOCK)
    }
}
