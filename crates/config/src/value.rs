//! Kinds of values: what a key accepts, how it is read and how it is written.

use onefold_buffer::PolicySpec;
use onefold_ftl::VictimSpec;
use onefold_ssd::ClassifierSpec;

use crate::extent::Extent;
use crate::policies::{Policies, PolicyKind};
use crate::problem::Problem;
use crate::quantity::Measure;
use crate::raw::Raw;
use crate::suggest;

/// Least and most spare area: a device without any cannot collect garbage.
const SPARE_LEAST: f64 = 0.001;
const SPARE_MOST: f64 = 100.0;

/// Logical capacity as configured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Capacity {
    /// Fraction of the raw capacity.
    Fraction(f64),
    /// Size in bytes.
    Bytes(u64),
}

/// A value of some key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A count.
    Count(u64),
    /// A ratio.
    Real(f64),
    /// A size, time or rate.
    Quantity(Measure, u64),
    /// Times in nanoseconds by page type.
    Times(Vec<u64>),
    /// A switch.
    Flag(bool),
    /// One of the words of the key.
    Word(&'static str),
    /// Free text; empty = not given.
    Text(String),
    /// Logical capacity.
    Capacity(Capacity),
    /// Size of the map cache; `None` = the whole map.
    MapCache(Option<u64>),
    /// Part of the logical space.
    Extent(Extent),
    /// Buffer policy with its parameters.
    Buffer(PolicySpec),
    /// Victim policy with its parameters.
    Victim(VictimSpec),
    /// Stream classifier with its parameters.
    Classifier(ClassifierSpec),
}

/// What a key accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// An integer in a range.
    Count { min: u64, max: u64 },
    /// A number in a range.
    Real { min: f64, max: f64 },
    /// A size, time or rate in a range of its smallest unit.
    Quantity { measure: Measure, min: u64, max: u64 },
    /// A size that is a power of two.
    PowerOfTwo { min: u64, max: u64 },
    /// One to four times, by page type.
    Times { max: u64 },
    /// `true` or `false`.
    Flag,
    /// One of these words; the second list names words of later versions.
    Choice { words: &'static [&'static str], planned: &'static [&'static str] },
    /// Any text.
    Text,
    /// A fraction of the raw capacity, or a size.
    Capacity,
    /// The rest of the raw capacity over the logical one.
    Spare,
    /// "all", or a size.
    MapCache { min: u64 },
    /// A part of the logical space.
    Extent,
    /// A policy, `NAME` or `NAME:KEY=VALUE,KEY=VALUE`.
    Policy(PolicyKind),
}

impl Kind {
    /// Reads a value of this kind. Names of policies are those of `policies`.
    pub(crate) fn parse(&self, raw: &Raw, policies: &Policies) -> Result<Value, Problem> {
        let expected = || Problem::Expected { what: self.expectation() };
        match *self {
            Self::Count { min, max } => {
                let number = raw.count().ok_or_else(expected)?;
                let count = u64::try_from(number).ok().filter(|n| (min..=max).contains(n));
                count.map(Value::Count).ok_or_else(|| self.range())
            }
            Self::Real { min, max } => {
                let number = raw.real().ok_or_else(expected)?;
                if !(min..=max).contains(&number) {
                    return Err(self.range());
                }
                // Adding zero turns -0 into 0.
                Ok(Value::Real(number + 0.0))
            }
            Self::Quantity { measure, min, max } => {
                let value = quantity(measure, raw)?;
                if !(min..=max).contains(&value) {
                    return Err(self.range());
                }
                Ok(Value::Quantity(measure, value))
            }
            Self::PowerOfTwo { min, max } => {
                let value = quantity(Measure::Size, raw)?;
                if !value.is_power_of_two() || !(min..=max).contains(&value) {
                    return Err(Problem::PowerOfTwo {
                        min: Measure::Size.format(min),
                        max: Measure::Size.format(max),
                    });
                }
                Ok(Value::Quantity(Measure::Size, value))
            }
            Self::Times { max } => times(raw, max).and_then(|times| {
                if (1..=4).contains(&times.len()) {
                    Ok(Value::Times(times))
                } else {
                    Err(expected())
                }
            }),
            Self::Flag => match raw {
                Raw::Flag(flag) => Ok(Value::Flag(*flag)),
                Raw::Bare(text) => text.parse().map(Value::Flag).map_err(|_| expected()),
                _ => Err(expected()),
            },
            Self::Choice { words, planned } => {
                choice(raw.text().ok_or_else(expected)?, words, planned)
            }
            Self::Text => match raw {
                // `--set workload=[..]` is text too, but no workload looks like that.
                Raw::Bare(text) | Raw::Text(text) if printable(text) => {
                    Ok(Value::Text(text.clone()))
                }
                _ => Err(expected()),
            },
            Self::Capacity => self.capacity(raw).map(Value::Capacity),
            Self::Spare => self.spare(raw),
            Self::Extent => {
                raw.text().and_then(Extent::parse).map(Value::Extent).ok_or_else(expected)
            }
            Self::Policy(kind) => policy(kind, raw.text().ok_or_else(expected)?, policies),
            Self::MapCache { min } => self.map_cache(raw, min),
        }
    }

