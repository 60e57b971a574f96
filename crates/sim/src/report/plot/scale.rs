//! From values to positions, and where the round ticks are.

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Value on the axis.
    pub at: f64,
    /// Text beside it; empty for a grid line only.
    pub label: String,
}

/// A linear or logarithmic range of values. The range is never empty and never infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Scale {
    /// From 0 to at least `max`.
    #[must_use]
    pub fn from_zero(max: f64) -> Self {
        let high = if max.is_finite() && max > 0.0 { max.clamp(1e-9, 1e24) } else { 1.0 };
        Self { low: 0.0, high, logarithmic: false }
    }

    /// Whole decades around `min` and `max`.
    #[must_use]
    pub fn decades(min: f64, max: f64) -> Self {
        let positive = |value: f64, other: f64| {
            if value.is_finite() && value > 0.0 { value.clamp(1e-12, 1e24) } else { other }
        };
        let min = positive(min, 1.0);
        let max = positive(max, min).max(min);
        // Rounding of log10 must not add a decade to an exact power of ten.
        let low = (min.log10() + 1e-9).floor();
        let high = (max.log10() - 1e-9).ceil().max(low + 1.0);
        Self { low, high, logarithmic: true }
    }

    /// A logarithmic scale from `min` to `max`, or to twice `min` if that is more.
    #[must_use]
    pub fn logarithmic(min: f64, max: f64) -> Self {
        let low = if min.is_finite() { min.clamp(1e-12, 1e24) } else { 1.0 };
        let high = if max.is_finite() { max.clamp(low * 2.0, 2e24) } else { low * 2.0 };
        Self { low: low.log10(), high: high.log10(), logarithmic: true }
    }

    /// Position of a value, 0 at the low end and 1 at the high end, cut to that range.
    #[must_use]
    pub fn position(&self, value: f64) -> f64 {
        let value = if self.logarithmic { value.max(1e-300).log10() } else { value };
        let position = (value - self.low) / (self.high - self.low);
        if position.is_nan() { 0.0 } else { position.clamp(0.0, 1.0) }
    }

    /// The high end of the range.
    #[must_use]
    pub fn high(&self) -> f64 {
        if self.logarithmic { 10.0_f64.powf(self.high) } else { self.high }
    }

    /// The range of a linear scale widened to a whole number of round steps, and those steps:
    /// 1, 2 or 5 times a power of ten, about `wanted` of them.
    #[must_use]
    pub fn rounded(self, wanted: u32) -> (Self, Vec<f64>, usize) {
        let (step, decimals) = round_step(self.high / f64::from(wanted.max(1)));
        let mut steps = vec![0.0];
        while steps.last().is_some_and(|last| *last < self.high * (1.0 - 1e-9)) {
            let next = f64::from(u32::try_from(steps.len()).unwrap_or(u32::MAX)) * step;
            steps.push(next);
        }
        let high = steps.last().copied().unwrap_or(self.high);
        (Self { high, ..self }, steps, decimals)
    }

    /// The powers of ten of a logarithmic scale, with every how manieth gets a label.
    #[must_use]
    pub fn powers(&self, labels_max: u32) -> (Vec<f64>, usize) {
        let mut powers = Vec::new();
        let mut exponent = self.low;
        while exponent <= self.high + 0.5 && powers.len() < 64 {
            powers.push(10.0_f64.powf(exponent.round()));
            exponent += 1.0;
        }
        let labels_max = usize::try_from(labels_max.max(1)).unwrap_or(1);
        let every = powers.len().div_ceil(labels_max);
        (powers, every.max(1))
    }
}

/// The least round step of at least `step`, and the decimals its multiples need.
fn round_step(step: f64) -> (f64, usize) {
    let exponent = step.log10().floor().clamp(-30.0, 30.0);
    let power = 10.0_f64.powf(exponent);
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= step * (1.0 - 1e-9));
    let (factor, exponent) = factor.map_or((1.0, exponent + 1.0), |factor| (factor, exponent));
    let mut decimals = 0;
    let mut left = exponent;
    while left < 0.0 {
        decimals += 1;
        left += 1.0;
    }
    (factor * 10.0_f64.powf(exponent), decimals)
}

#[cfg(test)]
mod tests {
    use super::{Scale, round_step};

    #[test]
    fn steps_are_round() {
        for (max, wanted, last, count) in [
            (6.4, 5, 8.0, 5),
            (1.0, 5, 1.0, 6),
            (0.03, 5, 0.03, 4),
            (1e9, 4, 1e9, 3),
            (7.0, 7, 7.0, 8),
        ] {
            let (scale, steps, _) = Scale::from_zero(max).rounded(wanted);
            assert!((scale.high() - last).abs() < last * 1e-9, "{max}: {steps:?}");
            assert_eq!(steps.len(), count, "{max}: {steps:?}");
        }
        assert_eq!(round_step(0.003).1, 3);
        assert_eq!(round_step(0.1).1, 1);
        assert_eq!(round_step(3.0).1, 0);
    }

    #[test]
    fn any_value_has_a_place() {
        let hostile = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e308, 5e-324];
        for max in hostile {
            let (scale, steps, _) = Scale::from_zero(max).rounded(5);
            assert!(steps.len() < 20 && steps.len() > 1, "{max}: {steps:?}");
            for value in hostile {
                assert!((0.0..=1.0).contains(&scale.position(value)), "{max} {value}");
                let decades = Scale::decades(value, max);
                assert!((0.0..=1.0).contains(&decades.position(value)), "{max} {value}");
                assert!(decades.powers(6).0.len() > 1, "{max} {value}");
            }
        }
    }

    #[test]
    fn decades_are_whole() {
        let scale = Scale::decades(40.0, 3_000.0);
        assert_eq!(scale.powers(8), (vec![10.0, 100.0, 1_000.0, 10_000.0], 1));
        assert!((scale.position(100.0) - 1.0 / 3.0).abs() < 1e-9);
        let exact = Scale::decades(1e-6, 1.0);
        assert_eq!(exact.powers(4).0.len(), 7);
        assert_eq!(exact.powers(4).1, 2);
    }
}
