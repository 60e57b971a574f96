//! A pool: superblocks with free list, victims and collection of their own.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use onefold_nand::MediaError;
use onefold_units::{Cause, Nanos, SuperblockId};

use crate::victim::{VictimSetup, VictimSpec, Victims};

/// State of one pool.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// Free superblocks, least worn first (dynamic wear levelling), ties to the lowest place.
    free: BinaryHeap<Reverse<(u32, u32)>>,
    pub(crate) victims: Victims,
    /// Valid slots of all superblocks of the pool.
    pub(crate) valid: u32,
    /// Superblocks that are closed or collected.
    pub(crate) closed: u32,
    pub(crate) collection: Option<Collection>,
    /// Places of victims that could not be read, and why (`aside`).
    pub(crate) aside: Vec<(u32, MediaError)>,
    /// Places of closed superblocks that are to be emptied next (`weak`).
    pub(crate) weak: BTreeSet<u32>,
    /// Counted in `Ftl::hungry`.
    pub(crate) hungry: bool,
    /// Victims in a row that freed nothing.
    pub(crate) barren: u32,
    /// Erases since static wear levelling last looked.
    pub(crate) erases: u32,
    /// Erases since the medium was last synchronised.
    pub(crate) unsynced: u32,
}

onefold_units::keep!(Pool {
    free,
    victims,
    valid,
    closed,
    collection,
    aside,
    weak,
    hungry,
    barren,
    erases,
    unsynced
});

/// A victim being drained.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Collection {
    pub(crate) victim: SuperblockId,
    /// Next slot to look at.
    pub(crate) cursor: u32,
    /// Map entries of the valid slots before this one were loaded.
    pub(crate) ahead: u32,
    pub(crate) cause: Cause,
    /// Pacing: copies owed per slot gained are `valid` / `gain`.
    pub(crate) valid: u32,
    pub(crate) gain: u32,
    pub(crate) credit: u32,
    /// When the controller knows who shares its slots.
    pub(crate) ready: Nanos,
    /// Times it was read through before: slots that are left hold referrers without room in the log.
    pub(crate) pass: u32,
}

onefold_units::keep!(Collection { victim, cursor, ahead, cause, valid, gain, credit, ready, pass });

impl Pool {
    pub(crate) fn new(victim: &VictimSpec, setup: &VictimSetup) -> Self {
        Self {
            free: BinaryHeap::new(),
            victims: Victims::new(victim, setup),
            valid: 0,
            closed: 0,
            collection: None,
            aside: Vec::new(),
            weak: BTreeSet::new(),
            hungry: false,
            barren: 0,
            erases: 0,
            unsynced: 0,
        }
    }

    /// The superblock to be emptied next, if there is one: not with what is kept for collection that gains room.
    pub(crate) fn first_weak(&self, stop: u32) -> Option<u32> {
        self.weak.first().copied().filter(|_| self.free_count() > stop)
    }

    pub(crate) fn free_count(&self) -> u32 {
        onefold_units::convert::u32_from(self.free.len())
    }

    pub(crate) fn push_free(&mut self, at: u32, erases: u32) {
        self.free.push(Reverse((erases, at)));
    }

    pub(crate) fn pop_free(&mut self) -> Option<u32> {
        self.free.pop().map(|Reverse((_, at))| at)
    }
}
