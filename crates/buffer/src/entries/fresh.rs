//! Fresh pages: several pages of one request that are neither buffered nor remembered.
//!
//! Long requests are mostly fresh, and a policy treats their pages alike: each takes the slot of the
//! oldest entry of one list and becomes the newest one of another. The victims then are neighbours
//! in their list, in the very order in which the pages come, so that the whole run changes lists
//! with one splice and every victim with a new key. The result is that of
//! [`Entries::replace`] for one page after the other.

use onefold_units::Lpn;
use onefold_units::convert::index;

use super::{Entries, Memory, Run};
use crate::index::GROUP_KEYS;
use crate::node::{Keys, NewNode};
use crate::{Access, Action, Actions, ListId, NodeId, PartMask, Slot};

/// Pages of one request, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    /// Key of the first.
    pub first: u32,
    /// How many they are.
    pub len: u32,
    /// What they are accessed for.
    pub access: Access,
    /// Whose they are.
    pub tenant: u8,
}

impl Pages {
    /// The first of them, `most` at most.
    #[must_use]
    #[inline]
    pub fn up_to(self, most: u32) -> Self {
        Self { len: self.len.min(most), ..self }
    }

    /// The others. There may be none, after the last page of all.
    #[must_use]
    #[inline]
    pub fn after(self, count: u32) -> Self {
        Self { first: self.first.wrapping_add(count), len: self.len - count, ..self }
    }
}

impl Entries {
    /// The pages before the first one that is buffered or remembered; none if flash pages hold more
    /// than one entry, for then victims leave in company.
    #[must_use]
    #[inline]
    pub fn fresh(&self, pages: Pages) -> Pages {
        if self.shape.per_program() != 1 {
            return pages.up_to(0);
        }
        let mut rest = pages;
        while rest.len > 0 {
            let group = rest.up_to(GROUP_KEYS - rest.first % GROUP_KEYS);
            if !self.index.lacks_group(group.first) {
                let fresh = self.fresh_among_others(group);
                if fresh < group.len {
                    return pages.up_to(pages.len - rest.len + fresh);
                }
            }
            rest = rest.after(group.len);
        }
        pages
    }

    fn fresh_among_others(&self, pages: Pages) -> u32 {
        let is_fresh = |at: &u32| self.index.find(&self.slab, pages.first + at).is_none();
        let found = (0..pages.len).find(|at| !is_fresh(at));
        found.unwrap_or(pages.len)
    }

    /// Gives the slots of the oldest entries of `from` to fresh pages, one after the other, and makes the
    /// pages the newest entries of `to`. Returns how many pages, at most the entries of `from`. Within
    /// one list all pages find a victim: the first pages may be victims of the last ones.
    #[inline]
    pub fn replace_oldest(
        &mut self,
        from: ListId,
        to: ListId,
        pages: Pages,
        out: &mut Actions,
    ) -> u32 {
        self.replace_run(from, to, None, pages, out)
    }

    /// The same; what left is remembered.
    #[inline]
    pub fn replace_oldest_and_remember(
        &mut self,
        from: ListId,
        memory: Memory,
        to: ListId,
        pages: Pages,
        out: &mut Actions,
    ) -> u32 {
        let mut rest = pages;
        while rest.len > 0 && !self.is_empty(from) {
            let done = self.replace_run(from, to, Some(memory), rest.up_to(GROUP_KEYS), out);
            rest = rest.after(done);
        }
        pages.len - rest.len
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the callers know whether there is a memory")]
    fn replace_run(
        &mut self,
        from: ListId,
        to: ListId,
        memory: Option<Memory>,
        pages: Pages,
        out: &mut Actions,
    ) -> u32 {
        let pages = if from == to { pages } else { pages.up_to(self.len(from)) };
        let Some(oldest) = self.slab.oldest(from).filter(|_| pages.len > 0) else { return 0 };
        let end = self.slab.sentinel(from.0);
        let new_node = self.new_node(to, pages);
        let mut left = [0; index(GROUP_KEYS)];
        let (mut id, mut newest, mut clean) = (oldest, oldest, 0);
        for at in 0..pages.len {
            let victim = self.slab.node(id);
            let newer = if victim.newer == end { oldest } else { NodeId(victim.newer) };
            clean += u32::from(victim.dirty == 0);
            let key = self.send::<false>(id, from.0, out);
            if memory.is_some() {
                left[index(at)] = key;
            }
            self.slab.rename(id, pages.first + at, new_node, &mut self.index);
            Self::put(id, pages.first + at, pages.access, new_node, out);
            newest = id;
            id = newer;
        }
        self.slab.move_run_to_newest(to, oldest, newest);
        self.count_replaced(from, to, pages, clean);
        if let Some(memory) = memory {
            self.remember_all(memory, &left[..index(pages.len)]);
        }
        pages.len
    }

    /// Puts fresh pages, for which there are free slots, into a list: on the older side of `newer`, or
    /// at the newest end. `each` is told their entries and keys.
    #[inline]
    pub(crate) fn insert_fresh(
        &mut self,
        list: ListId,
        newer: Option<NodeId>,
        pages: Pages,
        mut each: impl FnMut(NodeId, u32),
        out: &mut Actions,
    ) -> Run {
        let new_node = self.new_node(list, pages);
        let Pages { first, len, access, .. } = pages;
        let each = |id, key| {
            each(id, key);
            Self::put(id, key, access, new_node, out);
        };
        let newer = newer.map_or_else(|| self.slab.sentinel(list.0), NodeId::raw);
        let keys = Keys { first, len };
        let (oldest, newest) = self.slab.attach_run(new_node, newer, keys, &mut self.index, each);
        self.count_joined(list, pages);
        Run { oldest, newest, len }
    }

    /// What the entry of a fresh page is like.
    #[inline]
    pub(super) fn new_node(&self, list: ListId, pages: Pages) -> NewNode {
        let valid = self.shape.full();
        let dirty = if pages.access == Access::Write { valid } else { 0 };
        NewNode { list: list.0, tenant: pages.tenant, valid, dirty }
    }

    /// The step that brings the bytes of a fresh page.
    #[inline]
    pub(super) fn put(id: NodeId, key: u32, access: Access, new_node: NewNode, out: &mut Actions) {
        let (lpn, slot) = (Lpn::new(key), Slot::new(id.0));
        out.push(match access {
            Access::Read => Action::Fill { lpn, slot, missing: PartMask::new(new_node.valid) },
            Access::Write => Action::Store { lpn, slot },
        });
    }

    /// `clean` entries of `from`, and dirty ones for the other pages, made room for pages in `to`.
    #[inline]
    fn count_replaced(&mut self, from: ListId, to: ListId, pages: Pages, clean: u32) {
        self.count_joined(to, pages);
        let left = self.stats.area_mut(from.0);
        let dirty = pages.len - clean;
        left.entries -= pages.len;
        left.dirty -= dirty;
        left.clean_evictions += u64::from(clean);
        left.dirty_evictions += u64::from(dirty);
    }

    /// Fresh pages are in a list now.
    #[inline]
    pub(super) fn count_joined(&mut self, to: ListId, pages: Pages) {
        let joined = self.stats.area_mut(to.0);
        joined.entries += pages.len;
        if pages.access == Access::Write {
            joined.dirty += pages.len;
        }
    }
}
