//! Ghosts: keys that policies remember after their entries left.

use super::{Entries, Memory};
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

    /// Remembers the keys that the last eviction removed, oldest first.
    #[inline]
    pub fn remember_evicted(&mut self, memory: Memory) {
        for at in 0..self.evicted.len() {
            self.remember(memory, self.evicted[at]);
        }
    }

    /// Remembers a key, of which no entry or ghost exists.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of one step: a call is a tenth of it")]
    pub fn remember(&mut self, memory: Memory, key: u32) {
        let Memory { list, most } = memory;
        if most == 0 {
            return;
        }
        if self.len(list) == most
            && let Some(oldest) = self.slab.oldest(list)
        {
            self.slab.renew(oldest, list.0, key, &mut self.index);
            return;
        }
        let ghost = self.insert_ghost(list, key);
        assert!(ghost.is_some(), "the policy keeps more ghosts than it asked for");
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
