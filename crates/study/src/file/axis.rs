//! Axes of a study: what its points differ in.

use onefold_config::{Typed, typed};
use serde::{Deserialize, Serialize};

/// The value of a point on one axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coordinate {
    /// Name of the axis: a key of configurations, or one of [`OWN_AXES`].
    pub axis: String,
    /// As it was written.
    pub text: String,
    /// Without its unit.
    pub value: Typed,
}

/// Axes that are no keys of configurations.
pub const OWN_AXES: [&str; 6] = ["preset", "config", "size", "trace", "workload", "seed"];

impl Coordinate {
    /// A value of an axis; what is wrong with it otherwise.
    pub(crate) fn new(axis: &str, text: &str) -> Result<Self, String> {
        let value = match axis {
            "size" => {
                Typed::Count(onefold_config::size(text).map_err(|problem| problem.to_string())?)
            }
            "seed" => {
                let seed = text.parse().map_err(|_| "expected a whole number as seed".to_owned());
                Typed::Count(seed?)
            }
            _ if OWN_AXES.contains(&axis) => Typed::Text(text.to_owned()),
            key => typed(key, text).map_err(|error| format!("{error}; {}", error.help()))?,
        };
        Ok(Self { axis: axis.to_owned(), text: text.to_owned(), value })
    }

    pub(crate) fn seed(seed: u64) -> Self {
        Self { axis: "seed".to_owned(), text: seed.to_string(), value: Typed::Count(seed) }
    }

    pub(crate) fn text(axis: &str, text: &str) -> Self {
        Self { axis: axis.to_owned(), text: text.to_owned(), value: Typed::Text(text.to_owned()) }
    }

    pub(crate) fn size(axis: &str, bytes: u64) -> Self {
        let text = onefold_config::size_text(bytes);
        Self { axis: axis.to_owned(), text, value: Typed::Count(bytes) }
    }

    /// How a name of a point says it: a word stands for itself, a number needs its key.
    pub(crate) fn short(&self) -> String {
        let last = self.axis.rsplit('.').next().unwrap_or_default();
        match (&self.value, OWN_AXES.contains(&self.axis.as_str())) {
            (Typed::Flag(_), _) => format!("{last}={}", self.text),
            (Typed::Count(_) | Typed::Real(_), false) => format!("{last} {}", self.text),
            _ => self.text.clone(),
        }
    }
}
