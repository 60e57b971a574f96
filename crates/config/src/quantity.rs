//! Numbers with units: sizes, times and rates, read strictly and written exactly.
//!
//! Values are integers in the smallest unit (bytes, nanoseconds, bytes per second). A text that is
//! no whole number of them is refused instead of rounded.

use onefold_units::convert::{float, floor_u64};
use onefold_units::numbers::{self, Decimal, NumberError, Unit};

use crate::problem::Problem;
use crate::suggest;

/// What a number with a unit measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Bytes.
    Size,
    /// Nanoseconds.
    Time,
    /// Bytes per second.
    Rate,
}

const RATES: &[Unit] = &[
    ("GB/s", 1_000_000_000),
    ("MB/s", 1_000_000),
    ("kB/s", 1000),
    ("B/s", 1),
    ("GiB/s", 1 << 30),
    ("MiB/s", 1 << 20),
    ("KiB/s", 1 << 10),
];
/// Units of canonical rates; the binary ones are only read.
const DECIMAL_RATES: usize = 4;
/// Units of canonical times; the longer ones are only read.
const SHORT_TIMES: usize = 4;

impl Measure {
    const fn units(self) -> &'static [Unit] {
        match self {
            Self::Size => numbers::SIZES,
            Self::Time => numbers::TIMES,
            Self::Rate => RATES,
        }
    }

    /// The kind of value with an example, for messages.
    pub(crate) const fn expectation(self) -> &'static str {
        match self {
            Self::Size => "a size with a unit, such as \"4KiB\"",
            Self::Time => "a time with a unit, such as \"60us\"",
            Self::Rate => "a rate with a unit, such as \"400MB/s\"",
        }
    }

    /// The accepted units in one line.
    pub(crate) fn unit_list(self) -> String {
        self.units().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    /// Reads `text`. Only zero may stand without a unit: a configuration is read long after it was written.
    pub(crate) fn parse(self, text: &str) -> Result<u64, Problem> {
        let problem = |error| match error {
            NumberError::TooFine => Problem::TooFine { smallest: self.smallest(), near: None },
            NumberError::TooLarge => Problem::TooLarge,
            _ => Problem::Expected { what: self.expectation().to_owned() },
        };
        let (number, unit) = Decimal::split(text).map_err(problem)?;
        if !unit.is_empty() {
            let factor = self.factor(unit)?;
            return number.of(factor).map_err(|error| match error {
                NumberError::TooFine => Problem::TooFine {
                    smallest: self.smallest(),
                    near: self.below(number.real(), factor),
                },
                error => problem(error),
            });
        }
        if number.is_zero() {
            return Ok(0);
        }
        Err(Problem::NoUnit { what: self.expectation(), units: self.unit_list() })
    }

    /// A size that is a whole number of the binary unit below `factor`, and not more than so many `factor`s.
    fn below(self, number: f64, factor: u64) -> Option<String> {
        if self != Self::Size {
            return None;
        }
        let is_binary = |(name, size): &&Unit| *size < factor && name.len() != 2;
        let (name, size) = self.units().iter().find(is_binary)?;
        let whole = floor_u64(number * (float(factor) / float(*size)));
        (whole > 0).then(|| format!("{whole}{name}"))
    }

    fn factor(self, unit: &str) -> Result<u64, Problem> {
        let is_named = |(name, _): &&Unit| match self {
            Self::Time => *name == unit,
            Self::Size | Self::Rate => name.eq_ignore_ascii_case(unit),
        };
        let known = self.units().iter().find(is_named);
        known.map(|(_, factor)| *factor).ok_or_else(|| Problem::UnknownUnit {
            unit: unit.to_owned(),
            units: self.unit_list(),
            suggestion: suggest::nearest(unit, self.units().iter().map(|(name, _)| *name)),
        })
    }

    const fn smallest(self) -> &'static str {
        match self {
            Self::Size => "1 B",
            Self::Time => "1 ns",
            Self::Rate => "1 B/s",
        }
    }

    /// The canonical text, which reads back as exactly `value`.
    pub(crate) fn format(self, value: u64) -> String {
        if value == 0 {
            return "0".to_owned();
        }
        match self {
            Self::Size => numbers::size_text(value),
            Self::Time => decimal(value, &numbers::TIMES[..SHORT_TIMES]),
            Self::Rate => decimal(value, &RATES[..DECIMAL_RATES]),
        }
    }
}

/// Reads a size such as `4KiB`, in bytes. Only zero may stand without a unit.
pub fn size(text: &str) -> Result<u64, Problem> {
    Measure::Size.parse(text)
}

/// Reads a time such as `60us`, in nanoseconds. Only zero may stand without a unit.
pub fn time(text: &str) -> Result<u64, Problem> {
    Measure::Time.parse(text)
}

/// A size as [`size`] reads it back: `1.5GiB`.
#[must_use]
pub fn size_text(bytes: u64) -> String {
    Measure::Size.format(bytes)
}

/// `value` in the largest unit that is not larger than it, as an exact decimal.
fn decimal(value: u64, units: &[Unit]) -> String {
    let (name, factor) =
        units.iter().find(|(_, factor)| value >= *factor).copied().unwrap_or(("", 1));
    let (whole, rest) = (value / factor, value % factor);
    if rest == 0 {
        return format!("{whole}{name}");
    }
    let width = factor.ilog10() as usize;
    let part = format!("{rest:0width$}");
    format!("{whole}.{}{name}", part.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::Measure;

    #[test]
    fn texts_become_exact_integers() {
        let cases = [
            (Measure::Size, "4KiB", 4096),
            (Measure::Size, "1.5GiB", 3 << 29),
            (Measure::Size, "300 GB", 300_000_000_000),
            (Measure::Size, "4K", 4096),
            (Measure::Size, "8G", 8 << 30),
            (Measure::Size, "1e6 B", 1_000_000),
            (Measure::Size, "0", 0),
            (Measure::Time, "52.433us", 52_433),
            (Measure::Time, "2ms", 2_000_000),
            (Measure::Rate, "400MB/s", 400_000_000),
            (Measure::Rate, "1GiB/s", 1 << 30),
        ];
        for (measure, text, expected) in cases {
            assert_eq!(measure.parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn canonical_texts_are_short_and_exact() {
        let cases = [
            (Measure::Size, 4096, "4KiB"),
            (Measure::Size, 4097, "4097B"),
            (Measure::Size, 36 << 30, "36GiB"),
            (Measure::Time, 29_760, "29.76us"),
            (Measure::Time, 1_913_640, "1.91364ms"),
            (Measure::Time, 7, "7ns"),
            (Measure::Rate, 3_360_000_000, "3.36GB/s"),
            (Measure::Rate, 0, "0"),
        ];
        for (measure, value, expected) in cases {
            assert_eq!(measure.format(value), expected);
            assert_eq!(measure.parse(expected).unwrap(), value);
        }
    }

    #[test]
    fn sloppy_texts_are_refused() {
        for text in ["4096", "4Ki", "1.GiB", "1..5GiB", "-1GiB", "GiB", "", "1e6"] {
            assert!(Measure::Size.parse(text).is_err(), "{text}");
        }
        assert!(Measure::Time.parse("0.5ns").is_err());
        assert!(Measure::Size.parse("99999999999TiB").is_err());
        assert!(Measure::Time.parse("60").is_err());
    }
}
