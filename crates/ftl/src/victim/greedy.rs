//! Fewest valid slots.

use onefold_units::convert::{index, low32};

use super::table::Way;
use super::{BuildVictim, VictimInfo};

/// The victim policy for whoever has no other in mind: fewest valid slots.
pub static INFO: VictimInfo = VictimInfo {
    name: "greedy",
    about: "The superblock with the fewest valid slots.",
    source: "Wu 2022, sec. IV-D; Desnoyers 2012",
    parameters: &[],
    build: BuildVictim(Way::Greedy),
};

/// Takes the candidate with the fewest valid slots; ties go to the lowest id: least to copy now, blind
/// to how soon the rest would have died by itself. Source: Wu 2022, sec. IV-D; Desnoyers 2012.
///
/// A winner tree over (valid, id): the root is the victim, and a change climbs only as far as it
/// decides a match, which is O(1) for all but the emptiest superblocks.
#[derive(Clone, Debug)]
pub(crate) struct Greedy {
    /// `nodes[1]` is the root, leaves start at `leaves`.
    nodes: Vec<u64>,
    leaves: usize,
}

/// Loses against every candidate.
const NOBODY: u64 = u64::MAX;

impl Greedy {
    pub(crate) fn new(superblocks: u32) -> Self {
        let leaves = index(superblocks).next_power_of_two();
        Self { nodes: vec![NOBODY; 2 * leaves], leaves }
    }

    #[inline]
    pub(crate) fn set(&mut self, at: u32, valid: u32) {
        self.play(index(at), (u64::from(valid) << 32) | u64::from(at));
    }

    pub(crate) fn remove(&mut self, at: u32) {
        self.play(index(at), NOBODY);
    }

    #[inline]
    fn play(&mut self, leaf: usize, key: u64) {
        let mut node = self.leaves + leaf;
        self.nodes[node] = key;
        while node > 1 {
            let winner = self.nodes[node].min(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == winner {
                return;
            }
            self.nodes[node] = winner;
        }
    }

    pub(crate) fn choose(&self) -> Option<u32> {
        let root = self.nodes[1];
        (root != NOBODY).then(|| low32(root))
    }
}
