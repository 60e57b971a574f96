//! Zipf-distributed ranks in constant memory.

use onefold_units::Rng;
use onefold_units::convert::{float, floor_u64};

use super::math::{exp, ln, pow};

/// Draws ranks `0..count` with P(rank = k - 1) proportional to (k + q)^-theta, exactly (up to the 53
/// bits of a draw), with no table and about one draw per rank. Zipf's law has q = 0; a larger shift
/// (Mandelbrot) flattens the head.
///
/// Source: Hoermann and Derflinger, "Rejection-inversion to generate variates from monotone
/// discrete distributions", 1996. With H the integral of h(x) = (x + q)^-theta, u is uniform
/// over (H(1.5) - h(1), H(count + 0.5)], x = H^-1(u) and k = round(x); k is accepted if it is close
/// enough above x (a bound that holds for all k), or if u falls on the part of its interval that
/// belongs to the histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Zipf {
    count: f64,
    theta: f64,
    shift: f64,
    /// 1 - theta, and exactly 0 for the logarithmic case.
    power: f64,
    top: f64,
    width: f64,
    sure: f64,
}

/// A larger shift would cost digits, and no popularity is that flat.
const MAX_SHIFT: f64 = 1e6;
/// Exponents nearer to 1 than this are treated as 1: the general integral would lose digits, and
/// no rank's probability changes by more than 5e-5 of itself.
const NEAR_ONE: f64 = 1e-6;

impl Zipf {
    /// Zipf's law over `count` ranks. `None` for 0 ranks, 2^53 ranks or more, and exponents outside
    /// 0..=10.
    #[must_use]
    pub fn new(count: u64, theta: f64) -> Option<Self> {
        Self::mandelbrot(count, theta, 0.0)
    }

    /// The law of Zipf and Mandelbrot with the shift q, from 0 to a million; `None` as for
    /// [`new`](Self::new).
    #[must_use]
    pub fn mandelbrot(count: u64, theta: f64, shift: f64) -> Option<Self> {
        let is_sane = (0.0..=10.0).contains(&theta) && (0.0..=MAX_SHIFT).contains(&shift);
        if count == 0 || count >= 1 << 53 || !is_sane {
            return None;
        }
        let theta = if (theta - 1.0).abs() < NEAR_ONE { 1.0 } else { theta };
        let mut zipf = Self {
            count: float(count),
            theta,
            shift,
            power: 1.0 - theta,
            top: 0.0,
            width: 0.0,
            sure: 0.0,
        };
        zipf.top = zipf.integral(zipf.count + 0.5);
        zipf.width = zipf.integral(1.5) - zipf.density(1.0) - zipf.top;
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        Some(zipf)
    }

    /// The next rank; 0 is the most frequent.
    #[inline]
    pub fn rank(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.top + rng.unit() * self.width;
            let x = self.inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, self.count);
            if k - x <= self.sure || u >= self.integral(k + 0.5) - self.density(k) {
                return floor_u64(k) - 1;
            }
        }
    }

    fn is_logarithmic(&self) -> bool {
        self.power.abs() < NEAR_ONE
    }

    /// h(x) = (x + q)^-theta.
    fn density(&self, x: f64) -> f64 {
        let x = x + self.shift;
        if self.is_logarithmic() { 1.0 / x } else { pow(x, -self.theta) }
    }

    /// H(x), zero at x + q = 1.
    fn integral(&self, x: f64) -> f64 {
        let x = x + self.shift;
        if self.is_logarithmic() { ln(x) } else { (pow(x, self.power) - 1.0) / self.power }
    }

    fn inverse(&self, u: f64) -> f64 {
        if self.is_logarithmic() {
            return exp(u) - self.shift;
        }
        // Rounding may push the base of the last rank below zero when theta > 1.
        let base = (1.0 + self.power * u).max(f64::MIN_POSITIVE);
        (pow(base, 1.0 / self.power) - self.shift).min(self.count + 0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::Zipf;
    use onefold_units::Rng;
    use onefold_units::convert::{float, index64, low32};

    /// Golden trace G1 of the buffer comparison: the same keys as an independent implementation on
    /// the C library's functions.
    #[test]
    fn golden_keys() {
        let zipf = Zipf::new(100_000, 1.0).unwrap();
        let mut rng = Rng::new(42);
        let mut seen = vec![false; 100_000];
        let mut fnv: u64 = 0xCBF2_9CE4_8422_2325;
        let mut first = Vec::new();
        for _ in 0..1_000_000 {
            let key = zipf.rank(&mut rng);
            seen[index64(key)] = true;
            if first.len() < 6 {
                first.push(key);
            }
            for byte in low32(key).to_le_bytes() {
                fnv = (fnv ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
            }
        }
        assert_eq!(first, [12, 14_425, 3_427, 1_548, 63_099, 2]);
        assert_eq!(seen.iter().filter(|hit| **hit).count(), 80_798);
        assert_eq!(fnv, 0x57A7_DEBB_8843_AFE7);
    }

    #[test]
    fn frequencies_match_the_definition() {
        for (count, theta, shift) in [
            (1_000, 0.0, 0.0),
            (1_000, 0.5, 0.0),
            (500, 0.99, 0.0),
            (200, 1.000_01, 0.0),
            (100, 1.5, 0.0),
            (20, 3.0, 0.0),
            (1, 1.2, 0.0),
            (500, 1.0, 0.8),
            (1_000, 0.96, 2.7),
            (300, 1.42, 51.8),
            (1, 1.2, 7.0),
        ] {
            let draws = 400_000_u32;
            let zipf = Zipf::mandelbrot(count, theta, shift).unwrap();
            let mut rng = Rng::new(7);
            let mut hits = vec![0_u32; index64(count)];
            for _ in 0..draws {
                hits[index64(zipf.rank(&mut rng))] += 1;
            }
            let weights: Vec<f64> = (1..=count).map(|k| (float(k) + shift).powf(-theta)).collect();
            let total: f64 = weights.iter().sum();
            // Chi-square over ranks expected 5 times or more: mean = cells, variance = 2 cells.
            let mut chi = 0.0;
            let mut cells = 0.0;
            for (hit, weight) in hits.iter().zip(&weights) {
                let expected = f64::from(draws) * weight / total;
                if expected >= 5.0 {
                    chi += (f64::from(*hit) - expected).powi(2) / expected;
                    cells += 1.0;
                }
            }
            let bound = cells + 5.0 * f64::sqrt(2.0 * cells);
            assert!(
                chi < bound,
                "theta {theta}, shift {shift}: chi-square {chi} over {cells} ranks"
            );
        }
    }

    #[test]
    fn refuses_what_it_cannot_draw() {
        assert_eq!(Zipf::new(0, 1.0), None);
        assert_eq!(Zipf::new(1 << 53, 1.0), None);
        assert_eq!(Zipf::new(10, -0.1), None);
        assert_eq!(Zipf::new(10, f64::NAN), None);
        assert_eq!(Zipf::mandelbrot(10, 1.0, -0.5), None);
    }
}
