//! Policies that can also manage one area of a buffer that another policy divides.

use crate::{Access, Actions, Entries, NodeId, Pages, Replacement};

/// A page that comes into the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newcomer {
    pub(crate) key: u32,
    /// Why it comes.
    pub(crate) access: Access,
    /// Whether it was a ghost.
    pub(crate) known: bool,
}

/// A policy whose first list is not fixed: it manages all entries of a buffer, or those of one area
/// while another policy decides which entries those are and when the area has to give one up.
pub(crate) trait Nested: Replacement {
    /// Entries in its lists.
    fn len(e: &Entries) -> u32;

    /// Evicts at least one entry if there is one.
    fn evict(&mut self, e: &mut Entries, out: &mut Actions);

    /// Inserts a page, for which there is room in the buffer. A policy whose lists have limits of
    /// their own may have to evict all the same.
    fn insert(&mut self, e: &mut Entries, page: Newcomer, out: &mut Actions) -> NodeId;

    /// Evicts at least one entry, of which there is one, and inserts a page.
    #[inline]
    fn replace(&mut self, e: &mut Entries, page: Newcomer, out: &mut Actions) -> NodeId {
        self.evict(e, out);
        self.insert(e, page, out)
    }

    /// Does so for fresh pages, and returns their number, if there is a faster way than one by one.
    #[inline]
    fn replace_fresh(&mut self, _: &mut Entries, _: Pages, _: &mut Actions) -> u32 {
        0
    }

    /// Takes over an entry of another area because it was accessed again.
    fn join(&mut self, e: &mut Entries, id: NodeId);

    /// What [`Replacement::admit`] does if the buffer is not divided.
    #[inline]
    fn make_room_and_insert(
        &mut self,
        e: &mut Entries,
        (key, access): (u32, Access),
        ghost: Option<NodeId>,
        out: &mut Actions,
    ) -> Option<NodeId> {
        if let Some(ghost) = ghost {
            e.remove_ghost(ghost);
        }
        let page = Newcomer { key, access, known: ghost.is_some() };
        Some(if e.is_full() { self.replace(e, page, out) } else { self.insert(e, page, out) })
    }
}
