//! Numbers, sizes and shares as people write them: one grammar for configurations, workloads, policies and command lines.
//!
//! ```text
//! number  ::=  digits [. digits] [e [+|-] digits]      _ may stand between digits; 1e6, 1_000, 0.87, .87
//! count   ::=  number [k|M|G|T]                        powers of 1000: 256k is 256,000
//! size    ::=  number [k|M|G|T|B|KiB|kB|...]           k M G T and KiB .. TiB: powers of 1024; kB .. TB: powers of 1000
//! time    ::=  number ns|us|ms|s|min|h|d
//! share   ::=  number [%]                              87% is 0.87
//! ```
//!
//! A letter alone is a power of 1024 where bytes are counted, as in fio and dd, and of 1000 where anything else is. Letters of sizes
//! and counts may be small or capital; spaces may stand before a unit. Numbers are decimal fractions and exact: what is no whole
//! number of the smallest unit is refused, not rounded.

use thiserror::Error;

/// A unit and how many of the smallest unit it holds.
pub type Unit = (&'static str, u64);

/// Units of sizes, in bytes. The binary ones come first, the largest before the others.
pub const SIZES: &[Unit] = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1000),
    ("T", 1 << 40),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("k", 1 << 10),
];

/// Units of counts.
pub const COUNTS: &[Unit] =
    &[("k", 1000), ("M", 1_000_000), ("G", 1_000_000_000), ("T", 1_000_000_000_000)];

/// Units of times, in nanoseconds.
pub const TIMES: &[Unit] = &[
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Digits of a number at most: those of the largest result, and as many again behind the point.
const DIGITS_MAX: usize = 38;

/// Largest exponent, of either sign.
const EXPONENT_MAX: u32 = 99;

/// Why a text is no number of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NumberError {
    /// It does not begin with a number.
    #[error("not a number")]
    Malformed,
    /// What follows the number is no unit.
    #[error("an unknown unit")]
    Unit,
    /// It is no whole number of the smallest unit.
    #[error("no whole number of the smallest unit")]
    TooFine,
    /// It does not fit 64 bits.
    #[error("too large for a 64-bit number")]
    TooLarge,
}

/// A decimal number, exactly: `digits` x 10^`exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    /// The number that a text begins with, and what follows it.
    pub fn split(text: &str) -> Result<(Self, &str), NumberError> {
        let text = text.trim();
        let (whole, rest) = split_digits(text);
        let (part, rest) = match rest.strip_prefix('.').map(split_digits) {
            Some(("", _)) => return Err(NumberError::Malformed),
            Some((part, rest)) => (part, rest),
            None => ("", rest),
        };
        let (exponent, rest) = split_exponent(rest)?;
        let all: String = whole.chars().chain(part.chars()).filter(|c| *c != '_').collect();
        let is_sloppy = |digits: &str| digits.starts_with('_') || digits.ends_with('_');
        if all.is_empty() || is_sloppy(whole) || is_sloppy(part) {
            return Err(NumberError::Malformed);
        }
        if all.len() > DIGITS_MAX {
            return Err(NumberError::TooLarge);
        }
        let behind = part.bytes().filter(u8::is_ascii_digit).count();
        let digits = all.parse().map_err(|_| NumberError::TooLarge)?;
        let behind = i32::try_from(behind).map_err(|_| NumberError::TooLarge)?;
        Ok((Self { digits, exponent: exponent - behind }, rest.trim_start()))
    }

    /// A number with nothing behind it.
    pub fn parse(text: &str) -> Result<Self, NumberError> {
        match Self::split(text)? {
            (number, "") => Ok(number),
            _ => Err(NumberError::Unit),
        }
    }

    /// A number, or a percentage.
    pub fn share(text: &str) -> Result<Self, NumberError> {
        let (Self { digits, exponent }, rest) = Self::split(text)?;
        match rest {
            "" => Ok(Self { digits, exponent }),
            "%" => Ok(Self { digits, exponent: exponent - 2 }),
            _ => Err(NumberError::Unit),
        }
    }

    /// Whether it is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// So many of a unit, in the smallest one.
    pub fn of(self, unit: u64) -> Result<u64, NumberError> {
        if self.is_zero() {
            return Ok(0);
        }
        let power = 10_u128.checked_pow(self.exponent.unsigned_abs());
        let digits = self.digits.checked_mul(unit.into()).ok_or(NumberError::TooLarge)?;
        let total = if self.exponent >= 0 {
            power.and_then(|power| digits.checked_mul(power)).ok_or(NumberError::TooLarge)?
        } else {
            let power = power.ok_or(NumberError::TooFine)?;
            if !digits.is_multiple_of(power) {
                return Err(NumberError::TooFine);
            }
            digits / power
        };
        u64::try_from(total).map_err(|_| NumberError::TooLarge)
    }

    /// As a fraction of two whole numbers, unless they are too large.
    #[must_use]
    pub fn fraction(self) -> Option<(u128, u128)> {
        let power = 10_u128.checked_pow(self.exponent.unsigned_abs())?;
        if self.exponent >= 0 {
            Some((self.digits.checked_mul(power)?, 1))
        } else {
            Some((self.digits, power))
        }
    }

    /// The nearest number with a point.
    #[must_use]
    pub fn real(self) -> f64 {
        // The standard library rounds correctly, and reads what it is given here.
        format!("{}e{}", self.digits, self.exponent).parse().unwrap_or(f64::INFINITY)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !(c.is_ascii_digit() || c == '_')).unwrap_or(text.len()))
}

