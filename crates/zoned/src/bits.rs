//! Validity bits of one block of the metadata.
//!
//! Of a zone that was written in order, is full, or holds nothing, the first blocks are valid and no others: so a number says it all. Bits are
//! kept as they are stored only where there are holes, and what all of them take goes with the holes instead of with the size of the devices.

use std::ops::Range;

use onefold_format::{DMZ_BLOCK_BITS, DMZ_BLOCK_BYTES};
use onefold_units::convert::{index, u32_from};

const WORDS: usize = DMZ_BLOCK_BYTES / 8;

/// Bits of a word.
const WORD: u32 = u64::BITS;

/// The bits of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bits {
    /// So many are set, the first ones.
    First(u32),
    /// Others.
    Mixed {
        /// How many are set.
        count: u32,
        /// The lowest bit of the first word is the first one.
        words: Box<[u64; WORDS]>,
    },
}

/// The bits `start..end` of a word.
const fn mask(start: u32, end: u32) -> u64 {
    let below = if end == WORD { u64::MAX } else { (1 << end) - 1 };
    below & (u64::MAX << start)
}

/// The words that have bits of a range, which is not empty, and which bits of each.
fn words_of(range: Range<u32>) -> impl Iterator<Item = (usize, u64)> {
    (range.start / WORD..range.end.div_ceil(WORD)).map(move |word| {
        let begin = word * WORD;
        let start = range.start.max(begin) - begin;
        (index(word), mask(start, (range.end - begin).min(WORD)))
    })
}

impl Bits {
    /// Those of a block as it is stored.
    pub(crate) fn of(block: &[u8]) -> Self {
        let mut words = Box::new([0; WORDS]);
        for (word, bytes) in words.iter_mut().zip(block.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let mut bits =
            Self::Mixed { count: words.iter().map(|word| word.count_ones()).sum(), words };
        bits.shrink();
        bits
    }

    /// The block as it is stored.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.words().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn words(&self) -> Box<[u64; WORDS]> {
        match self {
            Self::Mixed { words, .. } => words.clone(),
            Self::First(count) => {
                let mut words = Box::new([0; WORDS]);
                if *count > 0 {
                    words_of(0..*count).for_each(|(word, mask)| words[word] = mask);
                }
                words
            }
        }
    }

    /// How many are set.
    pub(crate) const fn count(&self) -> u32 {
        match self {
            Self::First(count) | Self::Mixed { count, .. } => *count,
        }
    }

    /// Sets a range, or clears it. Gives how many changed.
    pub(crate) fn set(&mut self, range: Range<u32>, valid: bool) -> u32 {
        let before = self.count();
        if range.is_empty() {
            return 0;
        }
        if let Self::First(count) = self {
            let Range { start, end } = range;
            let after = match valid {
                true if start <= before => before.max(end),
                false if end >= before => before.min(start),
                _ => return self.set_mixed(range, valid),
            };
            *count = after;
            return after.abs_diff(before);
        }
        self.set_mixed(range, valid)
    }

    fn set_mixed(&mut self, range: Range<u32>, valid: bool) -> u32 {
        let mut count = self.count();
        let mut words = match std::mem::replace(self, Self::First(0)) {
            Self::Mixed { words, .. } => words,
            first @ Self::First(_) => first.words(),
        };
        let before = count;
        for (word, mask) in words_of(range) {
            let word = &mut words[word];
            count -= word.count_ones();
            *word = if valid { *word | mask } else { *word & !mask };
            count += word.count_ones();
        }
        *self = Self::Mixed { count, words };
        self.shrink();
        count.abs_diff(before)
    }

    /// Keeps a number where the first bits are set and no others.
    fn shrink(&mut self) {
        let Self::Mixed { count, words } = self else { return };
        let count = *count;
        let is_set = |bit: u32| words[index(bit / WORD)] >> (bit % WORD) & 1 == 1;
        // Looked at first, as it says no where there are holes, and is fast.
        let may_be = count == 0 || is_set(count - 1);
        if may_be
            && (count == 0 || words_of(0..count).all(|(word, mask)| words[word] & mask == mask))
        {
            *self = Self::First(count);
        }
    }

