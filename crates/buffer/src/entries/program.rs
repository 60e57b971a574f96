//! How dirty entries get to flash: eviction, FLUSH and FUA.

use onefold_units::Lpn;
use onefold_units::convert::{index, u32_from};

use super::Entries;
use crate::shape::SCAN_MAX;
use crate::{Action, Actions, ListId, Node, NodeId, PartMask, Programmed, Req, Slot, Stream};

impl Entries {
    /// Evicts the oldest entry of a list, and returns how many slots that freed: see
    /// [`Entries::evict_at`].
    #[inline]
    pub fn evict(&mut self, list: ListId, out: &mut Actions) -> u32 {
        self.evicted.clear();
        self.slab.oldest(list).map_or(0, |victim| self.evict_at(victim, out))
    }

    /// Evicts an entry, and returns how many slots that freed.
    ///
    /// A clean victim leaves alone. A dirty one takes along the next dirty entries of its list
    /// towards the newest end, up to one flash page, looking at `SCAN_MAX` entries (the victim
    /// included). [`Entries::evicted`] has their keys.
    #[inline]
    pub fn evict_at(&mut self, victim: NodeId, out: &mut Actions) -> u32 {
        self.evicted.clear();
        if self.shape.per_program() == 1 {
            self.evict_alone(victim, out);
            return 1;
        }
        self.evict_with_others(victim, out)
    }

    /// Flash pages of one entry: no companions to look for.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of one step: a call is a tenth of it")]
    fn evict_alone(&mut self, id: NodeId, out: &mut Actions) {
        let list = self.slab.node(id).list;
        let key = self.count_out(id, list, out);
        self.stats.area_mut(list).entries -= 1;
        if self.remembers {
            self.evicted.push(key);
        }
        self.slab.detach(id, self.index.head_mut(key));
    }

    /// Drops or programs an entry of a list on its own, which is about to leave. Returns its key.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of one step: a call is a tenth of it")]
    pub(super) fn count_out(&mut self, id: NodeId, list: u8, out: &mut Actions) -> u32 {
        self.send::<true>(id, list, out)
    }

    /// The same; `LISTED` says whether to count it for the list.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of one step: a call is a tenth of it")]
    pub(super) fn send<const LISTED: bool>(
        &mut self,
        id: NodeId,
        list: u8,
        out: &mut Actions,
    ) -> u32 {
        let &Node { key, tenant, valid, dirty, .. } = self.slab.node(id);
        let (lpn, slot) = (Lpn::new(key), Slot::new(id.0));
        if dirty == 0 {
            if LISTED {
                self.stats.area_mut(list).clean_evictions += 1;
            }
            out.push(Action::Drop { lpn, slot });
            return key;
        }
        if LISTED {
            let area = self.stats.area_mut(list);
            area.dirty -= 1;
            area.dirty_evictions += 1;
        }
        if valid != self.shape.full() {
            self.pad(id, out);
        }
        self.count_programs(tenant, 1);
        let dirty = PartMask::new(dirty);
        out.program_one(|| (self.streams[usize::from(list)], Programmed { lpn, slot, dirty }));
        key
    }

    /// Completes an entry that is about to be programmed on its own.
    #[cold]
    fn pad(&mut self, id: NodeId, out: &mut Actions) {
        let padded = self.complete(id, out);
        let tenant = self.slab.node(id).tenant;
        self.stats.tenant_mut(tenant).pad_reads += u64::from(padded);
    }

    /// Counts programs of one entry. Victims come in runs of one owner, so this is mostly one
    /// addition.
    #[inline]
    pub(super) fn count_programs(&mut self, owner: u8, programs: u32) {
        if owner != self.pending.owner {
            self.change_owner(owner);
        }
        self.pending.programs += u64::from(programs);
    }

    #[cold]
    fn change_owner(&mut self, owner: u8) {
        self.count_pending();
        self.pending.owner = owner;
    }

    fn evict_with_others(&mut self, victim: NodeId, out: &mut Actions) -> u32 {
        if !self.is_dirty(victim) {
            self.drop_clean(victim, out);
            return 1;
        }
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        batch.push(victim);
        self.take_along(victim, &mut batch);
        let freed = self.program_and_remove(&batch, out);
        self.batch = batch;
        freed
    }

    /// Evicts several entries of one list together: clean ones are dropped first, the dirty ones
    /// are programmed in the order given, in as few flash pages as they need.
    pub fn evict_group(&mut self, group: &[NodeId], out: &mut Actions) -> u32 {
        self.evicted.clear();
        if self.shape.per_program() == 1 {
            for dirty in [false, true] {
                for id in group {
                    if self.is_dirty(*id) == dirty {
                        self.evict_alone(*id, out);
                    }
                }
            }
            return u32_from(group.len());
        }
        let mut freed = 0;
        let mut dirty = std::mem::take(&mut self.batch);
        dirty.clear();
        for id in group {
            if self.is_dirty(*id) {
                dirty.push(*id);
            } else {
                self.drop_clean(*id, out);
                freed += 1;
            }
        }
        for page in dirty.chunks(index(self.shape.per_program())) {
            freed += self.program_and_remove(page, out);
        }
        self.batch = dirty;
        freed
    }

