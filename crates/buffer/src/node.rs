//! One node of a policy: an entry, a ghost or the sentinel of a list; and the links between nodes.

use onefold_units::convert::index;

/// No node.
pub(crate) const NIL: u32 = u32::MAX;

/// A node of a [`Slab`](crate::Slab). For an entry with a slot it is also the number of the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub(crate) u32);

onefold_units::keep!(NodeId(number));

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

onefold_units::keep!(Node { newer, older, key, chain, list, tenant, valid, dirty, aux });

/// What a node of a new key is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewNode {
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

impl NewNode {
    /// Nodes without any bytes yet.
    #[inline]
    pub(crate) const fn empty(list: u8) -> Self {
        Self { list, tenant: 0, valid: 0, dirty: 0 }
    }
}

/// List number of nodes that are in no list.
pub(crate) const FREE: u8 = u8::MAX;

pub(crate) const EMPTY: Node = Node {
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

/// Puts `id` into the ring on the older side of `newer`, as its neighbours see it. Returns the
/// other neighbour.
///
/// This and [`leave_ring`] work on the bare nodes: the compiler then keeps their address and number
/// in registers, which it cannot while a store to a node might change the slab itself.
#[inline]
pub(crate) fn join_ring(nodes: &mut [Node], newer: u32, id: u32) -> u32 {
    let older = std::mem::replace(&mut nodes[index(newer)].older, id);
    nodes[index(older)].newer = id;
    older
}

/// Takes what is between two nodes out of the ring, as they see it.
#[inline]
pub(crate) fn leave_ring(nodes: &mut [Node], newer: u32, older: u32) {
    nodes[index(newer)].older = older;
    nodes[index(older)].newer = newer;
}
