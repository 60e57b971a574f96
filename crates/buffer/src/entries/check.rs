//! The invariants of the module head, checked one by one.

use super::Entries;
use crate::{ListId, NodeId, Violation};

/// What a walk over one list finds.
#[derive(Clone, Copy, Debug, Default)]
struct Walk {
    len: u32,
    dirty: u32,
    slots: u32,
}

impl Entries {
    /// Checks every invariant that holds for all policies. Takes time proportional to the buffer.
    pub fn check(&self) -> Result<(), Violation> {
        let (mut listed, mut used) = (0, 0);
        for (at, list) in self.stats.areas().iter().enumerate() {
            let walk = self.walk(at)?;
            listed += walk.len;
            used += walk.slots;
            if walk.len != list.entries {
                let (found, counted) = (walk.len, list.entries);
                return Err(Violation::ListLength { list: at, found, counted });
            }
            if walk.dirty != list.dirty {
                let (found, counted) = (walk.dirty, list.dirty);
                return Err(Violation::DirtyCount { list: at, found, counted });
            }
        }
        let indexed = self.index.count(&self.slab, self.slab.capacity());
        if indexed != listed {
            return Err(Violation::IndexSize { indexed, listed });
        }
        let (free, slots) = (self.slab.count_free_slots(), self.slab.slots());
        if used + free != slots {
            return Err(Violation::Slots { used, free, slots });
        }
        self.check_conservation()
    }

    fn walk(&self, list: usize) -> Result<Walk, Violation> {
        let id = ListId((0..u8::MAX).nth(list).unwrap_or_default());
        let mut walk = Walk::default();
        let mut previous = None;
        let mut at = self.slab.newest(id);
        while let Some(node) = at {
            let linked = self.slab.list_of(node) == Some(id) && self.slab.newer(node) == previous;
            if !linked || walk.len >= self.slab.capacity() {
                return Err(Violation::Link { list, node: node.raw() });
            }
            self.check_node(node)?;
            walk.len += 1;
            walk.dirty += u32::from(self.is_dirty(node));
            walk.slots += u32::from(!self.slab.is_ghost(node));
            previous = at;
            at = self.slab.older(node);
        }
        if self.slab.oldest(id) != previous {
            return Err(Violation::Link { list, node: previous.map_or(u32::MAX, NodeId::raw) });
        }
        Ok(walk)
    }

    fn check_node(&self, id: NodeId) -> Result<(), Violation> {
        let node = self.slab.node(id);
        let key = node.key;
        if self.index.find(&self.slab, key) != Some(id) {
            return Err(Violation::Unfindable { key, node: id.raw() });
        }
        let (valid, dirty) = (node.valid, node.dirty);
        let in_range = valid & !self.shape.full() == 0 && dirty & !valid == 0;
        if !in_range || (valid == 0) != self.slab.is_ghost(id) {
            return Err(Violation::Masks { key, valid, dirty });
        }
        Ok(())
    }

    fn check_conservation(&self) -> Result<(), Violation> {
        for (tenant, stats) in self.stats.tenants().iter().enumerate() {
            let (written, accounted) = (stats.writes.pages, stats.accounted());
            if written != accounted {
                return Err(Violation::Conservation { tenant, written, accounted });
            }
        }
        Ok(())
    }
}
