//! Ghosts: keys that policies remember after their entries left.

use onefold_units::convert::index;

use super::{Entries, Memory};
use crate::node::NewNode;
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

    /// Remembers keys, of which no entry or ghost exists, one after the other. In a full list the oldest
    /// ghosts become theirs: neighbours in the order of the keys, so they move together.
    pub(super) fn remember_all(&mut self, memory: Memory, keys: &[u32]) {
        let Memory { list, most } = memory;
        let oldest = self.slab.oldest(list).filter(|_| self.len(list) == most);
        let Some(oldest) = oldest.filter(|_| (1..=index(most)).contains(&keys.len())) else {
            for key in keys {
                self.remember(memory, *key);
            }
            return;
        };
        let (mut id, mut newest) = (oldest, oldest);
        for key in keys {
            let newer = NodeId(self.slab.node(id).newer);
            self.slab.rename(id, *key, NewNode::empty(list.0), &mut self.index);
            newest = id;
            id = newer;
        }
        self.slab.move_run_to_newest(list, oldest, newest);
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
