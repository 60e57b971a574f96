//! Numbers as people read them. Every function is total: any value gives some text.

use onefold_units::convert::{float, floor_u64};

/// `part` / `whole`, and 0 where that is undefined.
pub(crate) fn share(part: f64, whole: f64) -> f64 {
    let ratio = part / whole;
    if ratio.is_finite() { ratio } else { 0.0 }
}

/// An integer with separators: `1,234,567`.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A float with `digits` significant digits, integers in full: `6.40`, `133`, `12,345`.
#[must_use]
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    // The exponent after rounding: 9.996 is 10.0, not 10.00.
    let rounded = format!("{value:.*e}", digits.saturating_sub(1));
    let exponent = rounded.rsplit('e').next().and_then(|e| e.parse::<isize>().ok()).unwrap_or(0);
    if !(-4..18).contains(&exponent) {
        return rounded;
    }
    let decimals = digits.saturating_sub(1).saturating_add_signed(-exponent);
    let decimals =
        if exponent >= isize::try_from(digits).unwrap_or(isize::MAX) { 0 } else { decimals };
    if decimals == 0 && value > 0.0 {
        return count(floor_u64(value + 0.5));
    }
    format!("{value:.decimals$}")
}

/// Pages that something was asked to write and that it wrote, and their ratio: `200, 250, 1.250`; `-` for that of none.
#[must_use]
pub fn pages_in_out(pages_in: u64, out: u64) -> String {
    let ratio = significant(float(out) / float(pages_in), 4);
    format!("{}, {}, {ratio}", count(pages_in), count(out))
}

/// [`significant`] without zeroes at the end: `3.5`, `4`.
pub(crate) fn trimmed(value: f64, digits: usize) -> String {
    let text = significant(value, digits);
    if text.contains('.') && !text.contains('e') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// The value in the largest of `units` (name, size, in rising order) it fills.
fn in_units(value: f64, units: &[(&str, f64)]) -> String {
    let chosen = units.iter().rev().find(|(_, size)| value.abs() >= size * 0.9995);
    let (name, size) = chosen.or_else(|| units.first()).copied().unwrap_or(("", 1.0));
    let space = if name.is_empty() { "" } else { " " };
    format!("{}{space}{name}", significant(value / size, 3))
}

/// A count in three digits: `245 k`.
pub(crate) fn si(value: f64) -> String {
    let units = [("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15)];
    if value.is_finite() && value.abs() < 999.5 && value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    in_units(value, &units)
}

/// Nanoseconds in three digits: `133 us`.
#[must_use]
pub fn duration(ns: f64) -> String {
    const HOUR: f64 = 3.6e12;
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("h", HOUR)];
    if ns == 0.0 { "0".to_owned() } else { in_units(ns, &units) }
}

/// Bytes in binary units: `3.5 GiB`.
#[must_use]
pub fn bytes(value: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = float(value);
    let mut name = 0;
    while scaled >= 1024.0 && name + 1 < units.len() {
        scaled /= 1024.0;
        name += 1;
    }
    format!("{} {}", trimmed(scaled, 4), units[name])
}

/// A share as percentage in three digits: `12.5 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{} %", trimmed(share * 100.0, 3))
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, duration, pages_in_out, percent, share, si, significant, trimmed};

    #[test]
    fn pages_in_and_out_have_a_ratio_unless_nothing_came_in() {
        assert_eq!(pages_in_out(2_000, 2_500), "2,000, 2,500, 1.250");
        assert_eq!(pages_in_out(0, 40), "0, 40, -");
        assert_eq!(pages_in_out(0, 0), "0, 0, -");
    }

    #[test]
    fn numbers_keep_their_digits() {
        let cases = [
            (6.404, "6.40"),
            (9.996, "10.0"),
            (99.96, "100"),
            (133.4, "133"),
            (12_345.4, "12,345"),
            (0.1234, "0.123"),
            (0.012_34, "0.0123"),
            (0.0, "0"),
            (f64::NAN, "-"),
            (f64::INFINITY, "-"),
            (1e300, "1.00e300"),
            (1e-9, "1.00e-9"),
        ];
        for (value, text) in cases {
            assert_eq!(significant(value, 3), text, "{value}");
        }
        assert_eq!(trimmed(3.50, 3), "3.5");
        assert_eq!(trimmed(100.0, 3), "100");
    }

    #[test]
    fn units_fit_the_value() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(duration(0.0), "0");
        assert_eq!(duration(950.0), "950 ns");
        assert_eq!(duration(133_400.0), "133 us");
        assert_eq!(duration(999_990.0), "1.00 ms");
        assert_eq!(duration(7.2e12), "2.00 h");
        assert_eq!(si(32.0), "32");
        assert_eq!(si(245_312.0), "245 k");
        assert_eq!(bytes(3_758_096_384), "3.5 GiB");
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(u64::MAX), "16,384 PiB");
        assert_eq!(percent(0.125), "12.5 %");
        assert!(share(1.0, 0.0).abs() < f64::EPSILON);
    }
}
