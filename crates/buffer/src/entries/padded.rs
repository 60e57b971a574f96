//! Eviction of whole blocks.

use onefold_units::Lpn;
use onefold_units::convert::{index, u64_from};

use super::Entries;
use crate::{Action, Actions, NodeId, PartMask, Programmed, Slot, Stream};

impl Entries {
    /// Evicts the entries of one block of `pages` pages, given ascending and with a dirty one among
    /// them, by programming all of the block: every page up to the page `last`.
    ///
    /// Pages that are not buffered are read first, into the slots behind those of the entries. The
    /// reads and the pages that were not dirty count for the tenant of the first dirty entry.
    pub fn evict_padded(&mut self, group: &[NodeId], pages: u32, last: u32, out: &mut Actions) {
        let Some(dirty) = group.iter().find(|id| self.is_dirty(**id)) else {
            panic!("invariant 7: a block without a dirty entry needs no program");
        };
        let owner = *self.slab.node(*dirty);
        let mut block = std::mem::take(&mut self.block);
        block.clear();
        let dirty = self.gather(group, pages, last, &mut block, out);
        let tenant = self.stats.tenant_mut(owner.tenant);
        tenant.pad_reads += u64_from(block.len() - group.len());
        tenant.pages_padded += u64_from(block.len()) - dirty;
        self.program_block(&block, owner.tenant, self.streams[usize::from(owner.list)], out);
        let area = self.stats.area_mut(owner.list);
        area.flushed -= dirty;
        area.dirty_evictions += dirty;
        area.clean_evictions += u64_from(group.len()) - dirty;
        self.block = block;
        self.evicted.clear();
        for id in group {
            self.evicted.push(self.slab.node(*id).key);
            self.remove(*id);
        }
    }

    /// Completes the pages of a block and counts its dirty ones.
    fn gather(
        &mut self,
        group: &[NodeId],
        pages: u32,
        last: u32,
        block: &mut Vec<Programmed>,
        out: &mut Actions,
    ) -> u64 {
        let (missing, nothing) = (PartMask::new(self.shape.full()), PartMask::new(0));
        let key = |id: Option<&NodeId>| id.map_or(0, |id| self.slab.node(*id).key);
        let first = key(group.first()) / pages * pages;
        let last = last.min(first.saturating_add(pages - 1)).max(key(group.last()));
        let (mut dirty, mut scratch) = (0, self.shape.slots());
        let mut entries = group.iter().copied().peekable();
        for key in first..=last {
            let Some(id) = entries.next_if(|id| self.slab.node(*id).key == key) else {
                let (lpn, slot) = (Lpn::new(key), Slot::new(scratch));
                scratch += 1;
                out.push(Action::PadRead { lpn, slot, missing });
                block.push(Programmed { lpn, slot, dirty: nothing });
                continue;
            };
            if self.is_dirty(id) {
                dirty += 1;
                block.push(self.mark_programmed(id, out));
                continue;
            }
            let (lpn, slot) = self.place(id);
            block.push(Programmed { lpn, slot, dirty: nothing });
        }
        dirty
    }

    fn program_block(
        &mut self,
        block: &[Programmed],
        tenant: u8,
        stream: Stream,
        out: &mut Actions,
    ) {
        let k = index(self.shape.per_program());
        for batch in block.chunks(k) {
            out.program(stream, batch.iter().copied());
            let tenant = self.stats.tenant_mut(tenant);
            tenant.programs += 1;
            tenant.short_programs += u64::from(batch.len() < k);
        }
    }
}
