//! What a read of the host has to get from the backing.

use onefold_format::checksum;
use onefold_format::volume::Slot;
use onefold_units::Location;
use onefold_units::convert::index;

use crate::limits::BLOCK;
use crate::packs::unpack;

/// Blocks that lie side by side on the backing and in the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRun {
    /// First block of the run, counted from the start of the request.
    pub block: u32,
    /// Where it lies.
    pub at: Location,
    /// Blocks.
    pub blocks: u32,
}

/// A block of a request.
fn block_of(buffer: &mut [u8], block: u32) -> &mut [u8] {
    &mut buffer[index(block) * BLOCK..index(block + 1) * BLOCK]
}

/// What a read has to get from the backing.
#[derive(Clone, Debug, Default)]
pub struct ReadPlan {
    pub(crate) runs: Vec<ReadRun>,
    /// Checksums of all blocks of the runs, in order; none where reads are not checked.
    pub(crate) sums: Vec<u32>,
    /// Blocks of the request that are in packs: what is read for each is the block of the backing with its pack.
    pub(crate) packed: Vec<(u32, Slot)>,
}

impl ReadPlan {
    /// What to read.
    #[must_use]
    pub fn runs(&self) -> &[ReadRun] {
        &self.runs
    }

    /// Unpacks what was read into `buffer`, once. Says which blocks of the request are not what was written: those that cannot be
    /// unpacked, and where reads are checked ([`crate::Options::verify`]) those whose checksum is wrong.
    #[must_use]
    pub fn complete(&self, buffer: &mut [u8]) -> Vec<u32> {
        let mut damaged = Vec::new();
        let mut unpacked = [0; BLOCK];
        for (block, slot) in &self.packed {
            let bytes = block_of(buffer, *block);
            if unpack(bytes, *slot, &mut unpacked) {
                bytes.copy_from_slice(&unpacked);
            } else {
                damaged.push(*block);
            }
        }
        let blocks = self.runs.iter().flat_map(|run| run.block..run.block + run.blocks);
        for (block, sum) in blocks.zip(&self.sums) {
            if checksum(block_of(buffer, block)) != *sum && !damaged.contains(&block) {
                damaged.push(block);
            }
        }
        damaged
    }

    /// Empties the plan, to make another one.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.sums.clear();
        self.packed.clear();
    }

    /// Adds block `block` of the request, which lies at `at`. A run stays between multiples of `stride`, where log segments
    /// begin; with 0 it may be of any length.
    pub fn push(&mut self, block: u32, at: Location, stride: u32) {
        if let Some(last) = self.runs.last_mut()
            && last.block + last.blocks == block
            && last.at.raw() + last.blocks == at.raw()
            && !at.raw().is_multiple_of(stride)
        {
            last.blocks += 1;
            return;
        }
        self.runs.push(ReadRun { block, at, blocks: 1 });
    }
}
