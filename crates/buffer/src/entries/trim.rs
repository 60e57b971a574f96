//! TRIM: what is buffered of a range of pages, and how it leaves.

use std::ops::RangeInclusive;

use super::Entries;
use crate::index::GROUP_KEYS;
use crate::{Action, Actions, NodeId, Req};

/// The keys from `first` to `last`, by groups of the index.
fn groups(first: u32, last: u32) -> impl Iterator<Item = RangeInclusive<u32>> {
    let end = move |first: u32| (first | (GROUP_KEYS - 1)).min(last);
    let next = move |group: &RangeInclusive<u32>| {
        let first = group.end().checked_add(1).filter(|first| *first <= last)?;
        Some(first..=end(first))
    };
    std::iter::successors(Some(first..=end(first)), next)
}

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
    /// Little of a trimmed range is buffered, so the index is asked for groups of pages first. A
    /// range larger than the buffer is not looked up at all: a whole-device TRIM costs no more than a
    /// walk over the buffer.
    pub(crate) fn take_found(&mut self, r: &Req) -> Vec<NodeId> {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        let (first, last) = (r.lpn.raw(), r.lpn.raw().saturating_add(r.n - 1));
        if r.n <= self.slab.capacity() {
            for group in groups(first, last) {
                if !self.index.lacks_group(*group.start()) {
                    found.extend(group.filter_map(|key| self.index.find(&self.slab, key)));
                }
            }
            return found;
        }
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
