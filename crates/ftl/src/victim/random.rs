//! Any superblock.

use onefold_units::Rng;
use onefold_units::convert::narrow;

use super::{BuildVictim, Candidate, Candidates, Victim, VictimInfo, VictimSetup};

/// Name and source.
pub(super) static INFO: VictimInfo = VictimInfo {
    name: "random",
    about: "Any superblock, full or empty: the baseline with a write amplification of 1 / (1 - rho).",
    source: "Van Houdt 2013",
    parameters: &[],
    build: BuildVictim::of::<Random>(),
};

/// Takes a candidate at random.
#[derive(Clone, Debug)]
struct Random {
    rng: Rng,
}

impl Victim for Random {
    fn new(setup: &VictimSetup) -> Self {
        Self { rng: Rng::fork(setup.seed, 21) }
    }

    fn choose(&mut self, candidates: &Candidates<'_>) -> Option<Candidate> {
        candidates.get(narrow(self.rng.below(u64::from(candidates.len()))))
    }

    onefold_units::keep_fields!({ rng });
}
