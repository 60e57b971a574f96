//! How a policy describes itself, and the values of its parameters.

use crate::{Limits, Value};

/// Parameters a policy can have.
pub(crate) const PARAMETERS_MOST: usize = 8;

/// Description of a policy.
#[derive(Debug, PartialEq, Eq)]
pub struct PolicyInfo {
    /// Name in configuration, tables and errors.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its parameters, at most 8.
    pub parameters: &'static [Parameter],
}

/// Description of a parameter.
#[derive(Debug, PartialEq, Eq)]
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

impl PolicyInfo {
    /// Which of its parameters has a name.
    pub(crate) fn position(&self, key: &str) -> Option<usize> {
        self.parameters.iter().position(|parameter| parameter.name == key)
    }
}

/// The parameters of a policy with their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    policy: &'static PolicyInfo,
    values: [Value; PARAMETERS_MOST],
}

impl Parameters {
    pub(crate) const fn new(policy: &'static PolicyInfo, values: [Value; PARAMETERS_MOST]) -> Self {
        Self { policy, values }
    }

    /// The policy whose parameters they are.
    #[must_use]
    pub const fn policy(&self) -> &'static PolicyInfo {
        self.policy
    }

    /// The value of a parameter.
    ///
    /// # Panics
    /// The policy has no such parameter: a mistake in its own file.
    #[must_use]
    pub fn value(&self, key: &str) -> Value {
        let at = self.policy.position(key);
        let Some(at) = at else { panic!("{} has no parameter {key}", self.policy.name) };
        self.values[at]
    }
}
