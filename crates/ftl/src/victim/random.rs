//! Any superblock.

use onefold_units::Rng;
use onefold_units::convert::{index64, u64_from};

use super::set::Set;

/// Takes a candidate at random, full or empty: the baseline whose write amplification is
/// 1 / (1 - rho). Source: Van Houdt 2013.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    pub(crate) closed: Set,
    rng: Rng,
}

impl Random {
    pub(crate) fn new(superblocks: u32, seed: u64) -> Self {
        Self { closed: Set::new(superblocks), rng: Rng::fork(seed, 21) }
    }

    pub(crate) fn choose(&mut self) -> Option<u32> {
        let members = self.closed.members();
        members.get(index64(self.rng.below(u64_from(members.len())))).copied()
    }
}
