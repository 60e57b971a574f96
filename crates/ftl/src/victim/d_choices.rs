//! Best of `d` drawn at random.

use onefold_units::Rng;
use onefold_units::convert::narrow;

use super::{BuildVictim, Candidate, Candidates, Victim, VictimInfo, VictimSetup};

/// Name and source.
pub(super) static INFO: VictimInfo = VictimInfo {
    name: "d-choices",
    about: "The emptiest of ftl.d superblocks drawn at random.",
    source: "Van Houdt 2013",
    parameters: &[],
    build: BuildVictim::of::<DChoices>(),
};

/// Draws `d` candidates with replacement and takes the one with the fewest valid slots, ties to the
/// lowest place: nearly greedy for d = 10, without an ordered index.
#[derive(Clone, Debug)]
struct DChoices {
    draws: u32,
    rng: Rng,
}

impl Victim for DChoices {
    fn new(setup: &VictimSetup) -> Self {
        Self { draws: setup.draws.max(1), rng: Rng::fork(setup.seed, 22) }
    }

    fn choose(&mut self, candidates: &Candidates<'_>) -> Option<Candidate> {
        let count = u64::from(candidates.len());
        let draws = (0..self.draws).filter_map(|_| candidates.get(narrow(self.rng.below(count))));
        draws.min_by_key(|one| (one.valid, one.place))
    }

    onefold_units::keep_fields!({ rng } but { draws });
}
