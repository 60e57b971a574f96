//! Cheap and old first.

use std::cmp::Reverse;

use onefold_units::convert::float;

use super::{BuildVictim, Candidate, Candidates, Victim, VictimInfo, VictimSetup};

/// Name and source.
pub(super) static INFO: VictimInfo = VictimInfo {
    name: "cost-benefit",
    about: "The superblock with the largest age x (1 - u) / 2u, u being its share of valid slots.",
    source: "Kawaguchi 1995; Rosenblum and Ousterhout 1992",
    parameters: &[],
    build: BuildVictim::of::<CostBenefit>(),
};

/// Takes the candidate with the largest benefit / cost = age x (1 - u) / 2u, u being its share of
/// valid slots: a fuller superblock is worth collecting if it has been stable for long. Scores change
/// with time, so that no order of them can be kept.
#[derive(Clone, Debug)]
struct CostBenefit;

impl Victim for CostBenefit {
    fn new(_: &VictimSetup) -> Self {
        Self
    }

    fn choose(&mut self, candidates: &Candidates<'_>) -> Option<Candidate> {
        // Equal scores (all of them right after recovery): fewest valid slots, then the lowest place.
        let rank = |one: &Candidate| (score(*one), Reverse((one.valid, one.place)));
        candidates.iter().max_by(|a, b| {
            let (a, b) = (rank(a), rank(b));
            a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
        })
    }
}

fn score(candidate: Candidate) -> f64 {
    if candidate.valid == 0 {
        return f64::INFINITY;
    }
    let (valid, capacity) = (u64::from(candidate.valid), u64::from(candidate.capacity));
    let free = float(capacity.saturating_sub(valid));
    float(candidate.age) * free / (2.0 * float(valid))
}
