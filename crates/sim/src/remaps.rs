//! What remaps of a load wait for: writes, trims and remaps of their ranges that are under way
//! (remap.md section 2).
//!
//! The drive is done with a command when it was submitted, and only its completion lies ahead. So the
//! order of data is that of submission, and what is left to see to is time: a remap does not begin
//! before what it maps was written.

use onefold_units::Nanos;

/// Fewest changes that are looked through for such as have ended.
const PRUNE_LEAST: usize = 64;

/// Bytes `first..end` that change until `done`.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    first: u64,
    end: u64,
    done: Nanos,
}

onefold_units::keep!(Change { first, end, done });

/// Changes that may be under way.
#[derive(Debug)]
pub(crate) struct Changes {
    list: Vec<Change>,
    /// Length from which on it is pruned: twice what was left, so that a change costs little.
    prune_at: usize,
}

onefold_units::keep!(Changes { list, prune_at });

impl Changes {
    pub(crate) const fn new() -> Self {
        Self { list: Vec::new(), prune_at: PRUNE_LEAST }
    }

    /// A change of `len` bytes from `first` on was submitted at `now` and completes at `done`.
    pub(crate) fn note(&mut self, now: Nanos, (first, len): (u64, u64), done: Nanos) {
        if self.list.len() >= self.prune_at {
            self.list.retain(|change| change.done > now);
            self.prune_at = (2 * self.list.len()).max(PRUNE_LEAST);
        }
        self.list.push(Change { first, end: first.saturating_add(len), done });
    }

    /// When the last change of a byte of these ranges has ended, each of `len` bytes; `now` if none is
    /// under way.
    pub(crate) fn over(&self, now: Nanos, firsts: [u64; 2], len: u64) -> Nanos {
        let meets = |change: &&Change| {
            let meets = |first| change.first < first + len && first < change.end;
            firsts.into_iter().any(meets)
        };
        self.list.iter().filter(meets).map(|change| change.done).fold(now, Nanos::max)
    }
}

#[cfg(test)]
mod tests {
    use super::{Changes, Nanos};

    #[test]
    fn a_remap_waits_for_changes_of_its_ranges_alone() {
        let mut changes = Changes::new();
        for (at, done) in [(0, 50), (4096, 90), (65_536, 70)] {
            changes.note(Nanos::new(1), (at, 4096), Nanos::new(done));
        }
        let over = |src, dst, len| changes.over(Nanos::new(10), [src, dst], len).get();
        assert_eq!(over(0, 8192, 4096), 50, "its source");
        assert_eq!(over(8192, 0, 4096), 50, "its target");
        assert_eq!(over(0, 1 << 20, 8192), 90, "the later of two");
        assert_eq!(over(8192, 1 << 20, 4096), 10, "beside it");
        assert_eq!(changes.over(Nanos::new(60), [0, 1 << 20], 4096).get(), 60, "over");
    }

    #[test]
    fn what_is_under_way_is_not_forgotten() {
        let mut changes = Changes::new();
        changes.note(Nanos::ZERO, (0, 4096), Nanos::new(1_000_000));
        for now in 0..1000 {
            changes.note(Nanos::new(now), (1 << 20, 4096), Nanos::new(now + 10));
        }
        assert_eq!(changes.over(Nanos::new(1000), [0, 8192], 4096).get(), 1_000_000);
    }

    #[test]
    fn what_has_ended_is_forgotten() {
        let mut changes = Changes::new();
        for now in 0..100_000 {
            changes.note(Nanos::new(now), (0, 4096), Nanos::new(now + 10));
        }
        assert!(changes.list.len() < 200, "{}", changes.list.len());
        assert_eq!(changes.over(Nanos::ZERO, [0, 8192], 4096).get(), 100_009);
    }
}
