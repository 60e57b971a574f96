//! Reading map pages when they are first needed, or before.
//!
//! A page is made from its image and from its slice of each run, oldest first (`crate::map`, invariant 1). Pages that are
//! asked for together are read together: what lies side by side is one request, and a block of a run is read once for all
//! pages that have records in it.
//!
//! Pages that nobody waits for are read in the background: few of their requests are asked for at a time, so that a page that
//! somebody needs is read before the others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use onefold_format::volume::RunRecord;
use onefold_units::{Location, Nanos};

use crate::map::images::Image;
use crate::map::slices::Slice;

/// Blocks that are read at once, at most: 1 MiB.
pub(crate) const READ_BLOCKS_MAX: u32 = 256;

/// Blocks that are being read in the background, at most, before more are asked for: 8 MiB.
pub(crate) const BACKGROUND_BLOCKS: u32 = 2048;

/// How long a page that cannot be read is an error for the host, and how long it is one for all others at most: until it is read again.
pub(crate) const DAMAGED_MIN: Nanos = Nanos::new(1_000_000_000);

pub(crate) const DAMAGED_MAX: Nanos = Nanos::new(60_000_000_000);

pub(crate) fn damaged_until(since: Nanos, failures: u32) -> Nanos {
    let doubled = DAMAGED_MIN.get() << (failures - 1).min(16);
    since + Nanos::new(doubled.min(DAMAGED_MAX.get()))
}

/// Pages that are read together.
#[derive(Debug)]
pub(crate) struct Load {
    /// By key, ascending.
    pub(crate) images: Vec<Image>,
    /// Oldest run first.
    pub(crate) slices: Vec<Slice>,
    /// Blocks that are not there yet.
    pub(crate) missing: usize,
}

/// What a block is for, by place in its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Page(usize),
    Sums(usize),
    Slice(usize),
}

/// A request: the load it is for, and its blocks, ascending.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) load: u64,
    pub(crate) parts: Vec<(Location, Part)>,
    pub(crate) background: bool,
}

impl Read {
    pub(crate) fn first(&self) -> Location {
        self.parts[0].0
    }

    /// Blocks from the first to the last.
    pub(crate) fn blocks(&self) -> u32 {
        self.parts.last().map_or(1, |(at, _)| at.raw() - self.first().raw() + 1)
    }
}

/// What is being read.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) keys: BTreeSet<usize>,
    pub(crate) loads: BTreeMap<u64, Load>,
    pub(crate) reads: BTreeMap<u64, Read>,
    /// Reads in the background that were not asked for yet, and how many are under way, with how many blocks.
    pub(crate) waiting: VecDeque<u64>,
    pub(crate) requests: u32,
    pub(crate) blocks: u32,
    /// What runs have of pages that could not be read, by key.
    pub(crate) told: BTreeMap<usize, Vec<RunRecord>>,
    /// Pages that could not be read: when each was read last, and how often.
    pub(crate) damaged: BTreeMap<usize, (Nanos, u32)>,
    /// The next load or read.
    pub(crate) next: u64,
}

impl Faults {
    /// Whether a page of a member is being read.
    pub(crate) fn reads(&self, keys: Range<usize>) -> bool {
        self.keys.range(keys).next().is_some()
    }

    /// Pages that are being read.
    pub(crate) fn count(&self) -> usize {
        self.keys.len()
    }

    /// What runs have of a page that could not be read, if that could be.
    pub(crate) fn told(&self, key: usize) -> Option<&[RunRecord]> {
        self.told.get(&key).map(Vec::as_slice)
    }

    /// A page maps nothing any more, whether it can be read or not.
    pub(crate) fn forget(&mut self, key: usize) {
        self.damaged.remove(&key);
        self.told.remove(&key);
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl Load {
    /// Takes the bytes of a block; none if it could not be read.
    pub(crate) fn take(&mut self, uuid: &[u8; 16], at: Location, part: Part, bytes: &[u8]) {
        match part {
            Part::Page(n) => self.images[n].take_page(bytes),
            Part::Sums(n) => self.images[n].take_sums(bytes),
            Part::Slice(n) => self.slices[n].take(uuid, at, bytes),
        }
    }
}
