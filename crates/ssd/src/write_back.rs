//! Victims on their way to flash (`writeback = async`): a bounded pool of slots.
//!
//! A victim leaves the policy when it is chosen, its bytes move to a slot of the pool, and its
//! program begins at once. The slot is taken until the program ends. Until then reads of the unit
//! are served from it; a write takes an entry of the buffer as if the unit were not there, and the
//! newer victim of a unit hides the older one. If no slot is free, the next victim waits for the
//! program that ends first (buffer.md section 1).
//!
//! Bytes reach the medium when the program is submitted, in both clocks: the pool decides when
//! things happen and where reads are served, never what is stored.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use onefold_units::convert::index;
use onefold_units::{Lpn, Nanos};

/// The slots of victims whose programs have not ended.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// Ends of the programs under way and their slots, earliest first.
    ends: BinaryHeap<Reverse<(Nanos, u32)>>,
    free: Vec<u32>,
    /// The unit in each slot; only meaningful in slots that are taken.
    units: Vec<Lpn>,
    /// The slot of the newest victim of each unit.
    newest: BTreeMap<Lpn, u32>,
    /// All slots, one after the other; empty where no bytes are stored.
    bytes: Vec<u8>,
    unit: usize,
}

onefold_units::keep!(Pool { ends, free, units, newest, bytes } but { unit });

impl Pool {
    /// `slots` free slots, at least one; `unit` bytes each, 0 where none are stored.
    pub(crate) fn new(slots: u32, unit: usize) -> Self {
        let slots = slots.max(1);
        Self {
            ends: BinaryHeap::new(),
            free: (0..slots).rev().collect(),
            units: vec![Lpn::new(0); index(slots)],
            newest: BTreeMap::new(),
            bytes: vec![0; index(slots) * unit],
            unit,
        }
    }

    /// Frees the slots of programs that have ended at `now`.
    pub(crate) fn retire(&mut self, now: Nanos) {
        while self.ends.peek().is_some_and(|Reverse((end, _))| *end <= now) {
            self.retire_first();
        }
    }

    fn retire_first(&mut self) -> Option<Nanos> {
        let Reverse((end, slot)) = self.ends.pop()?;
        let unit = self.units[index(slot)];
        if self.newest.get(&unit) == Some(&slot) {
            self.newest.remove(&unit);
        }
        self.free.push(slot);
        Some(end)
    }

    /// When a slot is free, at `ready` or later.
    pub(crate) fn wait(&mut self, ready: Nanos) -> Nanos {
        if !self.free.is_empty() {
            return ready;
        }
        self.retire_first().map_or(ready, |end| ready.max(end))
    }

    /// Takes a victim whose program ends at `end`. A slot has to be free: [`Pool::wait`].
    pub(crate) fn take(&mut self, lpn: Lpn, end: Nanos, data: &[u8]) {
        let Some(slot) = self.free.pop() else {
            panic!("no slot is free: wait() comes before take()");
        };
        self.units[index(slot)] = lpn;
        self.newest.insert(lpn, slot);
        self.ends.push(Reverse((end, slot)));
        let start = index(slot) * self.unit;
        if let Some(target) = self.bytes.get_mut(start..start + data.len()) {
            target.copy_from_slice(data);
        }
    }

    /// The bytes of a unit that is here; empty where none are stored.
    pub(crate) fn find(&self, lpn: Lpn) -> Option<&[u8]> {
        let start = index(*self.newest.get(&lpn)?) * self.unit;
        Some(&self.bytes[start..start + self.unit])
    }

    /// Units that were trimmed, or programmed by a request that waited for it, are not served from
    /// here any more. Their slots stay taken.
    pub(crate) fn forget(&mut self, first: Lpn, count: u32) {
        let last = Lpn::new(first.raw().saturating_add(count.saturating_sub(1)));
        while count > 0
            && let Some(lpn) = self.newest.range(first..=last).next().map(|(lpn, _)| *lpn)
        {
            self.newest.remove(&lpn);
        }
    }
}

#[cfg(test)]
mod tests {
    use onefold_units::{Lpn, Nanos};

    use super::Pool;

    #[test]
    fn slots_are_taken_until_their_programs_end() {
        let mut pool = Pool::new(2, 1);
        let at = Nanos::new;
        let (a, b) = (Lpn::new(7), Lpn::new(9));
        assert_eq!(pool.wait(at(5)), at(5));
        pool.take(a, at(100), &[1]);
        assert_eq!(pool.wait(at(6)), at(6));
        pool.take(b, at(50), &[2]);
        // Full: the program that ends first gives its slot, though it began last.
        assert_eq!(pool.wait(at(7)), at(50));
        assert_eq!((pool.find(a), pool.find(b)), (Some(&[1][..]), None));
        pool.take(a, at(60), &[3]);
        assert_eq!(pool.find(a), Some(&[3][..]), "the newer generation");
        pool.retire(at(60));
        assert_eq!(pool.find(a), None, "the older one does not come back");
        pool.take(b, at(200), &[4]);
        pool.forget(Lpn::new(0), 9);
        assert!(pool.find(b).is_some());
        pool.forget(Lpn::new(8), 2);
        assert_eq!(pool.find(b), None);
        assert_eq!(
            pool.wait(at(70)),
            at(100),
            "a trimmed victim keeps its slot until its program ends"
        );
    }
}
