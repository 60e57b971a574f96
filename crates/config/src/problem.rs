//! What can be wrong with one value.

use onefold_units::policy::PolicyError;

use crate::suggest;

/// What is wrong with one value. The text continues "KEY is VALUE, ..".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Another kind of value is needed.
    #[error("expected {what}")]
    Expected {
        /// Kind of value with an example.
        what: String,
    },
    /// The number is out of range.
    #[error("expected {min} to {max}")]
    Range {
        /// Smallest accepted value.
        min: String,
        /// Largest accepted value.
        max: String,
    },
    /// A size, time or rate has no unit.
    #[error("a number without a unit; expected {what}")]
    NoUnit {
        /// Kind of value with an example.
        what: &'static str,
        /// Accepted units.
        units: String,
    },
    /// The unit does not exist.
    #[error("`{unit}` is not a unit; expected one of {units}")]
    UnknownUnit {
        /// What was found.
        unit: String,
        /// Accepted units.
        units: String,
        /// The unit that was probably meant.
        suggestion: Option<String>,
    },
    /// The value has more decimals than its smallest unit allows.
    #[error("which is no multiple of {smallest}")]
    TooFine {
        /// The smallest unit.
        smallest: &'static str,
        /// A value close by that is.
        near: Option<String>,
    },
    /// The value does not fit 64 bits.
    #[error("too large for a 64-bit number")]
    TooLarge,
    /// The word is none of the accepted ones.
    #[error("expected one of {choices}")]
    Choice {
        /// Accepted words.
        choices: String,
        /// The word that was probably meant.
        suggestion: Option<String>,
    },
    /// The value is planned, but this version does not have it.
    #[error("which is not available in this version; expected {choices}")]
    Unavailable {
        /// Accepted words.
        choices: String,
    },
    /// A size that has to be a power of two is not.
    #[error("expected a power of two from {min} to {max}")]
    PowerOfTwo {
        /// Smallest accepted value.
        min: String,
        /// Largest accepted value.
        max: String,
    },
    /// No such policy, or none with such a parameter.
    #[error("{0}")]
    Policy(PolicyError),
}

impl Problem {
    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Expected { what } => format!("write {what}"),
            Self::Range { min, max } | Self::PowerOfTwo { min, max } => {
                format!("choose a value from {min} to {max}")
            }
            Self::NoUnit { units, .. } => format!("add one of {units}"),
            Self::UnknownUnit { suggestion: Some(unit), .. } => format!("did you mean `{unit}`?"),
            Self::UnknownUnit { units, .. } => format!("use one of {units}"),
            Self::TooFine { near: Some(near), .. } => format!("write {near}"),
            Self::TooFine { smallest, near: None } => {
                format!("round it to a multiple of {smallest}")
            }
            Self::TooLarge => "choose a smaller value".to_owned(),
            Self::Choice { suggestion: Some(word), .. } => format!("did you mean `{word}`?"),
            Self::Choice { choices, .. } | Self::Unavailable { choices } => {
                format!("use {choices}")
            }
            Self::Policy(error) => policy_help(error),
        }
    }
}

fn policy_help(error: &PolicyError) -> String {
    let nearest = match error {
        PolicyError::UnknownPolicy { name, known, .. } => suggest::nearest(name, known.split(", ")),
        _ => None,
    };
    nearest.map_or_else(
        || "docs/configuration.md explains the policies and their parameters".to_owned(),
        |name| format!("did you mean `{name}`?"),
    )
}
