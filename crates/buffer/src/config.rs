//! What can be chosen about the buffer.

use onefold_units::policy::{Info, Parameters, Policies as Registry, Spec};

use crate::{BufferError, Policy, Sizes};

/// Which tables of a policy are paid for with buffer memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charge {
    /// What the paper charges: the large-append table of append-only isolation (Jeong 2021,
    /// sec. IV-A). Ghosts of other policies are free, as in their papers.
    #[default]
    Paper,
    /// Every table that grows with the buffer or the device: also cursors, and 8 B per ghost.
    Full,
    /// Nothing: all of the size holds entries.
    None,
}

impl Charge {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Paper, Self::Full, Self::None];

    /// Name in configuration, tables and errors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Full => "full",
            Self::None => "none",
        }
    }
}

/// Configuration of the DRAM buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// Policy and its parameters.
    pub policy: PolicySpec,
    /// Size in bytes; 0 = no buffer.
    pub bytes: u64,
    /// What the tables of the policy cost.
    pub charge: Charge,
    /// Whether its content is lost at a power cut. A power-loss-protected buffer is not.
    pub volatile: bool,
}

/// A buffer policy with the values of its parameters.
pub type PolicySpec = Spec<Build>;

/// Description of a buffer policy.
pub type PolicyInfo = Info<Build>;

/// The buffer policies that can be named.
pub type Policies = Registry<Build>;

/// What building a policy gives.
pub(crate) type Built = Result<Box<dyn Policy + Send>, BufferError>;

/// How a buffer policy is built.
#[derive(Clone, Copy)]
pub struct Build {
    pub(crate) new: &'static (dyn Fn(&BufferConfig, &Sizes) -> Built + Sync),
    pub(crate) asks_ftl: fn(&Parameters) -> bool,
}

impl Build {
    /// A policy that `new` builds. `asks_ftl` says whether, with such parameters, it uses the
    /// [`FtlView`](crate::FtlView) of a request.
    #[must_use]
    pub const fn with(
        new: &'static (dyn Fn(&BufferConfig, &Sizes) -> Built + Sync),
        asks_ftl: fn(&Parameters) -> bool,
    ) -> Self {
        Self { new, asks_ftl }
    }

    /// Whether the policy asks the FTL about pages ([`FtlView`](crate::FtlView)).
    #[must_use]
    pub fn asks_ftl(&self, parameters: &Parameters) -> bool {
        (self.asks_ftl)(parameters)
    }
}