    fn program_and_remove(&mut self, batch: &[NodeId], out: &mut Actions) -> u32 {
        let list = self.slab.node(batch[0]).list;
        self.program(self.streams[usize::from(list)], batch, out);
        let freed = u32_from(batch.len());
        let area = self.stats.area_mut(list);
        area.flushed -= u64::from(freed);
        area.dirty_evictions += u64::from(freed);
        for id in batch {
            self.note_evicted(*id);
            self.remove(*id);
        }
        freed
    }

    fn note_evicted(&mut self, id: NodeId) {
        if self.remembers {
            self.evicted.push(self.slab.node(id).key);
        }
    }

    fn drop_clean(&mut self, id: NodeId, out: &mut Actions) {
        let (lpn, slot) = self.place(id);
        out.push(Action::Drop { lpn, slot });
        self.note_evicted(id);
        self.stats.area_mut(self.slab.node(id).list).clean_evictions += 1;
        self.remove(id);
    }

    fn take_along(&self, victim: NodeId, batch: &mut Vec<NodeId>) {
        let k = index(self.shape.per_program());
        let newer = std::iter::successors(self.slab.newer(victim), |id| self.slab.newer(*id));
        for id in newer.take(index(SCAN_MAX) - 1) {
            if batch.len() == k {
                break;
            }
            if self.is_dirty(id) {
                batch.push(id);
            }
        }
    }

    /// Programs one flash page; its entries become clean and complete (invariant 7).
    fn program(&mut self, stream: Stream, batch: &[NodeId], out: &mut Actions) {
        let k = index(self.shape.per_program());
        assert!((1..=k).contains(&batch.len()), "invariant 7: a program of {} of {k}", batch.len());
        let mut block = std::mem::take(&mut self.block);
        block.clear();
        for id in batch {
            block.push(self.mark_programmed(*id, out));
        }
        let first = self.stats.tenant_mut(self.slab.node(batch[0]).tenant);
        first.programs += 1;
        first.short_programs += u64::from(batch.len() < k);
        out.program(stream, block.iter().copied());
        self.block = block;
    }

    /// The entry is part of the next program: it becomes clean and complete.
    pub(super) fn mark_programmed(&mut self, id: NodeId, out: &mut Actions) -> Programmed {
        let padded = u64::from(self.complete(id, out));
        let node = self.slab.node_mut(id);
        assert!(node.dirty != 0, "invariant 7: entry {} is clean", node.key);
        let dirty = PartMask::new(std::mem::take(&mut node.dirty));
        let area = self.stats.area_mut(node.list);
        area.dirty -= 1;
        area.flushed += 1;
        let owner = self.stats.tenant_mut(node.tenant);
        owner.pad_reads += padded;
        owner.pages_programmed += 1;
        owner.dirty = owner.dirty.wrapping_sub(1);
        let (lpn, slot) = self.place(id);
        Programmed { lpn, slot, dirty }
    }

    /// Programs the dirty entries of a list, oldest first. They stay, clean, where they are.
    ///
    /// The search runs from the newest end and stops at the last dirty entry, so after a recent
    /// flush it is short however large the buffer is.
    pub fn flush(&mut self, list: ListId, out: &mut Actions) {
        let (stream, dirty_entries) =
            (self.streams[usize::from(list.0)], self.stats.area(list.0).dirty);
        let mut dirty = std::mem::take(&mut self.found);
        dirty.clear();
        let mut at = self.slab.newest(list);
        while let Some(id) = at.filter(|_| dirty.len() < index(dirty_entries)) {
            if self.is_dirty(id) {
                dirty.push(id);
            }
            at = self.slab.older(id);
        }
        dirty.reverse();
        for batch in dirty.chunks(index(self.shape.per_program())) {
            self.program(stream, batch, out);
        }
        self.cleaned.extend_from_slice(&dirty);
        self.found = dirty;
    }

    /// Programs the dirty entries of a request, ascending, stream by stream: the end of a FUA write.
    pub(crate) fn program_request(&mut self, r: &Req, out: &mut Actions) {
        let mut dirty = std::mem::take(&mut self.found);
        for stream in Stream::ALL {
            if !self.streams.contains(&stream) {
                continue;
            }
            dirty.clear();
            let stream_of = |id: NodeId| self.streams[usize::from(self.slab.node(id).list)];
            let entries = r.keys().filter_map(|key| self.find(key));
            dirty.extend(entries.filter(|id| self.is_dirty(*id) && stream_of(*id) == stream));
            for batch in dirty.chunks(index(self.shape.per_program())) {
                self.program(stream, batch, out);
            }
            self.cleaned.extend_from_slice(&dirty);
        }
        self.found = dirty;
    }
}
