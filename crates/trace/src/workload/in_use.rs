//! Which units of the range hold data, so that trims hit data.

use onefold_units::Rng;
use onefold_units::convert::{index64, u64_from};

const WORD_BITS: u64 = 64;
/// Words per entry of the coarse counts.
const GROUP_WORDS: usize = 512;
const GROUP_BITS: u64 = 512 * WORD_BITS;
/// Below one unit in use of this many, drawing until one hits costs more than counting.
const SPARSE: u64 = 16;

/// A set of units with uniform sampling: one bit per unit, and one count per 32,768 units.
#[derive(Clone, Debug)]
pub(super) struct InUse {
    units: u64,
    used: u64,
    words: Vec<u64>,
    groups: Vec<u32>,
}

impl InUse {
    /// All of `units` in use, or none.
    pub(super) fn new(units: u64, full: bool) -> Self {
        let words = index64(units.div_ceil(WORD_BITS));
        let mut set = Self {
            units,
            used: 0,
            words: vec![0; words],
            groups: vec![0; words.div_ceil(GROUP_WORDS)],
        };
        if full {
            set.words.fill(u64::MAX);
            let tail = units % WORD_BITS;
            if let Some(last) = set.words.last_mut()
                && tail != 0
            {
                *last = (1 << tail) - 1;
            }
            for (group, words) in set.groups.iter_mut().zip(set.words.chunks(GROUP_WORDS)) {
                *group = words.iter().map(|word| word.count_ones()).sum();
            }
            set.used = units;
        }
        set
    }

    pub(super) const fn used(&self) -> u64 {
        self.used
    }

    pub(super) fn contains(&self, unit: u64) -> bool {
        self.words[index64(unit / WORD_BITS)] >> (unit % WORD_BITS) & 1 == 1
    }

    /// Puts the units `first..end` in use, or takes them out of use.
    pub(super) fn set(&mut self, first: u64, end: u64, used: bool) {
        for unit in first..end.min(self.units) {
            if self.contains(unit) != used {
                self.words[index64(unit / WORD_BITS)] ^= 1 << (unit % WORD_BITS);
                let group = &mut self.groups[index64(unit / GROUP_BITS)];
                if used {
                    *group += 1;
                    self.used += 1;
                } else {
                    *group -= 1;
                    self.used -= 1;
                }
            }
        }
    }

    /// One of the units in use, each with the same probability. `None` if there is none.
    pub(super) fn choose(&self, rng: &mut Rng) -> Option<u64> {
        if self.used == 0 {
            return None;
        }
        if self.used < self.units / SPARSE {
            return self.nth(rng.below(self.used));
        }
        loop {
            let unit = rng.below(self.units);
            if self.contains(unit) {
                return Some(unit);
            }
        }
    }

    /// The unit in use that has `rank` others before it.
    fn nth(&self, rank: u64) -> Option<u64> {
        let mut left = rank;
        let group = self.groups.iter().position(|count| skip(&mut left, u64::from(*count)))?;
        let first = group * GROUP_WORDS;
        let words = &self.words[first..];
        let at = words.iter().position(|word| skip(&mut left, u64::from(word.count_ones())))?;
        let mut word = words[at];
        for _ in 0..left {
            word &= word - 1; // drops the lowest bit
        }
        Some(u64_from(first + at) * WORD_BITS + u64::from(word.trailing_zeros()))
    }
}

/// Whether the item number `left` lies in a group of `count`; if not, steps over the group.
const fn skip(left: &mut u64, count: u64) -> bool {
    let here = *left < count;
    if !here {
        *left -= count;
    }
    here
}

#[cfg(test)]
mod tests {
    use super::InUse;
    use onefold_units::Rng;
    use onefold_units::convert::index64;

    #[test]
    fn nth_lists_the_set_in_order() {
        let mut set = InUse::new(100_003, false);
        let members: Vec<u64> = (0..100_003).filter(|unit| unit % 97 == 5).collect();
        for unit in &members {
            set.set(*unit, unit + 1, true);
        }
        set.set(5, 6, true); // again: no change
        assert_eq!(set.used(), 1_031);
        let listed: Vec<u64> = (0..set.used()).map(|rank| set.nth(rank).unwrap()).collect();
        assert_eq!(listed, members);
    }

    #[test]
    fn choice_is_uniform_when_dense_and_when_sparse() {
        for step in [2, 50] {
            let mut set = InUse::new(5_000, true);
            set.set(0, 5_000, false);
            for unit in (0..5_000).step_by(step) {
                set.set(unit, unit + 1, true);
            }
            let mut hits = vec![0_u64; 5_000];
            let mut rng = Rng::new(1);
            let draws = set.used() * 400;
            for _ in 0..draws {
                hits[index64(set.choose(&mut rng).unwrap())] += 1;
            }
            for (unit, hit) in hits.iter().enumerate() {
                if unit % step == 0 {
                    assert!((290..510).contains(hit), "step {step}: unit {unit} hit {hit} times");
                } else {
                    assert_eq!(*hit, 0, "unit {unit} is not in use");
                }
            }
        }
    }

    #[test]
    fn full_set_ends_at_the_last_unit() {
        let mut set = InUse::new(70, true);
        assert_eq!(set.used(), 70);
        set.set(0, 1_000, false);
        assert_eq!((set.used(), set.choose(&mut Rng::new(1))), (0, None));
    }
}
