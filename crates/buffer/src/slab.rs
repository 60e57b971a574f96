//! All nodes of a policy in one allocation: entries with a slot, ghosts, and one sentinel per list.
//!
//! Node numbers: `0..slots` are the slots themselves, then come the ghosts (remembered keys without
//! bytes), then the sentinels. Memory is 24 B per node and never grows.

use onefold_units::convert::{index, u32_from};

use crate::node::{EMPTY, FREE, NIL, Node, NodeId, leave_ring};

/// The nodes of one policy.
#[derive(Clone, Debug)]
pub struct Slab {
    pub(crate) nodes: Box<[Node]>,
    slots: u32,
    sentinels: u32,
    pub(crate) free_slots: u32,
    free_ghosts: u32,
}

onefold_units::keep!(Slab { nodes, free_slots, free_ghosts } but { slots, sentinels });

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

    /// Unlinks neighbours with slots from their list and frees the slots, which are in no bucket
    /// any more. The free list is linked like any other, so they stay as they are.
    #[inline]
    pub(crate) fn free_run(&mut self, newest: NodeId, oldest: NodeId) {
        let newer = self.node(newest).newer;
        let free = std::mem::replace(&mut self.free_slots, newest.0);
        let older = std::mem::replace(&mut self.node_mut(oldest).older, free);
        leave_ring(&mut self.nodes, newer, older);
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
    use super::Slab;
    use crate::node::{Node, NodeId};

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
        assert_eq!(size_of::<Node>(), 24);
    }
}
