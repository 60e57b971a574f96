//! All nodes of a policy in one allocation: entries with a slot, ghosts, and one sentinel per list.
//!
//! Node numbers: `0..slots` are the slots themselves, then come the ghosts (remembered keys without
//! bytes), then the sentinels. Memory is 24 B per node and never grows.

use onefold_units::convert::{index, u32_from};

use crate::Index;
use crate::list::{join_ring, leave_ring};

/// No node.
pub(crate) const NIL: u32 = u32::MAX;

/// A node of a [`Slab`]. For an entry with a slot it is also the number of the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// The bare number.
    #[must_use]
    pub const fn raw(self) -> u32 {
        self.0
    }
}

/// What is known about one entry or ghost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Towards the most recent end of the list.
    pub(crate) newer: u32,
    /// Towards the oldest end of the list.
    pub(crate) older: u32,
    pub(crate) key: u32,
    /// Next node with the same hash.
    pub(crate) chain: u32,
    /// List this node is in; [`FREE`] for none.
    pub(crate) list: u8,
    /// Tenant that wrote the dirty data.
    pub(crate) tenant: u8,
    /// Parts whose bytes are in the slot.
    pub(crate) valid: u16,
    /// Parts that are newer than flash.
    pub(crate) dirty: u16,
    /// Free for the policy: counters, reference bits. 0 when the node is allocated.
    pub aux: u16,
}

/// What a node of a new key is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blank {
    pub(crate) list: u8,
    pub(crate) tenant: u8,
    pub(crate) valid: u16,
    pub(crate) dirty: u16,
}

/// Keys that follow one another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    pub(crate) first: u32,
    pub(crate) len: u32,
}

impl Blank {
    /// Nodes without any bytes yet.
    #[inline]
    pub(crate) const fn empty(list: u8) -> Self {
        Self { list, tenant: 0, valid: 0, dirty: 0 }
    }
}

/// List number of nodes that are in no list.
pub(crate) const FREE: u8 = u8::MAX;

const EMPTY: Node = Node {
    newer: NIL,
    older: NIL,
    key: 0,
    chain: NIL,
    list: FREE,
    tenant: 0,
    valid: 0,
    dirty: 0,
    aux: 0,
};

/// Replaces `id` by `by` in the chain that begins with `head`. Does nothing if it is not there.
#[inline]
pub(crate) fn rechain(nodes: &mut [Node], head: &mut u32, id: u32, by: u32) {
    if *head == id {
        *head = by;
    } else {
        rechain_further(nodes, *head, id, by);
    }
}

fn rechain_further(nodes: &mut [Node], head: u32, id: u32, by: u32) {
    let mut at = head;
    while at != NIL {
        let node = &mut nodes[index(at)];
        if node.chain == id {
            node.chain = by;
            return;
        }
        at = node.chain;
    }
}

/// The nodes of one policy.
#[derive(Clone, Debug)]
pub struct Slab {
    pub(crate) nodes: Box<[Node]>,
    slots: u32,
    sentinels: u32,
    free_slots: u32,
    free_ghosts: u32,
}

impl Slab {
    /// A slab of free nodes with `lists` empty lists.
    #[must_use]
    pub fn new(slots: u32, ghosts: u32, lists: u8) -> Self {
        let sentinels = slots + ghosts;
        let mut nodes = vec![EMPTY; index(sentinels) + usize::from(lists)].into_boxed_slice();
        for (number, node) in (0..).zip(nodes.iter_mut()) {
            if number >= sentinels {
                (node.newer, node.older) = (number, number);
            } else if number + 1 != slots && number + 1 != sentinels {
                node.older = number + 1;
            }
        }
        let free_slots = if slots == 0 { NIL } else { 0 };
        let free_ghosts = if ghosts == 0 { NIL } else { slots };
        Self { nodes, slots, sentinels, free_slots, free_ghosts }
    }

    /// Takes a free slot for `key`. `None` if the buffer is full.
    #[inline]
    pub fn take_slot(&mut self, key: u32) -> Option<NodeId> {
        let at = self.free_slots;
        if at == NIL {
            return None;
        }
        self.free_slots = self.node(NodeId(at)).older;
        Some(self.reset(at, key))
    }

