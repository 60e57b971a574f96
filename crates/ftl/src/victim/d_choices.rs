//! Best of `d` drawn at random.

use onefold_units::Rng;
use onefold_units::convert::{index64, u64_from};

use super::Candidate;
use super::set::Set;

/// Draws `d` candidates with replacement and takes the one with the fewest valid slots, ties to the
/// lowest id: nearly greedy for d = 10, without an ordered index. Source: Van Houdt 2013.
#[derive(Clone, Debug)]
pub(crate) struct DChoices {
    pub(crate) closed: Set,
    d: u32,
    rng: Rng,
}

impl DChoices {
    pub(crate) fn new(superblocks: u32, d: u32, seed: u64) -> Self {
        Self { closed: Set::new(superblocks), d: d.max(1), rng: Rng::fork(seed, 22) }
    }

    pub(crate) fn choose(&mut self, about: impl Fn(u32) -> Candidate) -> Option<u32> {
        let members = self.closed.members();
        let count = u64_from(members.len());
        let draws = (0..self.d).filter_map(|_| members.get(index64(self.rng.below(count))));
        draws.copied().min_by_key(|at| (about(*at).valid, *at))
    }
}
