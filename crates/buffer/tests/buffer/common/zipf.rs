//! Zipf-distributed keys of the golden traces.

use onefold_units::Rng;
use onefold_units::convert::{float, floor_u64, low32};

/// Zipf 1.0 ranks by rejection-inversion, as buffer.md section 6 writes it.
pub(crate) struct Zipf {
    count: f64,
    a: f64,
    b: f64,
    c: f64,
}

impl Zipf {
    pub(crate) fn new(count: u64) -> Self {
        let count = float(count);
        let a = f64::ln(1.5) - 1.0;
        Self { count, a, b: f64::ln(count + 0.5), c: 2.0 - 2.5 * f64::exp(-0.5) }
    }

    pub(crate) fn key(&self, rng: &mut Rng) -> u32 {
        loop {
            let u = self.b + rng.unit() * (self.a - self.b);
            let x = u.exp();
            let k = (x + 0.5).floor().clamp(1.0, self.count);
            if k - x <= self.c || u >= (k + 0.5).ln() - 1.0 / k {
                return low32(floor_u64(k) - 1);
            }
        }
    }
}