    /// Takes a free ghost for `key`. `None` if all are in use.
    pub fn take_ghost(&mut self, key: u32) -> Option<NodeId> {
        let at = self.free_ghosts;
        if at == NIL {
            return None;
        }
        self.free_ghosts = self.node(NodeId(at)).older;
        Some(self.reset(at, key))
    }

    #[inline]
    fn reset(&mut self, at: u32, key: u32) -> NodeId {
        self.nodes[index(at)] = Node { key, ..EMPTY };
        NodeId(at)
    }

    /// Gives back a node that is in no list any more. The next `take` of its kind returns it.
    #[inline]
    pub fn give_back(&mut self, id: NodeId) {
        let ghost = self.is_ghost(id);
        let head = if ghost { &mut self.free_ghosts } else { &mut self.free_slots };
        let older = std::mem::replace(head, id.0);
        let node = &mut self.nodes[index(id.0)];
        node.list = FREE;
        node.older = older;
    }

    /// Takes a free slot for `key`, enters it into its bucket and links it at the newest end of a
    /// list.
    #[inline]
    pub(crate) fn attach(&mut self, blank: Blank, key: u32, head: &mut u32) -> NodeId {
        let at = self.free_slots;
        assert!(at != NIL, "invariant 3: no slot is free, the policy did not make room");
        let Blank { list, tenant, valid, dirty } = blank;
        let newer = self.sentinel(list);
        let nodes = &mut *self.nodes;
        self.free_slots = nodes[index(at)].older;
        let older = join_ring(nodes, newer, at);
        let chain = std::mem::replace(head, at);
        nodes[index(at)] = Node { newer, older, key, chain, list, tenant, valid, dirty, aux: 0 };
        NodeId(at)
    }

    /// Does so for keys that follow one another. `each` is told the nodes. Returns the first and the
    /// last of them.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "two callers, once for many pages")]
    pub(crate) fn attach_run(
        &mut self,
        blank: Blank,
        keys: Keys,
        index_of: &mut Index,
        mut each: impl FnMut(NodeId, u32),
    ) -> (NodeId, NodeId) {
        let Blank { list, tenant, valid, dirty } = blank;
        let end = self.sentinel(list);
        let nodes = &mut *self.nodes;
        let (first, mut free) = (self.free_slots, self.free_slots);
        let mut older = nodes[index(end)].older;
        for at in 0..keys.len {
            assert!(free != NIL, "invariant 3: no slot is free, the policy did not make room");
            let (id, key) = (free, keys.first + at);
            free = nodes[index(id)].older;
            let chain = std::mem::replace(index_of.head_mut(key), id);
            nodes[index(id)] =
                Node { newer: end, older, key, chain, list, tenant, valid, dirty, aux: 0 };
            nodes[index(older)].newer = id;
            older = id;
            each(NodeId(id), key);
        }
        nodes[index(end)].older = older;
        self.free_slots = free;
        (NodeId(first), NodeId(older))
    }

    /// Unlinks a node with a slot from its list and its bucket and frees the slot.
    #[inline]
    pub(crate) fn detach(&mut self, id: NodeId, head: &mut u32) {
        let nodes = &mut *self.nodes;
        let node = &mut nodes[index(id.0)];
        let Node { newer, older, chain, .. } = *node;
        node.list = FREE;
        node.older = std::mem::replace(&mut self.free_slots, id.0);
        leave_ring(nodes, newer, older);
        rechain(nodes, head, id.0, chain);
    }

    /// Takes a node, which is about to be freed, out of its bucket.
    #[inline]
    pub(crate) fn leave_bucket(&mut self, id: NodeId, head: &mut u32) {
        let nodes = &mut *self.nodes;
        let node = &mut nodes[index(id.0)];
        node.list = FREE;
        let chain = node.chain;
        rechain(nodes, head, id.0, chain);
    }

    /// Unlinks neighbours with slots from their list and frees the slots, which are in no bucket
    /// any more. The free list is linked like any other, so they stay as they are.
    #[inline]
    pub(crate) fn free_run(&mut self, newest: NodeId, oldest: NodeId) {
        let newer = self.node(newest).newer;
        let free = std::mem::replace(&mut self.free_slots, newest.0);
        let older = std::mem::replace(&mut self.node_mut(oldest).older, free);
        leave_ring(&mut self.nodes, newer, older);
    }

