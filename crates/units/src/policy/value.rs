//! Values of policy parameters.

use std::fmt;

use crate::convert::{float, narrow};
use crate::numbers::{self, Decimal};

/// A fraction, kept exactly: a third of 513 entries is 171.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    over: u32,
    under: u32,
}

impl Ratio {
    /// `over` / `under`, for `under` > 0.
    #[must_use]
    pub const fn new(over: u32, under: u32) -> Self {
        assert!(under > 0, "a ratio is a fraction of something");
        Self { over, under }
    }

    /// The floor of this share of `count`.
    #[must_use]
    pub fn of(self, count: u32) -> u32 {
        narrow(u64::from(count) * u64::from(self.over) / u64::from(self.under))
    }

    /// As a number.
    #[must_use]
    pub fn real(self) -> f64 {
        float(u64::from(self.over)) / float(u64::from(self.under))
    }

    /// Reads `1/3`, `0.33` or `33%`, exactly.
    fn parse(text: &str) -> Option<Self> {
        if let Some((over, under)) = text.split_once('/') {
            let (over, under): (u32, u32) = (over.trim().parse().ok()?, under.trim().parse().ok()?);
            return Self::reduced(over.into(), under.into());
        }
        let (over, under) = Decimal::share(text).ok()?.fraction()?;
        Self::reduced(over, under)
    }

    /// In lowest terms, unless they are too large.
    fn reduced(over: u128, under: u128) -> Option<Self> {
        let (mut a, mut b) = (over, under);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let lowest = |number: u128| u32::try_from(number / a.max(1)).ok();
        Some(Self { over: lowest(over)?, under: lowest(under).filter(|under| *under > 0)? })
    }
}

/// Value of a policy parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A size in bytes.
    Bytes(u64),
    /// A number.
    Count(u32),
    /// A share.
    Ratio(Ratio),
    /// One of a few words.
    Word(&'static str),
}

impl Value {
    /// The size; 0 for any other kind of value.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => 0,
        }
    }

    /// The number; 0 for any other kind of value.
    #[must_use]
    pub const fn count(self) -> u32 {
        match self {
            Self::Count(count) => count,
            _ => 0,
        }
    }

    /// The share; 0 for any other kind of value.
    #[must_use]
    pub const fn ratio(self) -> Ratio {
        match self {
            Self::Ratio(ratio) => ratio,
            _ => Ratio::new(0, 1),
        }
    }

    /// The word; empty for any other kind of value.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Word(word) => word,
            _ => "",
        }
    }
}

/// What [`Policies::parse`](super::Policies::parse) reads back.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(0) => f.write_str("0B"),
            Self::Bytes(bytes) => f.write_str(&numbers::size_text(*bytes)),
            Self::Count(count) => write!(f, "{count}"),
            Self::Ratio(Ratio { over, under: 1 }) => write!(f, "{over}"),
            Self::Ratio(Ratio { over, under }) => write!(f, "{over}/{under}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// What a parameter can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// A power of two, in bytes.
    PowerOfTwo {
        /// Smallest size.
        least: u64,
        /// Largest size.
        most: u64,
    },
    /// A size in bytes.
    Bytes {
        /// Smallest size.
        least: u64,
        /// Largest size.
        most: u64,
    },
    /// A number.
    Count {
        /// Smallest number.
        least: u32,
        /// Largest number.
        most: u32,
    },
    /// A share from 0 to 1.
    Ratio,
    /// One of these.
    Words(&'static [&'static str]),
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PowerOfTwo { least, most } => write!(
                f,
                "a power of two from {} to {}, such as 1MiB",
                Value::Bytes(*least),
                Value::Bytes(*most)
            ),
            Self::Bytes { least, most } => write!(
                f,
                "a size from {} to {}, such as 16KiB",
                Value::Bytes(*least),
                Value::Bytes(*most)
            ),
            Self::Count { least, most } => write!(f, "a whole number from {least} to {most}"),
            Self::Ratio => f.write_str("a ratio from 0 to 1, such as 1/3, 0.999 or 10%"),
            Self::Words(words) => match words.split_last() {
                Some((last, [])) => f.write_str(last),
                Some((last, rest)) => write!(f, "{} or {last}", rest.join(", ")),
                None => f.write_str("nothing"),
            },
        }
    }
}

/// Reads a value within its limits.
pub(super) fn parse(text: &str, limits: Limits) -> Option<Value> {
    match limits {
        Limits::PowerOfTwo { least, most } => numbers::size(text)
            .ok()
            .filter(|bytes| bytes.is_power_of_two() && (least..=most).contains(bytes))
            .map(Value::Bytes),
        Limits::Bytes { least, most } => {
            let bytes = numbers::size(text).ok();
            bytes.filter(|bytes| (least..=most).contains(bytes)).map(Value::Bytes)
        }
        Limits::Count { least, most } => {
            let count = numbers::count(text).ok().and_then(|count| u32::try_from(count).ok());
            count.filter(|count| (least..=most).contains(count)).map(Value::Count)
        }
        Limits::Ratio => {
            Ratio::parse(text).filter(|ratio| ratio.over <= ratio.under).map(Value::Ratio)
        }
        Limits::Words(words) => {
            words.iter().find(|word| **word == text).map(|word| Value::Word(word))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, Ratio, Value, parse};

    #[test]
    fn ratios_are_exact() {
        assert_eq!(Ratio::new(1, 3).of(513), 171);
        assert_eq!(Ratio::parse("0.999"), Some(Ratio::new(999, 1000)));
        assert_eq!(Ratio::parse("33%"), Some(Ratio::new(33, 100)));
        assert_eq!(Ratio::parse(".5"), Some(Ratio::new(1, 2)));
        assert!((Ratio::new(999, 1000).real() - 0.999).abs() < f64::EPSILON);
        for text in ["", "%", "1/0", "-1", "1e10", "0.12345678901", "4294967296", "x"] {
            assert_eq!(Ratio::parse(text).map(|ratio| (text, ratio)), None);
        }
    }

    #[test]
    fn limits_hold() {
        let chunk = Limits::PowerOfTwo { least: 4096, most: 1 << 30 };
        assert_eq!(parse("1 mib", chunk), Some(Value::Bytes(1 << 20)));
        for text in ["2048", "3MiB", "2GiB", "99999999999999999999", "1TiB", "", "KiB", "1k.5"] {
            assert_eq!(parse(text, chunk), None, "{text}");
        }
        assert_eq!(parse("9", Limits::Count { least: 1, most: 8 }), None);
        assert_eq!(parse("3/2", Limits::Ratio), None);
        assert_eq!(Value::Bytes(0).to_string(), "0B");
    }
}