    /// Whether the first bit of a range is set, and how many from it on are like it. The range is not empty.
    pub(crate) fn run(&self, range: Range<u32>) -> (bool, u32) {
        let Range { start, end } = range;
        match self {
            Self::First(count) if start < *count => (true, end.min(*count) - start),
            Self::First(_) => (false, end - start),
            Self::Mixed { words, .. } => {
                let valid = words[index(start / WORD)] >> (start % WORD) & 1 == 1;
                let alike = if valid { u64::MAX } else { 0 };
                let other = words_of(start..end)
                    .map(|(word, mask)| (u32_from(word), (words[word] ^ alike) & mask))
                    .find(|(_, other)| *other > 0)
                    .map(|(word, other)| word * WORD + other.trailing_zeros());
                (valid, other.unwrap_or(end) - start)
            }
        }
    }

    /// How many of the first `end` are set.
    pub(crate) fn count_before(&self, end: u32) -> u32 {
        match self {
            Self::First(count) => end.min(*count),
            Self::Mixed { count, .. } if end == DMZ_BLOCK_BITS => *count,
            Self::Mixed { .. } if end == 0 => 0,
            Self::Mixed { words, .. } => {
                words_of(0..end).map(|(word, mask)| (words[word] & mask).count_ones()).sum()
            }
        }
    }

    /// Bytes in memory.
    pub(crate) const fn memory(&self) -> usize {
        let beside = match self {
            Self::First(_) => 0,
            Self::Mixed { .. } => DMZ_BLOCK_BYTES,
        };
        size_of::<Self>() + beside
    }
}

#[cfg(test)]
mod tests {
    use onefold_units::Rng;
    use onefold_units::convert::narrow;

    use super::*;

    fn set_in(model: &[bool]) -> u32 {
        u32_from(model.iter().filter(|bit| **bit).count())
    }

    /// A range that begins at either end, at the end of what is set, or anywhere.
    fn random_range(rng: &mut Rng, count: u32, most: u32) -> Range<u32> {
        let start = match rng.below(4) {
            0 => 0,
            1 => count.min(DMZ_BLOCK_BITS - 1),
            _ => narrow(rng.below(DMZ_BLOCK_BITS.into())),
        };
        start..(start + 1 + narrow(rng.below(most.into()))).min(DMZ_BLOCK_BITS)
    }

    #[test]
    fn bits_are_those_of_a_model_whatever_is_kept_of_them() {
        let mut rng = Rng::new(1);
        let (mut bits, mut model) = (Bits::First(0), vec![false; index(DMZ_BLOCK_BITS)]);
        let mut numbers = 0;
        for round in 0..5000 {
            let most = [1, 70, 5000, DMZ_BLOCK_BITS][round % 4];
            let range = random_range(&mut rng, bits.count(), most);
            let (part, valid) = (index(range.start)..index(range.end), rng.below(2) == 1);
            let changed = model[part.clone()].iter().filter(|bit| **bit != valid).count();
            model[part].fill(valid);
            assert_eq!(bits.set(range, valid), u32_from(changed), "round {round}");
            let count = set_in(&model);
            assert_eq!(bits.count(), count);
            let is_first = model[..index(count)].iter().all(|bit| *bit);
            assert_eq!(matches!(bits, Bits::First(_)), is_first, "a number where that is enough");
            numbers += u32::from(is_first);
            let Range { start, end } = random_range(&mut rng, count, DMZ_BLOCK_BITS);
            let first = model[index(start)];
            let alike = model[index(start)..index(end)].iter().take_while(|bit| **bit == first);
            assert_eq!(bits.run(start..end), (first, u32_from(alike.count())));
            assert_eq!(bits.count_before(start), set_in(&model[..index(start)]));
            if round % 50 == 0 {
                let bytes = bits.to_bytes();
                assert_eq!(bytes[index(start / 8)] >> (start % 8) & 1 == 1, first, "lowest first");
                assert_eq!(Bits::of(&bytes), bits);
            }
        }
        assert!((100..4900).contains(&numbers), "{numbers} of 5000 are numbers");
    }
}
