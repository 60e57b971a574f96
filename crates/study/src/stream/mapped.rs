//! One bit per entry of the device: whether it holds data.

use onefold_units::convert::index;

/// The entries that were written and not trimmed since, whatever buffer is in front of them.
#[derive(Clone, Debug)]
pub(crate) struct MappedEntries {
    words: Vec<u64>,
}

impl MappedEntries {
    /// Nothing of `entries` entries.
    pub(crate) fn new(entries: u32) -> Self {
        // One more word, so that a copy can always look at the next one.
        Self { words: vec![0; index(entries / 64) + 2] }
    }

    /// Appends the bits of `n` entries from `first` on to `out`, from bit 0 of a new word; bits past
    /// the last entry are 0.
    pub(crate) fn copy(&self, first: u32, n: u32, out: &mut Vec<u64>) {
        let (mut at, shift) = (index(first / 64), first % 64);
        let mut left = n;
        while left > 0 {
            let low = self.words[at] >> shift;
            let high = if shift == 0 { 0 } else { self.words[at + 1] << (64 - shift) };
            let word = low | high;
            out.push(if left < 64 { word & ((1 << left) - 1) } else { word });
            at += 1;
            left = left.saturating_sub(64);
        }
    }

    /// Sets or clears the bits of `n` entries from `first` on.
    pub(crate) fn set(&mut self, first: u32, n: u32, value: bool) {
        let (mut at, mut bit) = (index(first / 64), first % 64);
        let mut left = n;
        while left > 0 {
            let bits = left.min(64 - bit);
            let mask = (u64::MAX >> (64 - bits)) << bit;
            if value {
                self.words[at] |= mask;
            } else {
                self.words[at] &= !mask;
            }
            (at, bit, left) = (at + 1, 0, left - bits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MappedEntries;
    use onefold_units::Rng;
    use onefold_units::convert::{index, narrow};

    #[test]
    fn equal_to_a_list_of_flags() {
        let mut rng = Rng::new(7);
        let mut map = MappedEntries::new(1000);
        let mut flags = vec![false; 1000];
        for _ in 0..2000 {
            let first = narrow(rng.below(1000));
            let n = narrow(rng.below(u64::from(1000 - first))) + 1;
            let range = index(first)..index(first + n);
            let mut bits = Vec::new();
            map.copy(first, n, &mut bits);
            for (at, flag) in flags[range.clone()].iter().enumerate() {
                assert_eq!(bits[at / 64] >> (at % 64) & 1 == 1, *flag);
            }
            let ones: u32 = bits.iter().map(|word| word.count_ones()).sum();
            assert_eq!(index(ones), flags[range.clone()].iter().filter(|flag| **flag).count());
            let value = rng.below(2) == 0;
            map.set(first, n, value);
            flags[range].fill(value);
        }
    }
}
