//! What can be wrong with a specification.

use super::Limits;

/// Why a policy cannot be named so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// No policy has the name.
    #[error("`{name}` is no {noun}; use one of: {known}")]
    UnknownPolicy {
        /// What such a policy is called.
        noun: &'static str,
        /// The name asked for.
        name: String,
        /// The names there are, separated by `, `.
        known: String,
    },
    /// The policy has no such parameter.
    #[error("the policy {policy} has no parameter `{key}`; {}", any_of(known))]
    UnknownParameter {
        /// The policy.
        policy: &'static str,
        /// The key asked for.
        key: String,
        /// The parameters there are, separated by `, `.
        known: String,
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

fn any_of(known: &str) -> String {
    if known.is_empty() { "it has none".to_owned() } else { format!("use one of: {known}") }
}

/// Enough of a text to recognise it in an error.
pub(super) fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}
