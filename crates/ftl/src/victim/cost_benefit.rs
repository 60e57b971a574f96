//! Cheap and old first.

use onefold_units::convert::float;

use super::Candidate;
use super::set::Set;

/// Takes the candidate with the largest benefit / cost = age x (1 - u) / 2u, u being its share of
/// valid slots: a fuller superblock is worth collecting if it has been stable for long. Source:
/// Kawaguchi 1995; Rosenblum and Ousterhout 1992.
///
/// Scores change with time, so the candidates of the pool are scanned for each victim. That is one
/// short pass per collected superblock, not per page.
#[derive(Clone, Debug)]
pub(crate) struct CostBenefit {
    pub(crate) closed: Set,
}

impl CostBenefit {
    pub(crate) fn new(superblocks: u32) -> Self {
        Self { closed: Set::new(superblocks) }
    }

    pub(crate) fn choose(&self, about: impl Fn(u32) -> Candidate) -> Option<u32> {
        // Equal scores (all of them right after recovery): fewest valid slots, then the lowest id.
        let rank = |at: u32| {
            let candidate = about(at);
            (score(candidate), std::cmp::Reverse((candidate.valid, at)))
        };
        let members = self.closed.members().iter().map(|at| (rank(*at), *at));
        let best = members.max_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        best.map(|(_, at)| at)
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
