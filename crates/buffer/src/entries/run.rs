//! A run: entries that are neighbours in a list and leave together.

use super::Entries;
use crate::{Actions, NodeId};

/// Entries that are neighbours in a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// The newest of them.
    pub(crate) newest: NodeId,
    /// How many they are, at least one.
    pub(crate) len: u32,
}

/// What a walk over a run finds.
#[derive(Clone, Copy, Debug)]
struct Walk {
    oldest: NodeId,
    dirty: u32,
}

impl Entries {
    /// The entries of a run, ascending. The list has to be given back.
    pub(crate) fn take_run(&mut self, run: Run) -> Vec<NodeId> {
        let mut found = std::mem::take(&mut self.found);
        self.walk_run(run, &mut found);
        found
    }

    /// Collects a run in ascending order. Mostly it came in that order, which is then that of the
    /// list.
    #[inline]
    fn walk_run(&self, run: Run, found: &mut Vec<NodeId>) -> Walk {
        found.clear();
        let mut at = run.newest;
        let (mut above, mut in_order) = (u64::MAX, true);
        let mut walk = Walk { oldest: at, dirty: 0 };
        found.extend((0..run.len).map(|_| {
            let node = self.slab.node(at);
            in_order &= u64::from(node.key) < above;
            above = u64::from(node.key);
            walk.dirty += u32::from(node.dirty != 0);
            walk.oldest = at;
            std::mem::replace(&mut at, NodeId(node.older))
        }));
        found.reverse();
        if !in_order {
            found.sort_unstable_by_key(|id| self.slab.node(*id).key);
        }
        walk
    }

    /// Evicts a run as [`Entries::evict_group`] does: ascending, the clean entries first.
    #[inline]
    pub(crate) fn evict_run(&mut self, run: Run, out: &mut Actions) {
        let mut found = std::mem::take(&mut self.found);
        let Walk { oldest, dirty } = self.walk_run(run, &mut found);
        if self.shape.per_program() == 1 && !self.remembers {
            let list = self.slab.node(oldest).list;
            let area = self.stats.area_mut(list);
            area.entries -= run.len;
            area.dirty -= dirty;
            area.clean_evictions += u64::from(run.len - dirty);
            area.dirty_evictions += u64::from(dirty);
            if dirty < run.len {
                self.send_run(&found, list, false, out);
            }
            if dirty > 0 {
                self.send_run(&found, list, true, out);
            }
            self.slab.free_run(run.newest, oldest);
        } else {
            self.evict_group(&found, out);
        }
        self.found = found;
    }

    /// Drops or programs those entries of a run that are clean or dirty, and takes them out of the
    /// index.
    #[inline]
    fn send_run(&mut self, run: &[NodeId], list: u8, dirty: bool, out: &mut Actions) {
        for id in run {
            if self.is_dirty(*id) == dirty {
                let key = self.send::<false>(*id, list, out);
                self.slab.leave_bucket(*id, self.index.head_mut(key));
            }
        }
    }
}