    /// Takes a node out of its list and bucket, and enters it anew, with `key`, at the newest end of
    /// a list.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of one step: a call is a tenth of it")]
    pub(crate) fn renew(&mut self, id: NodeId, list: u8, key: u32, index_of: &mut Index) {
        let newest = self.sentinel(list);
        let nodes = &mut *self.nodes;
        let Node { newer, older, chain, key: before, .. } = nodes[index(id.0)];
        leave_ring(nodes, newer, older);
        let older = join_ring(nodes, newest, id.0);
        rechain(nodes, index_of.head_mut(before), id.0, chain);
        let chain = std::mem::replace(index_of.head_mut(key), id.0);
        nodes[index(id.0)] = Node { newer: newest, older, key, chain, list, ..EMPTY };
    }

    /// Takes a node out of its bucket and enters it anew, with `key`, into another one. Its neighbours
    /// stay the same, so it is moved to its new list only with them.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body of a loop")]
    pub(crate) fn rename(&mut self, id: NodeId, key: u32, blank: Blank, index_of: &mut Index) {
        let nodes = &mut *self.nodes;
        let Node { newer, older, chain, key: before, .. } = nodes[index(id.0)];
        rechain(nodes, index_of.head_mut(before), id.0, chain);
        let chain = std::mem::replace(index_of.head_mut(key), id.0);
        let Blank { list, tenant, valid, dirty } = blank;
        nodes[index(id.0)] = Node { newer, older, key, chain, list, tenant, valid, dirty, aux: 0 };
    }

    /// Whether the node has no slot.
    #[must_use]
    #[inline]
    pub const fn is_ghost(&self, id: NodeId) -> bool {
        id.0 >= self.slots
    }

    /// Whether a slot is free.
    #[must_use]
    #[inline]
    pub const fn has_free_slot(&self) -> bool {
        self.free_slots != NIL
    }

    /// The number of slots.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// Counts the free slots by walking them.
    pub(crate) fn count_free_slots(&self) -> u32 {
        let mut at = self.free_slots;
        let mut count = 0;
        while at != NIL && count <= self.slots {
            count += 1;
            at = self.node(NodeId(at)).older;
        }
        count
    }

    #[inline]
    pub(crate) fn sentinel(&self, list: u8) -> u32 {
        self.sentinels + u32::from(list)
    }

    /// The number of lists.
    pub(crate) fn lists(&self) -> usize {
        self.nodes.len() - index(self.sentinels)
    }

    /// Nodes that can hold a key.
    pub(crate) fn capacity(&self) -> u32 {
        u32_from(self.nodes.len() - self.lists())
    }

    /// The node.
    #[must_use]
    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[index(id.0)]
    }

    /// The node.
    #[inline]
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[index(id.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::{NodeId, Slab};

    #[test]
    fn slots_and_ghosts_are_separate() {
        let mut slab = Slab::new(2, 1, 1);
        assert_eq!(slab.take_slot(10), Some(NodeId(0)));
        assert_eq!(slab.take_slot(11), Some(NodeId(1)));
        assert!(!slab.has_free_slot());
        assert_eq!(slab.take_slot(12), None);
        let ghost = slab.take_ghost(13).unwrap();
        assert!(slab.is_ghost(ghost) && !slab.is_ghost(NodeId(1)));
        assert_eq!(slab.take_ghost(14), None);
        slab.node_mut(NodeId(0)).aux = 9;
        slab.give_back(NodeId(0));
        slab.give_back(ghost);
        assert_eq!(slab.count_free_slots(), 1);
        assert_eq!(slab.take_ghost(15), Some(ghost));
        let again = slab.take_slot(16).unwrap();
        assert_eq!((again, slab.node(again).aux, slab.node(again).key), (NodeId(0), 0, 16));
    }

    #[test]
    fn a_node_has_24_bytes() {
        assert_eq!(size_of::<super::Node>(), 24);
    }
}