/// An exponent, 0 if there is none, and what follows.
fn split_exponent(text: &str) -> Result<(i32, &str), NumberError> {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return Ok((0, text)) };
    let (is_negative, rest) = match rest.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, rest.strip_prefix('+').unwrap_or(rest)),
    };
    let (digits, rest) = split_digits(rest);
    if digits.is_empty() || digits.contains('_') {
        return Err(NumberError::Malformed);
    }
    let size = digits.parse::<u32>().ok().filter(|size| *size <= EXPONENT_MAX);
    let size = size.and_then(|size| i32::try_from(size).ok()).ok_or(NumberError::TooLarge)?;
    Ok((if is_negative { -size } else { size }, rest))
}

/// The unit of that name.
fn unit(name: &str, units: &[Unit], any_case: bool) -> Result<u64, NumberError> {
    let is_named = |unit: &&Unit| {
        if any_case { unit.0.eq_ignore_ascii_case(name) } else { unit.0 == name }
    };
    units.iter().find(is_named).map(|(_, factor)| *factor).ok_or(NumberError::Unit)
}

/// Reads a size in bytes; a number without a unit is bytes.
///
/// ```
/// use onefold_units::numbers::{count, real, size};
///
/// assert_eq!(size("8G"), Ok(8 << 30));
/// assert_eq!(size("1.5 MiB"), Ok(3 << 19));
/// assert_eq!(size("4kB"), Ok(4000));
/// assert_eq!(count("256k"), Ok(256_000));
/// assert_eq!(real("87%"), Some(0.87));
/// ```
pub fn size(text: &str) -> Result<u64, NumberError> {
    let (number, name) = Decimal::split(text)?;
    number.of(if name.is_empty() { 1 } else { unit(name, SIZES, true)? })
}

/// Reads a count.
pub fn count(text: &str) -> Result<u64, NumberError> {
    let (number, name) = Decimal::split(text)?;
    number.of(if name.is_empty() { 1 } else { unit(name, COUNTS, true)? })
}

/// Reads a time in nanoseconds. Only zero may stand without a unit.
pub fn time(text: &str) -> Result<u64, NumberError> {
    let (number, name) = Decimal::split(text)?;
    if number.is_zero() && name.is_empty() { Ok(0) } else { number.of(unit(name, TIMES, false)?) }
}

