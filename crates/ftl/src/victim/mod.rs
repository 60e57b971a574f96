//! Victim policies of garbage collection: one file, one type, one name each.
//!
//! A policy sees counts, never data, time or process-dependent order, so one trace gives the same
//! victims on every machine. It works within one pool; superblocks are named by their place in it.

mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;
mod random;
mod set;

use crate::VictimKind;
use cost_benefit::CostBenefit;
use d_choices::DChoices;
use fifo::Fifo;
pub(crate) use greedy::Greedy;
use random::Random;

/// What a policy may know about a closed superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Valid slots.
    pub(crate) valid: u32,
    /// Data slots.
    pub(crate) capacity: u32,
    /// Mapping changes of the device since it was closed.
    pub(crate) age: u64,
}

/// The victim policy of one pool. An enum rather than a trait object: `changed` runs for every
/// overwritten page.
#[derive(Clone, Debug)]
pub(crate) enum Victims {
    Greedy(Greedy),
    CostBenefit(CostBenefit),
    Fifo(Fifo),
    DChoices(DChoices),
    Random(Random),
}

impl Victims {
    /// An empty set of candidates in a pool of `superblocks`.
    pub(crate) fn new(kind: VictimKind, superblocks: u32, seed: u64) -> Self {
        match kind {
            VictimKind::Greedy => Self::Greedy(Greedy::new(superblocks)),
            VictimKind::CostBenefit => Self::CostBenefit(CostBenefit::new(superblocks)),
            VictimKind::Fifo => Self::Fifo(Fifo::default()),
            VictimKind::DChoices { d } => Self::DChoices(DChoices::new(superblocks, d, seed)),
            VictimKind::Random => Self::Random(Random::new(superblocks, seed)),
        }
    }

    /// A superblock was closed and may be collected from now on.
    pub(crate) fn insert(&mut self, at: u32, valid: u32) {
        match self {
            Self::Greedy(policy) => policy.set(at, valid),
            Self::CostBenefit(policy) => policy.closed.insert(at),
            Self::Fifo(policy) => policy.insert(at),
            Self::DChoices(policy) => policy.closed.insert(at),
            Self::Random(policy) => policy.closed.insert(at),
        }
    }

    /// A superblock is no candidate any more.
    pub(crate) fn remove(&mut self, at: u32) {
        match self {
            Self::Greedy(policy) => policy.remove(at),
            Self::CostBenefit(policy) => policy.closed.remove(at),
            Self::Fifo(policy) => policy.remove(at),
            Self::DChoices(policy) => policy.closed.remove(at),
            Self::Random(policy) => policy.closed.remove(at),
        }
    }

    /// The number of valid slots of a candidate changed.
    #[inline]
    pub(crate) fn changed(&mut self, at: u32, valid: u32) {
        if let Self::Greedy(policy) = self {
            policy.set(at, valid);
        }
    }

    /// The candidate to collect next. It stays a candidate until it is removed.
    pub(crate) fn choose(&mut self, about: impl Fn(u32) -> Candidate) -> Option<u32> {
        match self {
            Self::Greedy(policy) => policy.choose(),
            Self::CostBenefit(policy) => policy.choose(about),
            Self::Fifo(policy) => policy.choose(),
            Self::DChoices(policy) => policy.choose(about),
            Self::Random(policy) => policy.choose(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Candidate, Victims};
    use crate::VictimKind;

    fn about(valid: &[u32]) -> impl Fn(u32) -> Candidate + '_ {
        |at| Candidate {
            valid: valid[onefold_units::convert::index(at)],
            capacity: 10,
            age: u64::from(at),
        }
    }

    #[test]
    fn each_policy_chooses_as_defined() {
        let valid = [7, 3, 9, 3, 10];
        for (kind, expected) in [
            (VictimKind::Greedy, Some(1)), // fewest valid, lowest id of the two with 3
            (VictimKind::Fifo, Some(4)),   // inserted first
            (VictimKind::DChoices { d: 64 }, Some(1)), // d this large sees all of them
            (VictimKind::CostBenefit, Some(3)), // as empty as 1, but older
        ] {
            let mut victims = Victims::new(kind, 5, 1);
            for at in [4, 0, 1, 2, 3] {
                victims.insert(at, valid[onefold_units::convert::index(at)]);
            }
            assert_eq!(victims.choose(about(&valid)), expected, "{}", kind.name());
            let chosen = expected.unwrap_or_default();
            victims.remove(chosen);
            assert_ne!(victims.choose(about(&valid)), Some(chosen), "{}", kind.name());
        }
    }

    #[test]
    fn random_reaches_every_candidate() {
        let mut victims = Victims::new(VictimKind::Random, 4, 9);
        for at in 0..4 {
            victims.insert(at, 1);
        }
        let mut seen = [false; 4];
        for _ in 0..200 {
            if let Some(at) = victims.choose(about(&[1; 4])) {
                seen[onefold_units::convert::index(at)] = true;
            }
        }
        assert_eq!(seen, [true; 4]);
    }
}
