//! Slices: blocks of runs with records of map pages that are being read.

use std::ops::RangeInclusive;

use onefold_format::volume::{RunBlock, RunRecord};
use onefold_units::{Lba, Location};

use crate::map::Map;
use crate::map::runs::Run;

/// A block of a run.
#[derive(Debug)]
pub(crate) struct Slice {
    run: u64,
    pub(crate) members: u64,
    pub(crate) counted: bool,
    pub(crate) at: Location,
    /// The pages that may have records in it, as members count them.
    pub(crate) pages: RangeInclusive<usize>,
    pub(crate) records: Vec<RunRecord>,
    pub(crate) failed: bool,
}

impl Slice {
    /// The blocks of a run that may have records of pages, which ascend.
    pub(crate) fn of_run<'a>(run: &'a Run, pages: &'a [usize]) -> impl Iterator<Item = Self> + 'a {
        let ends = pages.first().zip(pages.last());
        let blocks = ends.map_or(0..0, |(first, last)| run.blocks_of(*first..=*last));
        let slice = |block| {
            let range = run.pages_of(block);
            let next = pages[pages.partition_point(|page| page < range.start())..].first()?;
            let Run { number, members, counted, .. } = *run;
            range.contains(next).then(|| Self {
                run: number,
                members,
                counted,
                at: run.blocks[block],
                pages: range,
                records: Vec::new(),
                failed: false,
            })
        };
        blocks.filter_map(slice)
    }

    /// Takes the bytes of the block; none if it could not be read.
    pub(crate) fn take(&mut self, uuid: &[u8; 16], at: Location, bytes: &[u8]) {
        match RunBlock::decode(bytes, uuid, at.raw().into()) {
            Ok(block) if block.run == self.run => self.records = block.records,
            _ => self.failed = true,
        }
    }
}

impl Run {
    /// The blocks that may have records of pages.
    fn blocks_of(&self, pages: RangeInclusive<usize>) -> std::ops::Range<usize> {
        let page_of = |lba: &u64| Map::place(Lba::new(*lba)).0;
        // Its first page may be one in the middle of whose records a block ends.
        let from = self.index.partition_point(|lba| page_of(lba) < *pages.start());
        let to = self.index.partition_point(|lba| page_of(lba) <= *pages.end());
        from.saturating_sub(1).min(to)..to
    }

    /// The pages that a block may have records of.
    fn pages_of(&self, block: usize) -> RangeInclusive<usize> {
        let page_of = |lba: u64| Map::place(Lba::new(lba)).0;
        let last =
            self.index.get(block + 1).map_or(usize::MAX, |next| page_of(next.saturating_sub(1)));
        page_of(self.index[block])..=last
    }
}
