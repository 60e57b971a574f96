//! An axis: scale, ticks, title with unit.

use onefold_units::convert::float;

use super::scale::{Scale, Tick};
use crate::result::{bytes, duration, si, trimmed};

/// One axis of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub(super) title: String,
    pub(super) scale: Scale,
    pub(super) ticks: Vec<Tick>,
}

/// About how many ticks an axis has.
const TICKS: u32 = 7;
/// Labels a logarithmic axis has room for.
const POWER_LABELS: u32 = 8;
/// The same of sizes, which are longer.
const LABELS_OF_SIZES: usize = 12;

impl Axis {
    /// Plain numbers from 0.
    #[must_use]
    pub fn number(title: &str, max: f64) -> Self {
        Self::linear(title, max, 1.0, |value, decimals| {
            if value >= 10_000.0 { si(value) } else { format!("{value:.decimals$}") }
        })
    }

    /// Shares from 0, as percentages.
    #[must_use]
    pub fn share(title: &str, max: f64) -> Self {
        Self::linear(&format!("{title} (%)"), max.min(1.0), 0.01, |value, decimals| {
            format!("{value:.decimals$}")
        })
    }

    /// Times from 0 in one unit that fits the largest.
    #[must_use]
    pub fn time(title: &str, max_ns: f64) -> Self {
        let units =
            [("ns", 1.0), ("\u{b5}s", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 6e10), ("h", 3.6e12)];
        let fits = |(_, size): &&(&str, f64)| max_ns >= size * 2.0;
        let (unit, size) = units.iter().rev().find(fits).copied().unwrap_or(("ns", 1.0));
        Self::linear(&format!("{title} ({unit})"), max_ns, size, |value, decimals| {
            if value >= 100_000.0 { si(value) } else { format!("{value:.decimals$}") }
        })
    }

    /// Virtual time from 0, ending where the data ends and not at the next round time.
    #[must_use]
    pub fn time_span(title: &str, max_ns: f64) -> Self {
        let mut axis = Self::time(title, max_ns);
        axis.scale = Scale::from_zero(max_ns);
        let end = axis.scale.high() * (1.0 + 1e-9);
        axis.ticks.retain(|tick| tick.at <= end);
        axis
    }

    /// Times on a logarithmic scale.
    #[must_use]
    pub fn time_log(title: &str, min_ns: f64, max_ns: f64) -> Self {
        Self::logarithmic(title, Scale::decades(min_ns, max_ns), |value| {
            if value < 1.0 { format!("{value} ns") } else { compact(&duration(value)) }
        })
    }

    /// Shares up to 1 on a logarithmic scale, as percentages.
    #[must_use]
    pub fn share_log(title: &str, min: f64) -> Self {
        Self::logarithmic(title, Scale::decades(min.min(0.1), 1.0), |value| {
            format!("{} %", trimmed(value * 100.0, 1))
        })
    }

    /// Sizes in bytes on a logarithmic scale from `min` to `max`, with ticks at powers of two.
    #[must_use]
    pub fn size_log(title: &str, min: u64, max: u64) -> Self {
        let min = min.max(1);
        let max = max.max(min.saturating_mul(2));
        let powers = min.next_power_of_two().ilog2()..=max.ilog2();
        let every = powers.clone().count().div_ceil(LABELS_OF_SIZES).max(1);
        let tick = |(n, power): (usize, u32)| {
            let at = 1_u64 << power;
            let label = if n.is_multiple_of(every) { bytes(at) } else { String::new() };
            Tick { at: float(at), label }
        };
        let ticks = powers.enumerate().map(tick).collect();
        let scale = Scale::logarithmic(float(min), float(max));
        Self { title: title.to_owned(), scale, ticks }
    }

    fn linear(title: &str, max: f64, size: f64, label: impl Fn(f64, usize) -> String) -> Self {
        let (scale, steps, decimals) = Scale::from_zero(max / size).rounded(TICKS);
        let tick = |at: &f64| Tick { at: at * size, label: label(*at, decimals) };
        let ticks = steps.iter().map(tick).collect();
        Self { title: title.to_owned(), scale: Scale::from_zero(scale.high() * size), ticks }
    }

    fn logarithmic(title: &str, scale: Scale, label: impl Fn(f64) -> String) -> Self {
        let (powers, every) = scale.powers(POWER_LABELS);
        let numbered = powers.iter().enumerate();
        let text =
            |n: usize, at: f64| if n.is_multiple_of(every) { label(at) } else { String::new() };
        let ticks = numbered.map(|(n, &at)| Tick { at, label: text(n, at) }).collect();
        Self { title: title.to_owned(), scale, ticks }
    }
}

/// `1.00 us` of a power of ten as `1 us`, with the sign of micro.
fn compact(text: &str) -> String {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let number = number.split('.').next().filter(|whole| *whole != "0").unwrap_or(number);
    format!("{number} {}", unit.replace("us", "\u{b5}s"))
}

#[cfg(test)]
mod tests {
    use super::Axis;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn labels_carry_round_numbers_and_units() {
        assert_eq!(labels(&Axis::number("WAF", 9.4)), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(&Axis::number("WAF", 1.0)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&Axis::share("valid", 1.0)), ["0", "20", "40", "60", "80", "100"]);
        let time = Axis::time("virtual time", 80e9);
        assert_eq!(time.title, "virtual time (s)");
        assert_eq!(labels(&time), ["0", "20", "40", "60", "80"]);
        let span = Axis::time_span("virtual time", 73e9);
        assert_eq!(labels(&span), ["0", "20", "40", "60"]);
        assert!((span.scale.position(36.5e9) - 0.5).abs() < 1e-9);
        let log = Axis::time_log("latency", 40_000.0, 3e7);
        assert_eq!(labels(&log), ["10 \u{b5}s", "100 \u{b5}s", "1 ms", "10 ms", "100 ms"]);
        let sizes = Axis::size_log("buffer", 65_536, 300_000);
        assert_eq!(labels(&sizes), ["64 KiB", "128 KiB", "256 KiB"]);
        assert!((sizes.scale.position(65_536.0)).abs() < 1e-9);
        let share = Axis::share_log("slower", 1e-3);
        assert_eq!(labels(&share), ["0.1 %", "1 %", "10 %", "100 %"]);
    }
}
