//! The victim policies, and how they are built.

use onefold_units::policy::{Info, Parameters, Policies, Spec};

use super::{Candidate, Candidates, Looking, Victim};

/// A victim policy with the values of its parameters.
pub type VictimSpec = Spec<BuildVictim>;

/// Description of a victim policy.
pub type VictimInfo = Info<BuildVictim>;

/// The victim policies that can be named.
pub type VictimPolicies = Policies<BuildVictim>;

/// What a victim policy is built from.
#[derive(Clone, Copy, Debug)]
pub struct VictimSetup {
    /// Parameters of the configured policy.
    pub parameters: Parameters,
    /// Superblocks of the pool.
    pub superblocks: u32,
    /// Seed of anything random.
    pub seed: u64,
    /// Candidates that `d-choices` draws.
    pub draws: u32,
}

/// A victim policy without a state of its own.
type Choosing = fn(&Candidates<'_>) -> Option<Candidate>;

/// How a victim policy is built.
#[derive(Clone, Copy)]
pub struct BuildVictim(pub(super) Way);

/// Two policies keep an order of their own, the others look at the candidates for each victim.
#[derive(Clone, Copy)]
pub(super) enum Way {
    Greedy,
    Fifo,
    Looking(fn(&VictimSetup) -> Looking),
    Choosing(Choosing),
}

impl BuildVictim {
    /// A policy that looks at the candidates for each victim.
    #[must_use]
    pub const fn of<V: Victim>() -> Self {
        Self(Way::Looking(Looking::of::<V>))
    }

    /// A policy without parameters or state of its own: what [`Victim::choose`] does.
    #[must_use]
    pub const fn choosing(choose: Choosing) -> Self {
        Self(Way::Choosing(choose))
    }
}
