//! Doubly linked lists through the nodes of a slab.
//!
//! Every list is a ring with a sentinel, so linking and unlinking have no special cases. A node is
//! in one list at most.

use onefold_units::convert::index;

use crate::node::{FREE, Node, NodeId, join_ring, leave_ring};
use crate::slab::Slab;

/// Number of a list, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListId(pub u8);

impl Slab {
    /// Links a node that is in no list at the most recent end.
    #[inline]
    pub fn push_newest(&mut self, list: ListId, id: NodeId) {
        self.link_older_than(list, self.sentinel(list.0), id);
    }

    /// Links a node that is in no list at the oldest end: the next victim.
    #[inline]
    pub fn push_oldest(&mut self, list: ListId, id: NodeId) {
        let sentinel = NodeId(self.sentinel(list.0));
        self.link_older_than(list, self.node(sentinel).newer, id);
    }

    /// Links a node that is in no list on the older side of `newer`, which is in `list`.
    #[inline]
    pub(crate) fn push_older_than(&mut self, list: ListId, newer: NodeId, id: NodeId) {
        self.link_older_than(list, newer.0, id);
    }

    #[inline]
    fn link_older_than(&mut self, list: ListId, newer: u32, id: NodeId) {
        let nodes = &mut *self.nodes;
        let older = join_ring(nodes, newer, id.0);
        let node = &mut nodes[index(id.0)];
        (node.newer, node.older, node.list) = (newer, older, list.0);
    }

    /// Takes a node out of its list.
    #[inline]
    pub fn unlink(&mut self, id: NodeId) {
        let nodes = &mut *self.nodes;
        let node = &mut nodes[index(id.0)];
        let (newer, older) = (node.newer, node.older);
        node.list = FREE;
        leave_ring(nodes, newer, older);
    }

    /// Moves a node from its list to the most recent end of a list. Returns what it was before.
    #[inline]
    pub(crate) fn move_to_newest(&mut self, list: ListId, id: NodeId) -> Node {
        let newest = self.sentinel(list.0);
        let nodes = &mut *self.nodes;
        let before = nodes[index(id.0)];
        leave_ring(nodes, before.newer, before.older);
        let older = join_ring(nodes, newest, id.0);
        let node = &mut nodes[index(id.0)];
        (node.newer, node.older, node.list) = (newest, older, list.0);
        before
    }

    /// Moves neighbours, from `oldest` to `newest`, to the most recent end of a list in their order.
    /// Their list number is that of the list already.
    #[inline]
    pub(crate) fn move_run_to_newest(&mut self, list: ListId, oldest: NodeId, newest: NodeId) {
        let end = self.sentinel(list.0);
        let nodes = &mut *self.nodes;
        leave_ring(nodes, nodes[index(newest.0)].newer, nodes[index(oldest.0)].older);
        let older = std::mem::replace(&mut nodes[index(end)].older, newest.0);
        nodes[index(older)].newer = oldest.0;
        nodes[index(oldest.0)].older = older;
        nodes[index(newest.0)].newer = end;
    }

    /// The most recent node.
    #[must_use]
    #[inline]
    pub fn newest(&self, list: ListId) -> Option<NodeId> {
        let sentinel = self.sentinel(list.0);
        let at = self.node(NodeId(sentinel)).older;
        (at != sentinel).then_some(NodeId(at))
    }

    /// The oldest node.
    #[must_use]
    #[inline]
    pub fn oldest(&self, list: ListId) -> Option<NodeId> {
        let sentinel = self.sentinel(list.0);
        let at = self.node(NodeId(sentinel)).newer;
        (at != sentinel).then_some(NodeId(at))
    }

    /// The neighbour towards the most recent end, of a node that is in a list.
    #[must_use]
    #[inline]
    pub fn newer(&self, id: NodeId) -> Option<NodeId> {
        let node = self.node(id);
        (node.newer != self.sentinel(node.list)).then_some(NodeId(node.newer))
    }

    /// The neighbour towards the oldest end, of a node that is in a list.
    #[must_use]
    #[inline]
    pub fn older(&self, id: NodeId) -> Option<NodeId> {
        let node = self.node(id);
        (node.older != self.sentinel(node.list)).then_some(NodeId(node.older))
    }

    /// The list a node is in.
    #[must_use]
    #[inline]
    pub fn list_of(&self, id: NodeId) -> Option<ListId> {
        let list = self.node(id).list;
        (list != FREE).then_some(ListId(list))
    }
}

#[cfg(test)]
mod tests {
    use super::ListId;
    use crate::node::NodeId;
    use crate::slab::Slab;

    const A: ListId = ListId(0);
    const B: ListId = ListId(1);

    /// Keys from newest to oldest, checking that both directions agree.
    fn keys(slab: &Slab, list: ListId) -> Vec<u32> {
        let down = std::iter::successors(slab.newest(list), |id| slab.older(*id));
        let down: Vec<NodeId> = down.collect();
        let up = std::iter::successors(slab.oldest(list), |id| slab.newer(*id));
        let mut up: Vec<NodeId> = up.collect();
        up.reverse();
        assert_eq!(down, up);
        down.into_iter().map(|id| slab.node(id).key).collect()
    }

    #[test]
    fn nodes_move_between_lists() {
        let mut slab = Slab::new(4, 0, 2);
        let ids: Vec<NodeId> = (0..4).map(|key| slab.take_slot(key).unwrap()).collect();
        for id in &ids {
            slab.push_newest(A, *id);
        }
        assert_eq!(keys(&slab, A), [3, 2, 1, 0]);
        assert_eq!(slab.oldest(B), None);
        for (from_middle, to) in [(ids[1], A), (ids[0], B), (ids[3], B)] {
            slab.unlink(from_middle);
            assert_eq!(slab.list_of(from_middle), None);
            slab.push_newest(to, from_middle);
            assert_eq!(slab.list_of(from_middle), Some(to));
        }
        assert_eq!((keys(&slab, A), keys(&slab, B)), (vec![1, 2], vec![3, 0]));
        slab.unlink(ids[1]);
        slab.push_oldest(B, ids[1]);
        assert_eq!((keys(&slab, A), keys(&slab, B)), (vec![2], vec![3, 0, 1]));
    }
}
