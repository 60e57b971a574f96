//! TRIM: what is buffered of a range of pages, and how it leaves.

use super::Entries;
use crate::{Action, Actions, NodeId, Req};

impl Entries {
    /// Removes an entry or ghost because its page was trimmed.
    pub(crate) fn discard(&mut self, id: NodeId, out: &mut Actions) {
        if !self.slab.is_ghost(id) {
            let (lpn, slot) = self.place(id);
            out.push(Action::Drop { lpn, slot });
            let node = self.slab.node(id);
            if node.dirty != 0 {
                let owner = self.stats.tenant_mut(node.tenant);
                owner.trim_discards += 1;
                owner.dirty = owner.dirty.wrapping_sub(1);
            }
        }
        self.remove(id);
    }

    /// The entries and ghosts in the range of a request, ascending. The list has to be given back.
    ///
    /// A range larger than the buffer is not looked up page by page: a whole-device TRIM costs no
    /// more than a walk over the buffer.
    pub(crate) fn take_found(&mut self, r: &Req) -> Vec<NodeId> {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        if r.n <= self.slab.capacity() {
            found.extend(r.keys().filter_map(|key| self.index.find(&self.slab, key)));
            return found;
        }
        let (first, last) = (r.lpn.raw(), r.lpn.raw().saturating_add(r.n - 1));
        let inside = |id: &NodeId| {
            self.slab.list_of(*id).is_some() && (first..=last).contains(&self.slab.node(*id).key)
        };
        found.extend((0..self.slab.capacity()).map(NodeId).filter(inside));
        found.sort_unstable_by_key(|id| self.slab.node(*id).key);
        found
    }

    pub(crate) fn give_back_found(&mut self, found: Vec<NodeId>) {
        self.found = found;
    }
}
