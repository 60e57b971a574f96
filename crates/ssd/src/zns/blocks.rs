//! Sets of flash blocks: which are erased, and how often they were.

use std::collections::BTreeSet;

use onefold_format::{BlockSetRecord, BlockSetState};
use onefold_units::convert::{index, u32_from};

#[derive(Clone, Copy, Debug, Default)]
struct Set {
    state: BlockSetState,
    erases: u32,
}

/// The sets of a device.
#[derive(Clone, Debug)]
pub(crate) struct Sets {
    all: Vec<Set>,
    /// Erased sets, by erases and then by number.
    erased: BTreeSet<(u32, u32)>,
    bad: u32,
}

impl Sets {
    /// `count` erased sets.
    pub(crate) fn new(count: u32) -> Self {
        Self {
            all: vec![Set::default(); index(count)],
            erased: (0..count).map(|set| (0, set)).collect(),
            bad: 0,
        }
    }

    pub(crate) fn state(&self, set: u32) -> BlockSetState {
        self.all[index(set)].state
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> + use<> {
        0..u32_from(self.all.len())
    }

    /// The erased set that was erased least often.
    pub(crate) fn next(&self) -> Option<u32> {
        self.erased.first().map(|(_, set)| *set)
    }

    pub(crate) fn erased(&self) -> u32 {
        u32_from(self.erased.len())
    }

    pub(crate) const fn bad(&self) -> u32 {
        self.bad
    }

    /// Erases per set.
    pub(crate) fn wear(&self) -> impl Iterator<Item = u32> + '_ {
        self.all.iter().map(|set| set.erases)
    }

    /// Puts a set into a state; `erased`: by one more erase.
    pub(crate) fn put(&mut self, set: u32, state: BlockSetState, erased: bool) {
        let one = self.all[index(set)];
        self.restore(BlockSetRecord { set, state, erases: one.erases + u32::from(erased) });
    }

    pub(crate) fn restore(&mut self, record: BlockSetRecord) {
        let BlockSetRecord { set, state, erases } = record;
        let one = &mut self.all[index(set)];
        self.erased.remove(&(one.erases, set));
        self.bad -= u32::from(one.state == BlockSetState::Bad);
        *one = Set { state, erases };
        self.bad += u32::from(state == BlockSetState::Bad);
        if state == BlockSetState::Erased {
            self.erased.insert((erases, set));
        }
    }

    pub(crate) fn record(&self, set: u32) -> BlockSetRecord {
        let Set { state, erases } = self.all[index(set)];
        BlockSetRecord { set, state, erases }
    }
}