/// Reads a finite number or a percentage, of either sign.
#[must_use]
pub fn real(text: &str) -> Option<f64> {
    let text = text.trim();
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let plain = rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let number = Decimal::share(rest).ok().filter(|_| plain)?.real();
    number.is_finite().then_some(sign * number)
}

/// A size in the largest binary unit that divides it, which [`size`] reads back.
#[must_use]
pub fn size_text(bytes: u64) -> String {
    if bytes == 0 {
        return "0".to_owned();
    }
    let fits = |(name, factor): &&Unit| name.len() == 3 && bytes.is_multiple_of(*factor);
    let (name, factor) = SIZES.iter().find(fits).copied().unwrap_or(("B", 1));
    format!("{}{name}", bytes / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let cases = [
            ("0", 0),
            ("4096", 4096),
            ("4k", 4096),
            ("4K", 4096),
            ("4KiB", 4096),
            ("4 kib", 4096),
            ("4KB", 4000),
            ("1.5MiB", 3 << 19),
            (".5GiB", 1 << 29),
            ("1GB", 1_000_000_000),
            ("2T", 2 << 40),
            ("1e6", 1_000_000),
            ("1e3B", 1000),
            ("1.5e1k", 15 << 10),
            ("25e-1k", 2560),
            ("1_000_000", 1_000_000),
        ];
        for (text, bytes) in cases {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for bytes in [0, 512, 4096, 6144, 1 << 20, 3 << 40, 1_000_000_000] {
            assert_eq!(size(&size_text(bytes)), Ok(bytes));
        }
    }

    #[test]
    fn what_is_no_size_says_why() {
        use NumberError::{Malformed, TooFine, TooLarge, Unit};
        let cases = [
            ("", Malformed),
            ("KiB", Malformed),
            ("-4k", Malformed),
            ("1.k", Malformed),
            ("1..5k", Malformed),
            ("_1", Malformed),
            ("1_", Malformed),
            ("1e", Malformed),
            ("4ms", Unit),
            ("4Ki", Unit),
            ("1.2.3k", Unit),
            ("87%", Unit),
            ("0.3", TooFine),
            ("1e-1", TooFine),
            ("1e-99k", TooFine),
            ("17000000T", TooLarge),
            ("1e99", TooLarge),
            ("1e100", TooLarge),
            ("99999999999999999999999999999999999999999", TooLarge),
            ("18446744073709551616", TooLarge),
        ];
        for (text, error) in cases {
            assert_eq!(size(text), Err(error), "{text}");
        }
        assert_eq!(size("18446744073709551615"), Ok(u64::MAX));
    }

    #[test]
    fn counts_times_and_shares() {
        assert_eq!(count("256k"), Ok(256_000));
        assert_eq!(count("10M"), Ok(10_000_000));
        assert_eq!(count("2.5K"), Ok(2500));
        assert_eq!(count("1e6"), Ok(1_000_000));
        assert_eq!(count("10MiB"), Err(NumberError::Unit));
        assert_eq!(time("52.433us"), Ok(52_433));
        assert_eq!(time("90min"), Ok(5_400_000_000_000));
        assert_eq!(time("0"), Ok(0));
        assert_eq!(time("60"), Err(NumberError::Unit));
        assert_eq!(time("1S"), Err(NumberError::Unit));
        assert_eq!(real("87%"), Some(0.87));
        assert_eq!(real("0.87"), Some(0.87));
        assert_eq!(real("-0.5"), Some(-0.5));
        assert_eq!(real("1e300%"), None);
        for text in ["inf", "nan", "", "%", "--1", "1x", "+-1"] {
            assert_eq!(real(text), None, "{text}");
        }
        assert_eq!(Decimal::share("33%").unwrap().fraction(), Some((33, 100)));
    }
}
