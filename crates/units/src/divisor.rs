//! Division by a number that is fixed at start-up.

use crate::convert::{high_product, low32};

/// Divides 32-bit numbers by a fixed one with a multiplication: addresses are split into
/// superblock, lane and page on every flash operation, and geometries need not be powers of two.
///
/// Source: Lemire, Kaser, Kurz, "Faster remainder by direct computation", 2019, with a 64-bit
/// reciprocal, which is exact for all 32-bit dividends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor {
    reciprocal: u64,
    by: u32,
}

impl Divisor {
    /// A divisor. `None` for zero.
    #[must_use]
    pub fn new(by: u32) -> Option<Self> {
        // 1 has no 64-bit reciprocal (2^64); a zero reciprocal marks it.
        let reciprocal = (u64::MAX.checked_div(u64::from(by))?).wrapping_add(1);
        Some(Self { reciprocal: if by == 1 { 0 } else { reciprocal }, by })
    }

    /// The number to divide by.
    #[must_use]
    pub const fn by(self) -> u32 {
        self.by
    }

    /// Quotient and remainder.
    #[must_use]
    #[inline]
    pub fn split(self, value: u32) -> (u32, u32) {
        if self.reciprocal == 0 {
            return (value, 0);
        }
        let quotient = low32(high_product(self.reciprocal, u64::from(value)));
        // Exact, as the quotient is: there is no overflow to check for.
        (quotient, value.wrapping_sub(quotient.wrapping_mul(self.by)))
    }

    /// Quotient alone.
    #[must_use]
    #[inline]
    pub fn quotient(self, value: u32) -> u32 {
        self.split(value).0
    }
}

#[cfg(test)]
mod tests {
    use super::Divisor;
    use crate::Rng;

    #[test]
    fn equals_division_everywhere() {
        assert_eq!(Divisor::new(0), None);
        let mut rng = Rng::new(1);
        let mut divisors = vec![1, 2, 3, 5, 7, 254, 255, 256, 257, 65_535, u32::MAX - 1, u32::MAX];
        divisors.extend((0..200).map(|_| crate::convert::low32(rng.next_u64() >> 32).max(1)));
        for by in divisors {
            let divisor = Divisor::new(by).unwrap();
            let edges = [0, 1, by - 1, by, by.saturating_add(1), u32::MAX - 1, u32::MAX];
            let random: Vec<u32> =
                (0..500).map(|_| crate::convert::low32(rng.next_u64())).collect();
            for value in edges.into_iter().chain(random) {
                assert_eq!(divisor.split(value), (value / by, value % by), "{value} / {by}");
            }
        }
    }
}
