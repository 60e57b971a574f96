//! How many logical units map to each slot (RC-table of Wu 2022, section IV-D).
//!
//! 8 bits per slot; the few counts above 254 are in a tree. Differs from the paper's 4 bits, which
//! refuse a sixteenth reference: with Zipf-distributed contents most units sit on pages with more
//! (remap.md, H20). The paper's cap is a configuration.

use std::collections::BTreeMap;

use onefold_units::Ppn;
use onefold_units::convert::{index, index64};

/// In the table: the count is in the tree.
const MANY: u8 = u8::MAX;

/// [`MANY`] as a count: the smallest in the tree.
const MANY_FROM: u32 = 255;

/// Reference counts of all slots.
#[derive(Clone, Debug)]
pub(crate) struct Refs {
    counts: Vec<u8>,
    many: BTreeMap<u32, u32>,
}

onefold_units::keep!(Refs { counts, many });

impl Refs {
    pub(crate) fn new(slots: u64) -> Self {
        Self { counts: vec![0; index64(slots)], many: BTreeMap::new() }
    }

    #[inline]
    pub(crate) fn get(&self, ppn: Ppn) -> u32 {
        match self.counts[ppn.index()] {
            MANY => self.many.get(&ppn.raw()).copied().unwrap_or(MANY_FROM),
            count => u32::from(count),
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, ppn: Ppn) {
        let count = &mut self.counts[ppn.index()];
        if *count < MANY - 1 {
            *count += 1;
        } else {
            *count = MANY;
            *self.many.entry(ppn.raw()).or_insert(MANY_FROM - 1) += 1;
        }
    }

    /// Adds a reference to each of `count` slots.
    #[inline]
    pub(crate) fn add_run(&mut self, first: Ppn, count: u32) {
        let counts = &mut self.counts[first.index()..][..index(count)];
        if counts.iter().all(|count| *count < MANY - 1) {
            for count in counts {
                *count += 1;
            }
        } else {
            for n in 0..count {
                self.add(Ppn::new(first.raw() + n));
            }
        }
    }

    /// Takes one reference away; returns how many are left.
    #[inline]
    pub(crate) fn sub(&mut self, ppn: Ppn) -> u32 {
        let count = &mut self.counts[ppn.index()];
        debug_assert!(*count > 0, "slot {} has no reference to take away", ppn.raw());
        if *count < MANY {
            *count -= 1;
            return u32::from(*count);
        }
        self.sub_many(ppn)
    }

    #[cold]
    fn sub_many(&mut self, ppn: Ppn) -> u32 {
        let left = self.many.get(&ppn.raw()).copied().unwrap_or(MANY_FROM) - 1;
        if left < MANY_FROM {
            self.many.remove(&ppn.raw());
            self.counts[index(ppn.raw())] = MANY - 1;
        } else {
            self.many.insert(ppn.raw(), left);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::Refs;
    use onefold_units::Ppn;

    #[test]
    fn counts_past_the_table_and_back() {
        let mut refs = Refs::new(2);
        let ppn = Ppn::new(1);
        for n in 1..=700 {
            refs.add(ppn);
            assert_eq!(refs.get(ppn), n);
        }
        for n in (0..700).rev() {
            assert_eq!(refs.sub(ppn), n);
            assert_eq!(refs.get(ppn), n);
        }
        assert_eq!(refs.get(Ppn::new(0)), 0);
        assert!(refs.many.is_empty());
    }

    #[test]
    fn a_run_counts_as_its_slots_do() {
        let mut refs = Refs::new(6);
        (0..253).for_each(|_| refs.add(Ppn::new(3)));
        for n in 1..=300 {
            refs.add_run(Ppn::new(1), 4);
            let counts = [0, 1, 2, 3, 4, 5].map(|slot| refs.get(Ppn::new(slot)));
            assert_eq!(counts, [0, n, n, n + 253, n, 0]);
        }
    }
}
