//! Policies that can also manage one area of a buffer that another policy divides.

use crate::{Actions, Entries, NodeId, Pages, Replacement};

/// A policy whose first list is not fixed: it manages all entries of a buffer, or those of one area
/// while another policy decides which entries those are and when the area has to give one up.
pub(crate) trait Nested: Replacement {
    /// Entries in its lists.
    fn len(e: &Entries) -> u32;

    /// Evicts at least one entry if there is one.
    fn evict(&mut self, e: &mut Entries, out: &mut Actions);

    /// Inserts a key, for which there is room. `known` if it was a ghost.
    fn insert(&mut self, e: &mut Entries, key: u32, known: bool) -> NodeId;

    /// Evicts at least one entry, of which there is one, and inserts a key.
    #[inline]
    fn replace(&mut self, e: &mut Entries, key: u32, known: bool, out: &mut Actions) -> NodeId {
        self.evict(e, out);
        self.insert(e, key, known)
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
        key: u32,
        ghost: Option<NodeId>,
        out: &mut Actions,
    ) -> Option<NodeId> {
        if let Some(ghost) = ghost {
            e.remove_ghost(ghost);
        }
        let known = ghost.is_some();
        Some(if e.is_full() {
            self.replace(e, key, known, out)
        } else {
            self.insert(e, key, known)
        })
    }
}
