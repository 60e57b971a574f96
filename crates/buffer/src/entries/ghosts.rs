//! Ghosts: keys that policies remember after their entries left.

use super::Entries;
use crate::{ListId, NodeId};

impl Entries {
    /// The ghost of a key.
    #[must_use]
    #[inline]
    pub fn find_ghost(&self, key: u32) -> Option<NodeId> {
        self.index.find(&self.slab, key).filter(|id| self.slab.is_ghost(*id))
    }

    /// Remembers a key, of which no entry or ghost exists, at the newest end of a list. `None` if
    /// all ghosts are in use.
    pub fn insert_ghost(&mut self, list: ListId, key: u32) -> Option<NodeId> {
        let id = self.slab.take_ghost(key)?;
        self.enter(list, id);
        Some(id)
    }

    /// Forgets a ghost.
    pub fn remove_ghost(&mut self, id: NodeId) {
        assert!(self.slab.is_ghost(id), "invariant 8: only ghosts leave without an action");
        self.remove(id);
    }

    /// Remembers the keys that the last eviction removed, oldest first, in a list of `most` ghosts:
    /// beyond that its oldest ghosts are forgotten. Does nothing for a policy that has no ghosts.
    #[inline]
    pub fn remember_evicted(&mut self, list: ListId, most: u32) {
        for at in 0..self.evicted.len() {
            let key = self.evicted[at];
            if self.len(list) >= most {
                self.forget_oldest(list, most);
                self.rename_oldest(list, key);
            } else {
                let ghost = self.insert_ghost(list, key);
                assert!(ghost.is_some(), "the policy keeps more ghosts than it asked for");
            }
        }
    }

    /// Makes the oldest ghost of a list the newest one, of another key.
    #[inline]
    fn rename_oldest(&mut self, list: ListId, key: u32) {
        let Some(ghost) = self.slab.oldest(list) else { return };
        self.index.remove(&mut self.slab, ghost);
        let node = self.slab.node_mut(ghost);
        (node.key, node.aux) = (key, 0);
        self.index.insert(&mut self.slab, ghost);
        self.slab.unlink(ghost);
        self.slab.push_newest(list, ghost);
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
