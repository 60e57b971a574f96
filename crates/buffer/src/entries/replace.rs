//! One entry leaves and another one takes its slot: what most misses do in a full buffer.
//!
//! The result is that of an eviction and an insertion, but the node stays in its slot, so nothing
//! goes through the free list and each list and bucket is changed once. Ghosts have to be asked for
//! here: [`Entries::evicted`] is only for evictions that stand alone.

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
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the policy knows the lists: half of it folds away")]
    pub fn replace(&mut self, from: ListId, to: ListId, key: u32, out: &mut Actions) -> NodeId {
        match self.slab.oldest(from) {
            Some(victim) if self.shape.per_program() == 1 => {
                self.count_out(victim, from.0, out);
                self.renew(victim, from, to, key)
            }
            Some(victim) => self.replace_batch(victim, to, key, out),
            None => self.insert_elsewhere(to, key),
        }
    }

    /// Evicts an entry by [`Entries::evict_at`] and inserts `key` at the newest end of `to`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of one step: a call is a tenth of it")]
    pub fn replace_at(
        &mut self,
        victim: NodeId,
        to: ListId,
        key: u32,
        out: &mut Actions,
    ) -> NodeId {
        if self.shape.per_program() != 1 {
            return self.replace_batch(victim, to, key, out);
        }
        let from = self.slab.node(victim).list;
        self.count_out(victim, from, out);
        self.renew(victim, ListId(from), to, key)
    }

    /// Nothing of `from` can leave, so there has to be a free slot.
    #[cold]
    fn insert_elsewhere(&mut self, to: ListId, key: u32) -> NodeId {
        self.insert(to, key)
    }

    #[cold]
    fn replace_batch(&mut self, victim: NodeId, to: ListId, key: u32, out: &mut Actions) -> NodeId {
        self.evict_at(victim, out);
        self.insert(to, key)
    }

    /// Gives the slot of an entry of `from` to another key.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of one step: a call is a tenth of it")]
    fn renew(&mut self, id: NodeId, from: ListId, to: ListId, key: u32) -> NodeId {
        if from != to {
            self.stats.area_mut(from.0).entries -= 1;
            self.stats.area_mut(to.0).entries += 1;
        }
        self.slab.renew(id, to.0, key, &mut self.index);
        id
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
