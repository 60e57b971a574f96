//! Victim policies of garbage collection: one file, one type, one name each, and their table.

mod candidates;
mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;
mod random;
mod set;
mod table;

use std::fmt;

pub use candidates::{Candidate, Candidates};
use fifo::Fifo;
pub(crate) use greedy::Greedy;
pub use greedy::INFO as GREEDY;
use onefold_units::policy::Kind;
use onefold_units::{Keep, Keeper};
use set::Set;
use table::Way;
pub use table::{BuildVictim, VictimInfo, VictimPolicies, VictimSetup, VictimSpec};

/// In the order of tables.
impl Kind for BuildVictim {
    const NOUN: &'static str = "victim policy";
    const BUILTIN: &'static [&'static VictimInfo] =
        &[&greedy::INFO, &cost_benefit::INFO, &fifo::INFO, &d_choices::INFO, &random::INFO];
}

/// Chooses the superblocks that garbage collection drains and erases.
///
/// A policy sees counts, never data, time or process-dependent order, so one trace gives the same
/// victims on every machine. Each pool has a policy of its own.
pub trait Victim: Clone + Send + 'static {
    /// The policy of a pool without candidates.
    fn new(setup: &VictimSetup) -> Self;

    /// The candidate to collect next. `None`, or a candidate without invalid slots several times
    /// in a row, makes writes fail for want of space once no superblock is free.
    fn choose(&mut self, candidates: &Candidates<'_>) -> Option<Candidate>;

    /// Writes the state of the policy, or takes it in place: all that [`Victim::new`] does not know. Without this a
    /// policy with fields cannot be stopped and continued; [`onefold_units::keep_fields!`] makes it.
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        keeper.stateless(self);
    }
}

/// The victim policy of one pool. An enum rather than a trait object: `changed` runs for every
/// overwritten page.
#[derive(Clone, Debug)]
pub(crate) enum Victims {
    Greedy(Greedy),
    Fifo(Fifo),
    Looking(Set, Looking),
}

/// A policy that looks at the candidates for each victim: one short pass per collected superblock,
/// not per page.
pub(crate) struct Looking(Box<dyn Choose>);

/// What [`Victim`] is as an object.
trait Choose: Send {
    fn choose(&mut self, candidates: &Candidates<'_>) -> Option<Candidate>;
    fn boxed_clone(&self) -> Box<dyn Choose>;
    fn keep(&mut self, keeper: &mut Keeper<'_>);
}

impl<V: Victim> Choose for V {
    fn choose(&mut self, candidates: &Candidates<'_>) -> Option<Candidate> {
        Victim::choose(self, candidates)
    }

    fn boxed_clone(&self) -> Box<dyn Choose> {
        Box::new(self.clone())
    }

    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        Victim::keep(self, keeper);
    }
}

/// A policy that is a function.
struct Chosen(fn(&Candidates<'_>) -> Option<Candidate>);

impl Choose for Chosen {
    fn choose(&mut self, candidates: &Candidates<'_>) -> Option<Candidate> {
        (self.0)(candidates)
    }

    fn boxed_clone(&self) -> Box<dyn Choose> {
        Box::new(Self(self.0))
    }

    fn keep(&mut self, _: &mut Keeper<'_>) {}
}

impl Looking {
    fn of<V: Victim>(setup: &VictimSetup) -> Self {
        Self(Box::new(V::new(setup)))
    }
}

impl Clone for Looking {
    fn clone(&self) -> Self {
        Self(self.0.boxed_clone())
    }
}

impl fmt::Debug for Looking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Looking(..)")
    }
}

impl Victims {
    /// An empty set of candidates.
    pub(crate) fn new(policy: &VictimSpec, setup: &VictimSetup) -> Self {
        match policy.info().build.0 {
            Way::Greedy => Self::Greedy(Greedy::new(setup.superblocks)),
            Way::Fifo => Self::Fifo(Fifo::default()),
            Way::Looking(new) => Self::Looking(Set::new(setup.superblocks), new(setup)),
            Way::Choosing(choose) => {
                let policy = Looking(Box::new(Chosen(choose)));
                Self::Looking(Set::new(setup.superblocks), policy)
            }
        }
    }

    /// A superblock was closed and may be collected from now on.
    pub(crate) fn insert(&mut self, at: u32, valid: u32) {
        match self {
            Self::Greedy(policy) => policy.set(at, valid),
            Self::Fifo(policy) => policy.insert(at),
            Self::Looking(closed, _) => closed.insert(at),
        }
    }

    /// A superblock is no candidate any more.
    pub(crate) fn remove(&mut self, at: u32) {
        match self {
            Self::Greedy(policy) => policy.remove(at),
            Self::Fifo(policy) => policy.remove(at),
            Self::Looking(closed, _) => closed.remove(at),
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
            Self::Fifo(policy) => policy.choose(),
            Self::Looking(closed, Looking(policy)) => {
                let candidates = Candidates { members: closed.members(), about: &about };
                let place = policy.choose(&candidates)?.place;
                assert!(closed.contains(place), "a victim policy chose what is no candidate");
                Some(place)
            }
        }
    }
}

impl Keep for Victims {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        match self {
            Self::Greedy(policy) => policy.keep(keeper),
            Self::Fifo(policy) => policy.keep(keeper),
            Self::Looking(closed, Looking(policy)) => {
                closed.keep(keeper);
                policy.keep(keeper);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Candidate, VictimSetup, VictimSpec, Victims};

    fn victims(name: &str, superblocks: u32, draws: u32) -> Victims {
        let policy = VictimSpec::parse(name).unwrap();
        let parameters = policy.parameters();
        Victims::new(&policy, &VictimSetup { parameters, superblocks, seed: 9, draws })
    }

    fn about(valid: &[u32]) -> impl Fn(u32) -> Candidate + '_ {
        |at| Candidate {
            place: at,
            erases: 0,
            valid: valid[onefold_units::convert::index(at)],
            capacity: 10,
            age: u64::from(at),
        }
    }

    #[test]
    fn each_policy_chooses_as_defined() {
        let valid = [7, 3, 9, 3, 10];
        for (name, expected) in [
            ("greedy", Some(1)),       // fewest valid, lowest id of the two with 3
            ("fifo", Some(4)),         // inserted first
            ("d-choices", Some(1)),    // so many draws see all of them
            ("cost-benefit", Some(3)), // as empty as 1, but older
        ] {
            let mut victims = victims(name, 5, 64);
            for at in [4, 0, 1, 2, 3] {
                victims.insert(at, valid[onefold_units::convert::index(at)]);
            }
            assert_eq!(victims.choose(about(&valid)), expected, "{name}");
            let chosen = expected.unwrap_or_default();
            victims.remove(chosen);
            assert_ne!(victims.choose(about(&valid)), Some(chosen), "{name}");
        }
    }

    #[test]
    fn random_reaches_every_candidate() {
        let mut victims = victims("random", 4, 1);
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
