//! What a read of the host has to get from the backing.

use onefold_format::checksum;
use onefold_units::Location;
use onefold_units::convert::index;

use crate::log::BLOCK;

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

/// What a read has to get from the backing.
#[derive(Clone, Debug, Default)]
pub struct ReadPlan {
    pub(crate) runs: Vec<ReadRun>,
    /// Checksums of all blocks of the runs, in order; none where reads are not checked.
    pub(crate) sums: Vec<u32>,
}

impl ReadPlan {
    /// What to read.
    #[must_use]
    pub fn runs(&self) -> &[ReadRun] {
        &self.runs
    }

    /// The blocks of the request whose bytes in `buffer` are not those that were written; none where reads are not
    /// checked ([`crate::Options::verify`]).
    pub fn damaged<'a>(&'a self, buffer: &'a [u8]) -> impl Iterator<Item = u32> + 'a {
        let blocks = self.runs.iter().flat_map(|run| run.block..run.block + run.blocks);
        blocks.zip(&self.sums).filter_map(|(block, sum)| {
            let bytes = &buffer[index(block) * BLOCK..index(block + 1) * BLOCK];
            (checksum(bytes) != *sum).then_some(block)
        })
    }

    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.sums.clear();
    }

    /// Adds a block. Log segments begin at multiples of `stride`; a run stays within one.
    pub(crate) fn push(&mut self, block: u32, at: Location, stride: u32) {
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
