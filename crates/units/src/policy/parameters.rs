//! The parameters of a policy, and their values.

use super::{Limits, Value};

/// Parameters a policy can have.
pub(super) const PARAMETERS_MOST: usize = 8;

/// Description of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name in configuration, tables and errors.
    pub name: &'static str,
    /// Value unless set.
    pub default: Value,
    /// What it can be.
    pub limits: Limits,
    /// What it does, in one sentence.
    pub about: &'static str,
}

/// The parameters of a policy with their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    pub(super) policy: &'static str,
    pub(super) all: &'static [Parameter],
    pub(super) values: [Value; PARAMETERS_MOST],
}

impl Parameters {
    /// Name of the policy whose parameters they are.
    #[must_use]
    pub const fn policy(&self) -> &'static str {
        self.policy
    }

    /// The value of a parameter.
    ///
    /// # Panics
    /// The policy has no such parameter: a mistake in its own file.
    #[must_use]
    pub fn value(&self, key: &str) -> Value {
        let at = position(self.all, key);
        let Some(at) = at else { panic!("{} has no parameter {key}", self.policy) };
        self.values[at]
    }
}

/// Which parameter has a name.
pub(super) fn position(all: &[Parameter], key: &str) -> Option<usize> {
    all.iter().position(|parameter| parameter.name == key)
}