    fn map_cache(&self, raw: &Raw, min: u64) -> Result<Value, Problem> {
        if raw.text() == Some("all") {
            return Ok(Value::MapCache(None));
        }
        let bytes = quantity(Measure::Size, raw)?;
        if bytes < min {
            return Err(self.range());
        }
        Ok(Value::MapCache(Some(bytes)))
    }

    fn spare(&self, raw: &Raw) -> Result<Value, Problem> {
        let expected = Problem::Expected { what: self.expectation() };
        let spare = raw.real().ok_or(expected)?;
        if !(SPARE_LEAST..=SPARE_MOST).contains(&spare) {
            return Err(self.range());
        }
        Ok(Value::Capacity(Capacity::Fraction(1.0 / (1.0 + spare))))
    }

    fn capacity(&self, raw: &Raw) -> Result<Capacity, Problem> {
        if let Some(fraction) = raw.real() {
            // 0.875 is a fraction; 8 would be a size without a unit.
            if fraction > 0.0 && fraction < 1.0 {
                return Ok(Capacity::Fraction(fraction));
            }
            return Err(Problem::Expected { what: self.expectation() });
        }
        match quantity(Measure::Size, raw)? {
            0 => Err(Problem::Expected { what: self.expectation() }),
            bytes => Ok(Capacity::Bytes(bytes)),
        }
    }

    fn range(&self) -> Problem {
        let (min, max) = match *self {
            Self::Count { min, max } => (min.to_string(), max.to_string()),
            Self::Real { min, max } => (format!("{min}"), format!("{max}")),
            Self::Spare => (format!("{SPARE_LEAST}"), format!("{SPARE_MOST}")),
            Self::Quantity { measure, min, max } => (measure.format(min), measure.format(max)),
            Self::PowerOfTwo { min, max } => (Measure::Size.format(min), Measure::Size.format(max)),
            Self::Times { max } => ("0".to_owned(), Measure::Time.format(max)),
            Self::MapCache { min } => (Measure::Size.format(min), "\"all\"".to_owned()),
            // These kinds have no range; their errors are of other types.
            Self::Flag
            | Self::Choice { .. }
            | Self::Text
            | Self::Capacity
            | Self::Extent
            | Self::Policy(_) => (String::new(), String::new()),
        };
        Problem::Range { min, max }
    }

    /// What to write, with an example.
    pub(crate) fn expectation(&self) -> String {
        match self {
            Self::Count { min, max } => format!("an integer from {min} to {max}"),
            Self::Real { min, max } => format!("a number from {min} to {max}"),
            Self::Quantity { measure, .. } => measure.expectation().to_owned(),
            Self::PowerOfTwo { .. } => Measure::Size.expectation().to_owned(),
            Self::Times { .. } => {
                "a time such as \"60us\", or a list of 1 to 4 times by page type".to_owned()
            }
            Self::Flag => "true or false".to_owned(),
            Self::Choice { words, .. } => format!("one of {}", words.join(", ")),
            Self::Text => "text without control characters".to_owned(),
            Self::Capacity => {
                "a fraction of the raw capacity such as 0.875, or a size such as \"32GiB\""
                    .to_owned()
            }
            Self::Spare => "a share of the logical capacity such as \"7%\"".to_owned(),
            Self::MapCache { .. } => "\"all\", or a size such as \"2MiB\"".to_owned(),
            Self::Extent => {
                "a range of sizes or percentages such as \"0..1GiB\" or \"25%..50%\"".to_owned()
            }
            Self::Policy(kind) => kind.expectation().to_owned(),
        }
    }

