//! A set of mapping units, one bit each.

use onefold_units::Lpn;
use onefold_units::convert::{index, narrow, u64_from};

/// Bits of a word.
const WORD: u32 = 64;

/// Units below a limit; those beyond it are never in the set.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnitSet {
    words: Vec<u64>,
}

onefold_units::keep!(UnitSet { words });

impl UnitSet {
    /// No units, and room for those below `units`.
    pub(crate) fn new(units: u32) -> Self {
        Self { words: vec![0; index(units.div_ceil(WORD))] }
    }

    /// Whether any unit can be in the set.
    pub(crate) const fn tracks(&self) -> bool {
        !self.words.is_empty()
    }

    /// Number of units in the set.
    pub(crate) fn len(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    #[inline]
    pub(crate) fn insert(&mut self, lpn: Lpn) {
        if let Some(word) = self.words.get_mut(index(lpn.raw() / WORD)) {
            *word |= 1 << (lpn.raw() % WORD);
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, lpn: Lpn) {
        if let Some(word) = self.words.get_mut(index(lpn.raw() / WORD)) {
            *word &= !(1 << (lpn.raw() % WORD));
        }
    }

    #[inline]
    pub(crate) fn contains(&self, lpn: Lpn) -> bool {
        let word = self.words.get(index(lpn.raw() / WORD)).copied().unwrap_or(0);
        word >> (lpn.raw() % WORD) & 1 == 1
    }

    /// The units of the set among `n` from `first` on, ascending; whole empty words are skipped.
    pub(crate) fn within(&self, first: Lpn, n: u32) -> impl Iterator<Item = Lpn> {
        let begin = u64::from(first.raw());
        let end = (begin + u64::from(n)).min(u64_from(self.words.len()) * u64::from(WORD));
        let word = u64::from(WORD);
        let words = begin / word..end.div_ceil(word);
        words.flat_map(move |at| {
            let start = at * word;
            let mut bits = self.words[index(narrow(at))];
            bits &= u64::MAX << begin.saturating_sub(start);
            bits &= u64::MAX >> (start + word).saturating_sub(end);
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros();
                bits &= bits.checked_sub(1)?;
                Some(Lpn::new(narrow(start + u64::from(bit))))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use onefold_units::convert::narrow;
    use onefold_units::{Lpn, Rng};

    use super::UnitSet;

    /// Against a set of numbers, at the edges of words and of the space.
    #[test]
    fn it_is_a_set() {
        let units = 200;
        let mut rng = Rng::new(5);
        let (mut set, mut model) = (UnitSet::new(units), BTreeSet::new());
        for _ in 0..5000 {
            let lpn = narrow(rng.below(units.into()));
            if rng.below(2) == 0 {
                set.insert(Lpn::new(lpn));
                model.insert(lpn);
            } else {
                set.remove(Lpn::new(lpn));
                model.remove(&lpn);
            }
            let (first, n) = (narrow(rng.below(220)), narrow(rng.below(220)));
            let found: Vec<u32> = set.within(Lpn::new(first), n).map(Lpn::raw).collect();
            let expected: Vec<u32> = model.range(first..first + n).copied().collect();
            assert_eq!(found, expected, "{n} from {first}");
            assert_eq!(set.contains(Lpn::new(lpn)), model.contains(&lpn));
        }
    }

    #[test]
    fn units_beyond_the_limit_are_never_in_it() {
        let mut set = UnitSet::default();
        set.insert(Lpn::new(u32::MAX));
        set.remove(Lpn::new(0));
        assert!(!set.contains(Lpn::new(u32::MAX)));
        assert_eq!(set.within(Lpn::new(u32::MAX), u32::MAX).count(), 0);
    }
}
