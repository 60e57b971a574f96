//! The only source of randomness in the core.

use crate::convert::{float, high_product};

/// `SplitMix64`: small, fast, and fixed for all time, so that a seed means the same run on every
/// machine and in every version.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. `below` and
/// `unit` are the definitions the golden traces of the buffer specification use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(u64);

crate::keep!(Rng(state));

impl Rng {
    /// A generator whose state is `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// An independent generator for the purpose called `stream`, so that adding draws in one place
    /// does not change those of another.
    #[must_use]
    pub fn fork(seed: u64, stream: u64) -> Self {
        let mut mixer = Self(seed ^ stream.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        Self(mixer.next_u64())
    }

    /// The next 64 random bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; 0 if `bound` is 0. The bias is below `bound` / 2^64.
    #[inline]
    pub const fn below(&mut self, bound: u64) -> u64 {
        high_product(self.next_u64(), bound)
    }

    /// A number in [0, 1) with 53 random bits.
    #[inline]
    pub const fn unit(&mut self) -> f64 {
        float(self.next_u64() >> 11) * (1.0 / 9_007_199_254_740_992.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn first_numbers_are_fixed_for_all_time() {
        // Reference values of the published SplitMix64 for state 0.
        let mut rng = Rng::new(0);
        assert_eq!(rng.next_u64(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(rng.next_u64(), 0x6E78_9E6A_A1B9_65F4);
        assert_eq!(rng.next_u64(), 0x06C4_5D18_8009_454F);
    }
}
