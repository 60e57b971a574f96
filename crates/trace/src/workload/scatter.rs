//! A bijection that spreads neighbouring ranks over the range.

use onefold_units::Rng;

/// A seeded bijection of `0..count` onto itself.
///
/// Skewed distributions number addresses by popularity. Without scattering, the popular ones would
/// be neighbours, and a stripe or a mapping page would see them all: locality the distribution
/// does not claim. The map multiplies by odd numbers and folds the upper half onto the lower, all
/// modulo the next power of two; values that land past `count` go round again (cycle walking),
/// fewer than 2 rounds on average.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scatter {
    count: u64,
    mask: u64,
    fold: u32,
    factors: [u64; 2],
    shift: u64,
}

impl Scatter {
    /// The bijection number `seed` of `0..count`.
    #[must_use]
    pub const fn new(count: u64, seed: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let mask = if bits == 0 { 0 } else { u64::MAX >> (u64::BITS - bits) };
        let mut rng = Rng::new(seed);
        let fold = if bits < 2 { 1 } else { bits.div_ceil(2) };
        Self {
            count,
            mask,
            fold,
            factors: [rng.next_u64() | 1, rng.next_u64() | 1],
            shift: rng.next_u64(),
        }
    }

    /// The image of `rank`, which is below the count.
    #[must_use]
    #[inline]
    pub fn apply(&self, rank: u64) -> u64 {
        debug_assert!(rank < self.count, "rank {rank} of {}", self.count);
        let mut x = rank;
        loop {
            x = x.wrapping_add(self.shift) & self.mask;
            for factor in self.factors {
                x = x.wrapping_mul(factor) & self.mask;
                x ^= x >> self.fold;
            }
            if x < self.count {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Scatter;
    use onefold_units::convert::index64;

    #[test]
    fn is_a_bijection_for_every_count() {
        for count in (1..=130).chain([1_000, 4_095, 4_096, 4_097]) {
            for seed in 0..4 {
                let scatter = Scatter::new(count, seed);
                let mut hit = vec![false; index64(count)];
                for rank in 0..count {
                    let image = index64(scatter.apply(rank));
                    assert!(!hit[image], "count {count}: {image} is hit twice");
                    hit[image] = true;
                }
            }
        }
    }

    #[test]
    fn neighbours_part() {
        let count = 1 << 20;
        let scatter = Scatter::new(count, 5);
        let near = (1..10_000)
            .filter(|rank| scatter.apply(*rank).abs_diff(scatter.apply(rank - 1)) < count / 100)
            .count();
        // Two random places are that near with probability 2 %.
        assert!((100..400).contains(&near), "{near} of 10,000 neighbours stay within 1 %");
    }
}
