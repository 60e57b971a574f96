//! Values of policy parameters.

use std::fmt;

use onefold_units::convert::{float, narrow};

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

    const fn reduced(self) -> Self {
        let (mut a, mut b) = (self.over, self.under);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Self { over: self.over / a, under: self.under / a }
    }

    /// Reads `1/3`, `0.33` or `33%`, exactly, with up to 9 digits.
    fn parse(text: &str) -> Option<Self> {
        if let Some((over, under)) = text.split_once('/') {
            let (over, under) = (over.trim().parse().ok()?, under.trim().parse().ok()?);
            return (under > 0).then(|| Self { over, under }.reduced());
        }
        let (digits, mut under) = match text.strip_suffix('%') {
            Some(percent) => (percent.trim(), 100),
            None => (text, 1_u32),
        };
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
        let all = format!("{whole}{decimals}");
        if all.len() > 9 || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        for _ in decimals.bytes() {
            under = under.checked_mul(10)?;
        }
        let over = all.parse().ok()?;
        Some(Self { over, under }.reduced())
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

/// What [`PolicySpec::parse`](crate::PolicySpec::parse) reads back.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes_text(*bytes, f),
            Self::Count(count) => write!(f, "{count}"),
            Self::Ratio(Ratio { over, under: 1 }) => write!(f, "{over}"),
            Self::Ratio(Ratio { over, under }) => write!(f, "{over}/{under}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

const UNITS: [(&str, u32); 4] = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

fn bytes_text(bytes: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let whole = |(_, shift): &&(&str, u32)| bytes != 0 && bytes.trailing_zeros() >= *shift;
    let (unit, shift) = UNITS.iter().find(whole).copied().unwrap_or(("B", 0));
    write!(f, "{}{unit}", bytes >> shift)
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
pub(crate) fn parse(text: &str, limits: Limits) -> Option<Value> {
    match limits {
        Limits::PowerOfTwo { least, most } => bytes(text)
            .filter(|bytes| bytes.is_power_of_two() && (least..=most).contains(bytes))
            .map(Value::Bytes),
        Limits::Bytes { least, most } => {
            bytes(text).filter(|bytes| (least..=most).contains(bytes)).map(Value::Bytes)
        }
        Limits::Count { least, most } => {
            text.parse().ok().filter(|count| (least..=most).contains(count)).map(Value::Count)
        }
        Limits::Ratio => {
            Ratio::parse(text).filter(|ratio| ratio.over <= ratio.under).map(Value::Ratio)
        }
        Limits::Words(words) => {
            words.iter().find(|word| **word == text).map(|word| Value::Word(word))
        }
    }
}

/// Reads `4096`, `4KiB` or `16 MiB`.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let unit = unit.trim();
    if unit.is_empty() {
        return Some(number);
    }
    let (_, shift) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    number.checked_mul(1_u64.checked_shl(*shift)?)
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
        for text in ["", "%", "1/0", "-1", "1e3", "0.1234567890", "4294967296", "x"] {
            assert_eq!(Ratio::parse(text).map(|ratio| (text, ratio)), None);
        }
    }

    #[test]
    fn limits_hold() {
        let chunk = Limits::PowerOfTwo { least: 4096, most: 1 << 30 };
        assert_eq!(parse("1 mib", chunk), Some(Value::Bytes(1 << 20)));
        for text in ["2048", "3MiB", "2GiB", "99999999999999999999", "1TiB", "", "KiB"] {
            assert_eq!(parse(text, chunk), None, "{text}");
        }
        assert_eq!(parse("9", Limits::Count { least: 1, most: 8 }), None);
        assert_eq!(parse("3/2", Limits::Ratio), None);
        assert_eq!(Value::Bytes(0).to_string(), "0B");
    }
}
