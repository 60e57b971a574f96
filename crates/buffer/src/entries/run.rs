//! A run: entries that are neighbours in a list and leave together.

use onefold_units::convert::index;

use super::Entries;
use crate::{Action, Actions, ListId, Node, NodeId, PartMask, Programmed};

/// Entries that are neighbours in a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// The oldest of them.
    pub(crate) oldest: NodeId,
    /// The newest of them.
    pub(crate) newest: NodeId,
    /// How many they are, at least one.
    pub(crate) len: u32,
}

onefold_units::keep!(Run { oldest, newest, len });

impl Entries {
    /// Entries of a run, oldest first.
    #[inline]
    pub(crate) fn run(&self, run: Run) -> impl Iterator<Item = NodeId> {
        let newer = |id: &NodeId| Some(NodeId(self.slab.node(*id).newer));
        std::iter::successors(Some(run.oldest), newer).take(index(run.len))
    }

    /// The entries of a run, ascending. The list has to be given back.
    pub(crate) fn take_run(&mut self, run: Run) -> Vec<NodeId> {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        found.extend(self.run(run));
        found.sort_unstable_by_key(|id| self.slab.node(*id).key);
        found
    }

    /// Evicts a run as [`Entries::evict_group`] does: ascending, the clean entries first.
    #[inline]
    pub(crate) fn evict_run(&mut self, run: Run, out: &mut Actions) {
        let alone = self.shape.per_program() == 1 && !self.remembers;
        if alone && self.is_in_order(run) {
            self.evict_in_order(run, out);
        } else {
            self.evict_sorted(run, out);
        }
    }

    /// Evicts all entries of a list, oldest first.
    pub(crate) fn evict_all(&mut self, list: ListId, out: &mut Actions) {
        let ends = (self.slab.oldest(list), self.slab.newest(list));
        if let (Some(oldest), Some(newest)) = ends {
            let run = Run { oldest, newest, len: self.len(list) };
            if self.shape.per_program() == 1 && !self.remembers && self.is_in_order(run) {
                return self.evict_in_order(run, out);
            }
        }
        while !self.is_empty(list) {
            self.evict(list, out);
        }
    }

    #[cold]
    fn evict_sorted(&mut self, run: Run, out: &mut Actions) {
        let found = self.take_run(run);
        self.evict_group(&found, out);
        self.give_back_found(found);
    }

    /// Whether the entries came in ascending order and are alike, all of one tenant and whole: most
    /// did and are.
    #[inline]
    fn is_in_order(&self, run: Run) -> bool {
        let mut node = self.slab.node(run.oldest);
        let (tenant, dirty) = (node.tenant, node.dirty);
        if node.valid != self.shape.full() {
            return false;
        }
        for _ in 1..run.len {
            let next = self.slab.node(NodeId(node.newer));
            let alike = next.tenant == tenant && next.dirty == dirty && next.valid == node.valid;
            if next.key < node.key || !alike {
                return false;
            }
            node = next;
        }
        true
    }

    /// The free list is linked like any other list, so a run joins it as it is.
    #[inline]
    fn evict_in_order(&mut self, run: Run, out: &mut Actions) {
        let &Node { list, tenant, dirty, .. } = self.slab.node(run.oldest);
        let area = self.stats.area_mut(list);
        area.entries -= run.len;
        if dirty == 0 {
            area.clean_evictions += u64::from(run.len);
        } else {
            area.dirty -= run.len;
            area.dirty_evictions += u64::from(run.len);
            self.count_programs(tenant, run.len);
        }
        let stream = self.streams[usize::from(list)];
        let mut id = run.oldest;
        for _ in 0..run.len {
            let &Node { newer, key, .. } = self.slab.node(id);
            let (lpn, slot) = self.place(id);
            if dirty == 0 {
                out.push(Action::Drop { lpn, slot });
            } else {
                let dirty = PartMask::new(dirty);
                out.program_one(|| (stream, Programmed { lpn, slot, dirty }));
            }
            self.slab.leave_bucket(id, self.index.head_mut(key));
            id = NodeId(newer);
        }
        self.slab.free_run(run.newest, run.oldest);
    }

    /// Loads the ends of a run that is going to be evicted soon.
    #[inline]
    pub(crate) fn touch_run(&self, run: Run) {
        std::hint::black_box(self.slab.node(run.oldest).key ^ self.slab.node(run.newest).key);
    }
}
