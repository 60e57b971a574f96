//! What the last synchronisation of the medium does not cover.

use std::collections::BTreeSet;

/// Things that changed since the medium was synchronised. A synchronisation may be under way meanwhile: it covers what
/// changed before it began, but only once it is over.
#[derive(Clone, Debug)]
pub(crate) struct Unsynced<T> {
    /// Since the last synchronisation began.
    since: BTreeSet<T>,
    /// Before that, while it is under way.
    before: BTreeSet<T>,
}

impl<T> Default for Unsynced<T> {
    fn default() -> Self {
        Self { since: BTreeSet::new(), before: BTreeSet::new() }
    }
}

impl<T: Ord> Unsynced<T> {
    pub(crate) fn insert(&mut self, thing: T) {
        self.since.insert(thing);
    }

    pub(crate) fn contains(&self, thing: &T) -> bool {
        self.since.contains(thing) || self.before.contains(thing)
    }

    /// A synchronisation begins.
    pub(crate) fn begin(&mut self) {
        self.before.append(&mut self.since);
    }

    /// It is over.
    pub(crate) fn end(&mut self) {
        self.before.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Unsynced;

    #[test]
    fn a_synchronisation_covers_what_came_before_it_began() {
        let mut things = Unsynced::default();
        things.insert(1);
        things.begin();
        things.insert(2);
        assert!(things.contains(&1) && things.contains(&2));
        // What changes again is not covered by what began before.
        things.insert(1);
        things.end();
        assert!(things.contains(&1) && things.contains(&2));
        things.begin();
        things.end();
        assert!(!things.contains(&1) && !things.contains(&2));
    }
}
