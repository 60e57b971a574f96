//! Which groups have most segments, and which have most dead entries in NVRAM: kept up to date, because
//! a search through all groups whenever the log is full costs more than the remaps it makes room for.

use onefold_units::SuperblockId;
use onefold_units::convert::u32_from;

use super::groups::{Group, Tally};
use crate::victim::Greedy;

/// The order of groups, and the sum of their tallies of NVRAM.
#[derive(Clone, Debug)]
pub(crate) struct Ranks {
    /// Few come first, so what is to be most counts downwards.
    largest: Greedy,
    deadest: Greedy,
    entries: u64,
    units: u64,
    live: u64,
}

onefold_units::keep!(Ranks { largest, deadest, entries, units, live });

/// What decides about the ranks of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    nvram: Tally,
    segments: usize,
}

impl Ranks {
    pub(crate) fn new(superblocks: u32) -> Self {
        let order = Greedy::new(superblocks);
        Self { largest: order.clone(), deadest: order, entries: 0, units: 0, live: 0 }
    }

    /// The superblock whose group has most segments in NVRAM; ties go to the lowest.
    pub(crate) fn largest(&self) -> Option<SuperblockId> {
        self.largest.choose().map(SuperblockId::new)
    }

    /// The superblock whose group has most dead entries in NVRAM; ties go to the lowest.
    pub(crate) fn deadest(&self) -> Option<SuperblockId> {
        self.deadest.choose().map(SuperblockId::new)
    }

    /// Entries in NVRAM that are live, if dead units are spread evenly.
    pub(crate) fn live_entries(&self) -> u64 {
        let share = u128::from(self.entries) * u128::from(self.live);
        u64::try_from(share.div_ceil(u128::from(self.units.max(1)))).unwrap_or(u64::MAX)
    }

    fn update(&mut self, at: SuperblockId, before: Size, after: Size) {
        let moved = |sum: u64, old: u32, new: u32| sum + u64::from(new) - u64::from(old);
        let (old, new) = (before.nvram, after.nvram);
        self.entries = moved(self.entries, old.entries, new.entries);
        self.units = moved(self.units, old.units, new.units);
        self.live = moved(self.live, old.live, new.live);
        if before.segments != after.segments {
            self.largest.set(at.raw(), u32::MAX - u32_from(after.segments));
        }
        let dead = new.dead_entries();
        if old.dead_entries() != dead {
            self.deadest.set(at.raw(), u32::MAX - dead);
        }
    }
}

impl super::Remap {
    /// Changes what a group has in NVRAM.
    #[inline]
    pub(crate) fn change<T>(
        &mut self,
        superblock: SuperblockId,
        change: impl FnOnce(&mut Group) -> T,
    ) -> T {
        let group = &mut self.groups[superblock.index()];
        let size = |group: &Group| Size { nvram: group.nvram, segments: group.segments.len() };
        let before = size(group);
        let result = change(group);
        if let Some(ranks) = &mut self.ranks {
            ranks.update(superblock, before, size(group));
        }
        result
    }
}
