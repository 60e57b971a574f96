//! The write cache: writes complete when their bytes are in it, and its room comes back as flash pages are programmed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use onefold_units::Nanos;

/// Room of a write cache in time.
#[derive(Clone, Debug)]
pub(crate) struct WriteCache {
    size: u64,
    used: u64,
    /// Programs under way: when each ends, and its bytes.
    programs: BinaryHeap<Reverse<(Nanos, u64)>>,
}

impl WriteCache {
    pub(crate) const fn new(size: u64) -> Self {
        Self { size, used: 0, programs: BinaryHeap::new() }
    }

    /// When there is room for a flash page of `bytes` that arrives at `ready`. A page larger than the cache waits until
    /// the cache is empty.
    pub(crate) fn room(&mut self, ready: Nanos, bytes: u64) -> Nanos {
        let mut at = ready;
        while let Some(&Reverse((done, freed))) = self.programs.peek() {
            if done > at && self.used + bytes <= self.size {
                break;
            }
            self.programs.pop();
            self.used -= freed;
            at = at.max(done);
        }
        at
    }

    /// A flash page of `bytes` is in the cache until `done`.
    pub(crate) fn hold(&mut self, done: Nanos, bytes: u64) {
        self.used += bytes;
        self.programs.push(Reverse((done, bytes)));
    }
}

#[cfg(test)]
mod tests {
    use super::WriteCache;
    use onefold_units::Nanos;

    #[test]
    fn the_third_page_waits_for_the_first_that_leaves() {
        let at = Nanos::new;
        let mut cache = WriteCache::new(8192);
        assert_eq!(cache.room(at(10), 4096), at(10));
        cache.hold(at(500), 4096);
        assert_eq!(cache.room(at(20), 4096), at(20));
        cache.hold(at(300), 4096);
        assert_eq!(cache.room(at(30), 4096), at(300));
        cache.hold(at(900), 4096);
        assert_eq!(cache.room(at(600), 4096), at(600), "the first has left by itself");
        assert_eq!(cache.room(at(600), 16_384), at(900));
    }
}
