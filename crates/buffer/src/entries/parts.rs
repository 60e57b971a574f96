//! Reading and writing entries: which parts are valid, and which are dirty.

use onefold_units::Lpn;

use super::Entries;
use crate::cover::Cover;
use crate::stats::Written;
use crate::{Action, Actions, NodeId, PartMask, Slot};

impl Entries {
    /// Serves a read: `true` if all that is needed was there, else asks for the missing parts.
    #[inline]
    pub(crate) fn load(&mut self, id: NodeId, cover: Cover, out: &mut Actions) -> bool {
        let (lpn, slot) = self.place(id);
        let full = self.shape.full();
        let node = self.slab.node_mut(id);
        if cover.touched & !node.valid == 0 {
            out.push(Action::Hit { lpn, slot });
            return true;
        }
        let missing = PartMask::new(full & !node.valid);
        node.valid = full;
        out.push(Action::Fill { lpn, slot, missing });
        false
    }

    /// Takes a write.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "one caller, once per page written: a call is a tenth"
    )]
    pub(crate) fn store(
        &mut self,
        id: NodeId,
        cover: Cover,
        tenant: u8,
        written: &mut Written,
        out: &mut Actions,
    ) {
        if cover.torn != 0 {
            self.complete_torn(id, cover, tenant, out);
        }
        let node = self.slab.node_mut(id);
        let (lpn, slot) = (Lpn::new(node.key), Slot::new(id.0));
        if node.dirty == 0 {
            self.stats.area_mut(node.list).dirty += 1;
            written.dirtied += 1;
        } else if node.tenant == tenant {
            written.overwritten += 1;
        } else {
            let owner = self.stats.tenant_mut(node.tenant);
            owner.overwritten += 1;
            owner.dirty = owner.dirty.wrapping_sub(1);
            written.dirtied += 1;
        }
        node.valid |= cover.touched;
        node.dirty |= cover.touched;
        node.tenant = tenant;
        out.push(Action::Store { lpn, slot });
    }

    /// Loads what a write needs of parts that it covers in part.
    #[cold]
    fn complete_torn(&mut self, id: NodeId, cover: Cover, tenant: u8, out: &mut Actions) {
        if cover.torn & !self.slab.node(id).valid != 0 {
            self.stats.tenant_mut(tenant).pad_reads += 1;
            self.complete(id, out);
        }
    }

    /// Loads the parts of an entry that are not valid, if any.
    #[cold]
    pub(super) fn complete(&mut self, id: NodeId, out: &mut Actions) -> bool {
        let (lpn, slot) = self.place(id);
        let full = self.shape.full();
        let node = self.slab.node_mut(id);
        let missing = full & !node.valid;
        if missing == 0 {
            return false;
        }
        node.valid = full;
        out.push(Action::PadRead { lpn, slot, missing: PartMask::new(missing) });
        true
    }
}
