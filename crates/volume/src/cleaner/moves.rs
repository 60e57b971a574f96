//! Blocks that are being moved.

use super::walk::Found;
use crate::io::Buffer;
use crate::limits::BLOCK;

/// Blocks that are being read, or wait to be appended. There is at least one.
#[derive(Debug)]
pub(crate) struct Move {
    blocks: Vec<Found>,
    /// Blocks that were appended.
    done: usize,
    buffer: Buffer,
    /// They were read before, with others.
    again: bool,
    /// The read failed.
    lost: bool,
}

impl Move {
    pub(super) fn new(blocks: Vec<Found>, again: bool) -> Self {
        Self { blocks, done: 0, buffer: Buffer::default(), again, lost: false }
    }

    /// All of its blocks.
    pub(crate) fn blocks(&self) -> &[Found] {
        &self.blocks
    }

    /// The same, to be read anew.
    pub(crate) fn into_blocks(self) -> Vec<Found> {
        self.blocks
    }

    /// Whether its blocks were read before, with others.
    pub(crate) const fn is_again(&self) -> bool {
        self.again
    }

    /// Its blocks were read, unless they are lost.
    pub(crate) fn fill(&mut self, buffer: Buffer, lost: bool) {
        (self.buffer, self.lost) = (buffer, lost);
    }

    /// Whether its blocks could not be read.
    pub(crate) const fn is_lost(&self) -> bool {
        self.lost
    }

    /// The next block to append.
    pub(crate) fn next(&self) -> Option<Found> {
        self.blocks.get(self.done).copied()
    }

    /// The bytes of the next block.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        self.buffer.bytes().get(self.done * BLOCK..(self.done + 1) * BLOCK)
    }

    /// The next block was appended, or is live no more.
    pub(crate) const fn pass(&mut self) {
        self.done += 1;
    }
}
