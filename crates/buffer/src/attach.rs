//! Nodes whose lists and buckets change in one step.

use onefold_units::convert::index;

use crate::index::Index;
use crate::node::{EMPTY, FREE, Keys, NIL, NewNode, Node, NodeId, join_ring, leave_ring, rechain};
use crate::slab::Slab;

impl Slab {
    /// Takes a free slot for `key`, enters it into its bucket and links it at the newest end of a
    /// list.
    #[inline]
    pub(crate) fn attach(&mut self, new_node: NewNode, key: u32, head: &mut u32) -> NodeId {
        let at = self.free_slots;
        assert!(at != NIL, "invariant 3: no slot is free, the policy did not make room");
        let NewNode { list, tenant, valid, dirty } = new_node;
        let newer = self.sentinel(list);
        let nodes = &mut *self.nodes;
        self.free_slots = nodes[index(at)].older;
        let older = join_ring(nodes, newer, at);
        let chain = std::mem::replace(head, at);
        nodes[index(at)] = Node { newer, older, key, chain, list, tenant, valid, dirty, aux: 0 };
        NodeId(at)
    }

    /// Does so for keys that follow one another, on the older side of `end`: a node of the list, or its
    /// sentinel. `each` is told the nodes. Returns the first and the last of them.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "two callers, once for many pages")]
    pub(crate) fn attach_run(
        &mut self,
        new_node: NewNode,
        end: u32,
        keys: Keys,
        index_of: &mut Index,
        mut each: impl FnMut(NodeId, u32),
    ) -> (NodeId, NodeId) {
        let NewNode { list, tenant, valid, dirty } = new_node;
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

    /// Takes a node out of its list and bucket, and enters it anew, with `key`, at the newest end
    /// of a list.
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

    /// Takes a node out of its bucket and enters it anew, with `key`, into another one. Its
    /// neighbours stay the same, so it is moved to its new list only with them.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body of a loop")]
    pub(crate) fn rename(&mut self, id: NodeId, key: u32, new_node: NewNode, index_of: &mut Index) {
        let nodes = &mut *self.nodes;
        let Node { newer, older, chain, key: before, .. } = nodes[index(id.0)];
        rechain(nodes, index_of.head_mut(before), id.0, chain);
        let chain = std::mem::replace(index_of.head_mut(key), id.0);
        let NewNode { list, tenant, valid, dirty } = new_node;
        nodes[index(id.0)] = Node { newer, older, key, chain, list, tenant, valid, dirty, aux: 0 };
    }
}
