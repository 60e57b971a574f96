//! One entry leaves and another one takes its slot: what most misses do in a full buffer.
//!
//! The result is that of an eviction and an insertion, but the node stays in its slot, so nothing
//! goes through the free list and each list and bucket is changed once.

use super::Entries;
use crate::{Actions, ListId, NodeId};

/// A list of ghosts, and how many it may have.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The list.
    pub list: ListId,
    /// Most ghosts in it. More make it forget the oldest.
    pub most: u32,
}

impl Entries {
    /// Evicts the oldest entry of list `from`, which has one, and inserts `key` at the newest end of
    /// `to`.
    #[inline]
    pub fn replace(&mut self, from: ListId, to: ListId, key: u32, out: &mut Actions) -> NodeId {
        let Some(victim) = self.slab.oldest(from) else {
            return self.insert(to, key);
        };
        self.replace_at(victim, to, key, out)
    }

    /// Evicts an entry by [`Entries::evict_at`] and inserts `key` at the newest end of `to`.
    #[inline]
    pub fn replace_at(
        &mut self,
        victim: NodeId,
        to: ListId,
        key: u32,
        out: &mut Actions,
    ) -> NodeId {
        if self.shape.per_program() != 1 {
            self.evict_at(victim, out);
            return self.insert(to, key);
        }
        self.count_out(victim, out);
        self.slab.renew(victim, to.0, key, &mut self.index);
        self.stats.area_mut(to.0).entries += 1;
        victim
    }

    /// Does what [`Entries::replace_at`] does, and remembers the keys that left.
    #[inline]
    pub fn replace_and_remember(
        &mut self,
        victim: NodeId,
        memory: Memory,
        to: ListId,
        key: u32,
        out: &mut Actions,
    ) -> NodeId {
        if self.shape.per_program() != 1 {
            self.evict_at(victim, out);
            self.remember_evicted(memory);
            return self.insert(to, key);
        }
        let left = self.slab.node(victim).key;
        let id = self.replace_at(victim, to, key, out);
        self.remember(memory, left);
        id
    }
}
