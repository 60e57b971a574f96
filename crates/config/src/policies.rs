//! Policies that keys name.

use onefold_buffer::{Policies as BufferPolicies, PolicyInfo};
use onefold_ftl::{VictimInfo, VictimPolicies};
use onefold_ssd::{ClassifierInfo, ClassifierPolicies};

/// The policies that a configuration can name: those that Onefold has, and those that a program adds.
///
/// A program gives them to [`Config::load`](crate::Config::load) with
/// [`Sources::policies`](crate::Sources::policies).
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// What `buffer.policy` can be.
    pub buffer: BufferPolicies,
    /// What `ftl.victim` can be.
    pub victim: VictimPolicies,
    /// What `ftl.classifier` can be.
    pub classifier: ClassifierPolicies,
}

impl Policies {
    /// Those that Onefold has.
    #[must_use]
    pub const fn builtin() -> Self {
        Self {
            buffer: BufferPolicies::builtin(),
            victim: VictimPolicies::builtin(),
            classifier: ClassifierPolicies::builtin(),
        }
    }

    /// One more buffer policy.
    ///
    /// # Panics
    /// As [`onefold_units::policy::Policies::with`]: a mistake in its description.
    #[must_use]
    pub fn with_buffer(self, policy: &'static PolicyInfo) -> Self {
        Self { buffer: self.buffer.with(policy), ..self }
    }

    /// One more victim policy.
    ///
    /// # Panics
    /// As [`Policies::with_buffer`].
    #[must_use]
    pub fn with_victim(self, policy: &'static VictimInfo) -> Self {
        Self { victim: self.victim.with(policy), ..self }
    }

    /// One more stream classifier.
    ///
    /// # Panics
    /// As [`Policies::with_buffer`].
    #[must_use]
    pub fn with_classifier(self, policy: &'static ClassifierInfo) -> Self {
        Self { classifier: self.classifier.with(policy), ..self }
    }
}

/// Which of the policies a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyKind {
    Buffer,
    Victim,
    Classifier,
}

impl PolicyKind {
    /// Names of those that Onefold has.
    pub(crate) fn names(self) -> String {
        match self {
            Self::Buffer => BufferPolicies::builtin().names(),
            Self::Victim => VictimPolicies::builtin().names(),
            Self::Classifier => ClassifierPolicies::builtin().names(),
        }
    }

    /// What to write, with an example.
    pub(crate) const fn expectation(self) -> &'static str {
        match self {
            Self::Buffer => "a buffer policy such as \"lru\" or \"pt-lru:p=0.9\"",
            Self::Victim => "a victim policy such as \"greedy\"",
            Self::Classifier => "a stream classifier such as \"hot-cold:within=1/4\"",
        }
    }
}
