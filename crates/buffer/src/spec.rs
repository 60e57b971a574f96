//! Policies by name, with parameters: `pt-lru:p=0.9`.
//!
//! Every policy describes itself in its own file with a [`PolicyInfo`](crate::PolicyInfo); configuration, studies,
//! documentation and errors all read that one description.

use std::fmt;

use crate::parameters::PARAMETERS_MOST;
use crate::value::parse;
use crate::{Limits, Parameters, PolicyKind, Value};

/// A policy with the values of its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicySpec {
    kind: PolicyKind,
    values: [Value; PARAMETERS_MOST],
}

impl PolicySpec {
    /// A policy with the default of every parameter.
    #[must_use]
    pub fn new(kind: PolicyKind) -> Self {
        let mut values = [Value::Count(0); PARAMETERS_MOST];
        for (value, parameter) in values.iter_mut().zip(kind.info().parameters) {
            *value = parameter.default;
        }
        Self { kind, values }
    }

    /// Reads `NAME` or `NAME:KEY=VALUE,KEY=VALUE`.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        let known = PolicyKind::ALL.into_iter().find(|kind| kind.name() == name);
        let kind = known.ok_or_else(|| PolicyError::UnknownPolicy { name: shorten(name) })?;
        let mut spec = Self::new(kind);
        for setting in settings.split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
            let (key, value) = setting.split_once('=').ok_or_else(|| PolicyError::NoValue {
                policy: kind.name(),
                setting: shorten(setting),
            })?;
            spec.set(key.trim(), value.trim())?;
        }
        Ok(spec)
    }

    /// Sets a parameter from its text.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), PolicyError> {
        let info = self.kind.info();
        let Some(at) = info.position(key) else {
            return Err(PolicyError::UnknownParameter { policy: info.name, key: shorten(key) });
        };
        let limits = info.parameters[at].limits;
        let value = parse(text, limits).ok_or_else(|| PolicyError::BadValue {
            policy: info.name,
            key: info.parameters[at].name,
            text: shorten(text),
            limits,
        })?;
        self.values[at] = value;
        Ok(())
    }

    /// Which policy.
    #[must_use]
    pub const fn kind(&self) -> PolicyKind {
        self.kind
    }

    /// Its parameters.
    #[must_use]
    pub const fn parameters(&self) -> Parameters {
        Parameters::new(self.kind.info(), self.values)
    }

    /// The value of a parameter of this policy.
    ///
    /// # Panics
    /// The policy has no such parameter.
    #[must_use]
    pub fn value(&self, key: &str) -> Value {
        self.parameters().value(key)
    }

    /// Whether the policy asks the FTL about pages ([`crate::FtlView`]).
    #[must_use]
    pub fn asks_ftl(&self) -> bool {
        self.kind == PolicyKind::Aoi && self.value("reaccess") == Value::Word("mapped")
    }
}

/// The shortest text that [`PolicySpec::parse`] reads back: parameters at their default are left
/// out.
impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        let changed = self.kind.info().parameters.iter().zip(&self.values);
        let changed = changed.filter(|(parameter, value)| parameter.default != **value);
        for (at, (parameter, value)) in changed.enumerate() {
            let separator = if at == 0 { ':' } else { ',' };
            write!(f, "{separator}{}={value}", parameter.name)?;
        }
        Ok(())
    }
}

/// Why a policy cannot be named so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// No policy has the name.
    #[error("`{name}` is no buffer policy; use one of: {}", names())]
    UnknownPolicy {
        /// The name asked for.
        name: String,
    },
    /// The policy has no such parameter.
    #[error("the policy {policy} has no parameter `{key}`; {}", parameters(policy))]
    UnknownParameter {
        /// The policy.
        policy: &'static str,
        /// The key asked for.
        key: String,
    },
    /// A setting without `=`.
    #[error("`{setting}` sets nothing in the policy {policy}; write NAME:KEY=VALUE,KEY=VALUE")]
    NoValue {
        /// The policy.
        policy: &'static str,
        /// The text of the setting.
        setting: String,
    },
    /// The value does not fit the parameter.
    #[error("{key} of the policy {policy} is `{text}`, expected {limits}")]
    BadValue {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        key: &'static str,
        /// What was given.
        text: String,
        /// What is accepted.
        limits: Limits,
    },
}

fn names() -> String {
    PolicyKind::ALL.map(PolicyKind::name).join(", ")
}

fn parameters(policy: &str) -> String {
    let kind = PolicyKind::ALL.into_iter().find(|kind| kind.name() == policy);
    let parameters = kind.map_or(&[][..], |kind| kind.info().parameters);
    if parameters.is_empty() {
        return "it has none".to_owned();
    }
    let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
    format!("use one of: {}", names.join(", "))
}

/// Enough of a text to recognise it in an error.
fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::{PARAMETERS_MOST, PolicyError, PolicyKind, PolicySpec};

    #[test]
    fn defaults_are_within_their_limits_and_names_are_unique() {
        let mut names = Vec::new();
        for kind in PolicyKind::ALL {
            let info = kind.info();
            assert!(!names.contains(&info.name), "{}", info.name);
            names.push(info.name);
            assert!(info.parameters.len() <= PARAMETERS_MOST);
            for parameter in info.parameters {
                let mut spec = PolicySpec::new(kind);
                let text = parameter.default.to_string();
                spec.set(parameter.name, &text).unwrap();
                assert_eq!(spec, PolicySpec::new(kind), "{}.{}", info.name, parameter.name);
            }
            assert_eq!(PolicySpec::parse(info.name), Ok(PolicySpec::new(kind)));
        }
    }

    #[test]
    fn text_there_and_back() {
        for text in ["lru", "pt-lru:p=1/2", "aoi:reaccess=cursor,chunk=4KiB,channels=16"] {
            assert_eq!(PolicySpec::parse(text).unwrap().to_string(), text);
        }
        let spaced = PolicySpec::parse(" pt-lru : p = 0.50 , ").unwrap();
        assert_eq!(spaced.to_string(), "pt-lru:p=1/2");
        assert_eq!(PolicySpec::parse("aoi:chunk=1048576").unwrap().to_string(), "aoi");
    }

    #[test]
    fn refusals_name_what_is_accepted() {
        let error = |text: &str| PolicySpec::parse(text).unwrap_err().to_string();
        assert!(error("lrux").contains("use one of: lru, fifo, 2l"));
        assert!(error("lru:p=1").ends_with("has no parameter `p`; it has none"));
        assert!(error("pt-lru:q=1").ends_with("use one of: p"));
        assert!(error("pt-lru:p").contains("sets nothing"));
        assert!(error("pt-lru:p=2").contains("expected a ratio from 0 to 1"));
        assert!(error("aoi:chunk=3MiB").contains("a power of two"));
        assert!(error("aoi:reaccess=maybe").contains("mapped, cursor or literal"));
        let long = "x".repeat(1000);
        assert!(error(&long).len() < 400);
        assert!(matches!(PolicySpec::parse(""), Err(PolicyError::UnknownPolicy { .. })));
    }
}