    /// Name of the kind in the reference.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Count { .. } => "integer",
            Self::Real { .. } | Self::Spare => "number",
            Self::Quantity { measure: Measure::Size, .. } | Self::PowerOfTwo { .. } => "size",
            Self::Quantity { measure: Measure::Time, .. } => "time",
            Self::Quantity { measure: Measure::Rate, .. } => "rate",
            Self::Times { .. } => "time or list",
            Self::Flag => "boolean",
            Self::Choice { .. } => "word",
            Self::Text => "text",
            Self::Capacity => "fraction or size",
            Self::MapCache { .. } => "\"all\" or size",
            Self::Extent => "range",
            Self::Policy(_) => "policy",
        }
    }

    /// The limits in the reference.
    pub(crate) fn limits(&self) -> String {
        match *self {
            Self::Count { .. }
            | Self::Real { .. }
            | Self::Spare
            | Self::Quantity { .. }
            | Self::Times { .. } => match self.range() {
                Problem::Range { min, max } => format!("{min} to {max}"),
                _ => String::new(),
            },
            Self::PowerOfTwo { min, max } => format!(
                "power of two, {} to {}",
                Measure::Size.format(min),
                Measure::Size.format(max)
            ),
            Self::Flag => "true, false".to_owned(),
            Self::Choice { words, .. } => words.join(", "),
            Self::Text => "-".to_owned(),
            Self::Capacity => "above 0, below 1 or below raw".to_owned(),
            Self::MapCache { min } => format!("at least {}", Measure::Size.format(min)),
            Self::Extent => "0..100%".to_owned(),
            Self::Policy(kind) => kind.names(),
        }
    }
}

fn policy(kind: PolicyKind, text: &str, policies: &Policies) -> Result<Value, Problem> {
    let value = match kind {
        PolicyKind::Buffer => policies.buffer.parse(text).map(Value::Buffer),
        PolicyKind::Victim => policies.victim.parse(text).map(Value::Victim),
        PolicyKind::Classifier => policies.classifier.parse(text).map(Value::Classifier),
    };
    value.map_err(Problem::Policy)
}

fn quantity(measure: Measure, raw: &Raw) -> Result<u64, Problem> {
    match raw {
        Raw::Bare(text) | Raw::Text(text) => measure.parse(text),
        Raw::Integer(0) => Ok(0),
        Raw::Integer(_) | Raw::Float(_) => {
            Err(Problem::NoUnit { what: measure.expectation(), units: measure.unit_list() })
        }
        _ => Err(Problem::Expected { what: measure.expectation().to_owned() }),
    }
}

fn times(raw: &Raw, max: u64) -> Result<Vec<u64>, Problem> {
    let one = |raw: &Raw| {
        let time = quantity(Measure::Time, raw)?;
        if time > max {
            return Err(Kind::Times { max }.range());
        }
        Ok(time)
    };
    match raw {
        Raw::List(items) => items.iter().map(one).collect(),
        _ => one(raw).map(|time| vec![time]),
    }
}

fn choice(
    found: &str,
    words: &'static [&'static str],
    planned: &'static [&'static str],
) -> Result<Value, Problem> {
    if let Some(word) = words.iter().find(|word| **word == found) {
        return Ok(Value::Word(word));
    }
    let choices = words.join(", ");
    if planned.contains(&found) {
        return Err(Problem::Unavailable { choices });
    }
    Err(Problem::Choice { choices, suggestion: suggest::nearest(found, words.iter().copied()) })
}

/// Control characters in names and paths would end up in terminals and reports.
fn printable(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

impl Value {
    /// The canonical TOML text.
    pub(crate) fn toml(&self) -> String {
        match self {
            Self::Text(text) => quote(text),
            _ => match self.json() {
                serde_json::Value::String(text) => format!("\"{text}\""),
                serde_json::Value::Array(items) => {
                    let items: Vec<_> = items.iter().map(ToString::to_string).collect();
                    format!("[{}]", items.join(", "))
                }
                other => other.to_string(),
            },
        }
    }

    /// The canonical JSON value.
    pub(crate) fn json(&self) -> serde_json::Value {
        match self {
            Self::Count(count) => (*count).into(),
            Self::Real(number) | Self::Capacity(Capacity::Fraction(number)) => (*number).into(),
            Self::Quantity(measure, value) => measure.format(*value).into(),
            Self::Capacity(Capacity::Bytes(bytes)) | Self::MapCache(Some(bytes)) => {
                Measure::Size.format(*bytes).into()
            }
            Self::Times(times) => match times.as_slice() {
                [time] => Measure::Time.format(*time).into(),
                times => times.iter().map(|time| Measure::Time.format(*time)).collect(),
            },
            Self::Flag(flag) => (*flag).into(),
            Self::Word(word) => (*word).into(),
            Self::Text(text) => text.as_str().into(),
            Self::MapCache(None) => "all".into(),
            Self::Extent(extent) => extent.to_string().into(),
            Self::Buffer(policy) => policy.to_string().into(),
            Self::Victim(policy) => policy.to_string().into(),
            Self::Classifier(policy) => policy.to_string().into(),
        }
    }
}

/// A TOML basic string. [`Kind::Text`] lets no control characters in.
pub(crate) fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
