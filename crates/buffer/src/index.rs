//! Finds the node of a key.
//!
//! A chained hash table whose chains run through the nodes: 4 B per bucket and at least two
//! buckets per node, so memory follows the buffer and not the device (buffer.md section 4 has the
//! measurements behind this choice).

use onefold_units::convert::{index, index64};

use crate::node::{NIL, NodeId, rechain};
use crate::slab::Slab;

/// Odd and close to 2^32 / golden ratio: groups of keys spread evenly over the buckets.
const MULTIPLIER: u32 = 0x9E37_79B1;

/// log2 of the keys in a group. The buckets of a group fill one cache line, so a long request finds
/// 16 buckets with one miss.
const GROUP: u32 = 4;

/// Keys in a group: those that differ in their lowest bits only.
pub(crate) const GROUP_KEYS: u32 = 1 << GROUP;

/// The hash table of one slab.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    heads: Box<[u32]>,
    shift: u32,
}

onefold_units::keep!(Index { heads } but { shift });

impl Index {
    /// An empty index for up to `nodes` keys.
    #[must_use]
    pub(crate) fn new(nodes: u32) -> Self {
        let buckets = (u64::from(nodes) * 4).next_power_of_two().clamp(1 << GROUP, 1 << 31);
        let shift = 32 - buckets.trailing_zeros();
        Self { heads: vec![NIL; index64(buckets)].into_boxed_slice(), shift }
    }

    #[inline]
    fn bucket(&self, key: u32) -> usize {
        // The group chooses the line. Its lowest bits permute the keys inside, so that groups that
        // share a line, and keys at a stride, share few buckets.
        let hash = (key >> GROUP).wrapping_mul(MULTIPLIER) >> self.shift;
        index(hash ^ (key & (GROUP_KEYS - 1)))
    }

    /// The node of `key`.
    #[must_use]
    #[inline]
    pub(crate) fn find(&self, slab: &Slab, key: u32) -> Option<NodeId> {
        let nodes = &*slab.nodes;
        let mut at = self.heads[self.bucket(key)];
        while at != NIL {
            let node = &nodes[index(at)];
            if node.key == key {
                return Some(NodeId(at));
            }
            at = node.chain;
        }
        None
    }

    /// Whether all buckets of the group of `key` are empty: none of its keys is in the index.
    #[inline]
    pub(crate) fn lacks_group(&self, key: u32) -> bool {
        let first = self.bucket(key) & !index(GROUP_KEYS - 1);
        let heads = &self.heads[first..first + index(GROUP_KEYS)];
        // `NIL` is all ones. Without a way out in the middle this is a few vector instructions.
        heads.iter().fold(NIL, |all, head| all & head) == NIL
    }

    /// The head of the chain that `key` is in.
    #[inline]
    pub(crate) fn head_mut(&mut self, key: u32) -> &mut u32 {
        let bucket = self.bucket(key);
        &mut self.heads[bucket]
    }

    /// Loads the bucket of `key` and its first node. Returns a number that depends on both.
    #[inline]
    pub(crate) fn touch(&self, slab: &Slab, key: u32) -> u32 {
        let at = self.heads[self.bucket(key)];
        if at == NIL { at } else { slab.node(NodeId(at)).key }
    }

    /// Enters a node under its key, which must not be in the index.
    #[inline]
    pub(crate) fn insert(&mut self, slab: &mut Slab, id: NodeId) {
        let node = slab.node_mut(id);
        let bucket = self.bucket(node.key);
        node.chain = std::mem::replace(&mut self.heads[bucket], id.0);
    }

    /// Removes a node. Does nothing if it is not in the index.
    #[inline]
    pub(crate) fn remove(&mut self, slab: &mut Slab, id: NodeId) {
        let (key, chain) = (slab.node(id).key, slab.node(id).chain);
        rechain(&mut slab.nodes, self.head_mut(key), id.0, chain);
    }

    /// Counts the nodes by walking all chains, at most `limit` of them.
    pub(crate) fn count(&self, slab: &Slab, limit: u32) -> u32 {
        let mut count = 0;
        for head in &self.heads {
            let mut at = *head;
            while at != NIL && count <= limit {
                count += 1;
                at = slab.node(NodeId(at)).chain;
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::Index;
    use crate::slab::Slab;
    use onefold_units::Rng;
    use onefold_units::convert::low32;
    use std::collections::BTreeMap;

    #[test]
    fn agrees_with_a_map_under_collisions() {
        let mut slab = Slab::new(64, 0, 1);
        // 16 buckets for 64 nodes: long chains, removal from every position.
        let mut table = Index::new(1);
        let mut model = BTreeMap::new();
        let mut rng = Rng::new(5);
        for _ in 0..20_000 {
            let key = low32(rng.below(100)).wrapping_mul(0x4000_0001);
            assert_eq!(table.find(&slab, key), model.get(&key).copied());
            let group = key & !15..=key | 15;
            assert!(!table.lacks_group(key) || model.range(group).next().is_none());
            if let Some(id) = model.remove(&key) {
                table.remove(&mut slab, id);
                slab.give_back(id);
            } else if let Some(id) = slab.take_slot(key) {
                table.insert(&mut slab, id);
                model.insert(key, id);
            }
            assert_eq!(table.count(&slab, 100), u32::try_from(model.len()).unwrap());
        }
    }
}
