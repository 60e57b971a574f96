//! Ghosts: keys that policies remember after their entries left.

use super::Entries;
use crate::ListId;

impl Entries {
    /// Remembers the keys that the last eviction removed, oldest first, in a list of `most` ghosts:
    /// beyond that its oldest ghosts are forgotten. Does nothing for a policy that has no ghosts.
    #[inline]
    pub fn remember_evicted(&mut self, list: ListId, most: u32) {
        for at in 0..self.evicted.len() {
            self.forget_oldest(list, most - 1);
            let ghost = self.insert_ghost(list, self.evicted[at]);
            assert!(ghost.is_some(), "the policy keeps more ghosts than it asked for");
        }
    }

    /// Forgets the oldest ghosts of a list until it has `most` at most.
    #[inline]
    pub fn forget_oldest(&mut self, list: ListId, most: u32) {
        while self.len(list) > most {
            let Some(oldest) = self.slab.oldest(list) else { return };
            self.remove_ghost(oldest);
        }
    }
}
