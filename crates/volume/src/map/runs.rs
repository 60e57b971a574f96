//! Runs: what changed between two checkpoints, sorted by block.
//!
//! 1. Runs are numbered in the order of their checkpoints. A newer record of a block beats an older one, and the image of
//!    its page.
//! 2. The live counts include what the records of a counted run replaced. Recovery makes a run without reading the map, so
//!    it cannot know what was replaced: the counts are too high until each page of that run was read once.
//! 3. A run belongs to the member whose changes it has, and to those that were made of it later. It has pages and LBAs as
//!    each member counts them.
//! 4. A run is dropped when each page it has records of was written after it (`crate::checkpoint`). What it has of one that
//!    cannot be read goes to a new run before.
//! 5. Runs are dropped oldest first: all that are left are applied to an image, however new that is, so an old record must not
//!    be left without the newer ones that its page has an image of.

use onefold_units::Location;

/// A run on the backing.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) number: u64,
    /// The members whose maps it changes, one bit for the place of each.
    pub(crate) members: u64,
    pub(crate) records: u64,
    /// Invariant 2.
    pub(crate) counted: bool,
    /// Blocks with records, then blocks of the index.
    pub(crate) blocks: Vec<Location>,
    /// First block of the exported device in each block with records.
    pub(crate) index: Vec<u64>,
    /// Where the sweep over the map was when the run was made.
    pub(crate) swept: u64,
}

impl Run {
    /// Whether each page that it has records of has an image that is as new or newer, when the sweep over so many pages has passed `swept`
    /// (`crate::checkpoint`, invariant 3).
    pub(crate) const fn is_swept(&self, swept: u64, pages: u64) -> bool {
        self.counted && swept >= self.swept + pages
    }
}

/// The runs that count, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    pub(crate) list: Vec<Run>,
    pub(crate) next_number: u64,
}

impl Runs {
    /// Whether the live counts are exact (invariant 2).
    pub(crate) fn all_counted(&self) -> bool {
        self.list.iter().all(|run| run.counted)
    }
}
