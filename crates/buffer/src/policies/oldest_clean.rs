//! Finds the oldest clean entry of a list, or of its older part, without walking the list for
//! every victim.
//!
//! Terms. The *range* is what the policy looks at: the entries of a list from its oldest one to
//! `end` (`None`: no entry). The *cursor* is an entry of the range; everything older is *passed*,
//! that is known to be dirty. Without a cursor the whole range is passed.
//!
//! Cost: the cursor passes an entry at most once after each time that the entry joined the range or
//! was cleaned, so constant time per access on average. Clean entries keep their place in the list:
//! recency, FLUSH order and what a batch takes along need no bookkeeping of their own.

use crate::{Entries, ListId, NodeId, Violation};

/// Bit of [`Entries::aux_mut`]: the entry is older than the cursor.
const PASSED: u16 = 1 << 15;

/// The cursor of one range.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OldestClean {
    cursor: Option<NodeId>,
}

onefold_units::keep!(OldestClean { cursor });

impl OldestClean {
    /// The oldest clean entry of the range.
    #[inline]
    pub(super) fn find(&mut self, e: &mut Entries, end: Option<NodeId>) -> Option<NodeId> {
        while let Some(id) = self.cursor.filter(|id| e.is_dirty(*id)) {
            *e.aux_mut(id) |= PASSED;
            self.cursor = next(e, id, end);
        }
        self.cursor
    }

    /// The entry became the newest one of the range.
    #[inline]
    pub(super) fn joined(&mut self, id: NodeId) {
        self.cursor.get_or_insert(id);
    }

    /// The entry is about to leave the range.
    #[inline]
    pub(super) fn leaves(&mut self, e: &mut Entries, id: NodeId, end: Option<NodeId>) {
        *e.aux_mut(id) &= !PASSED;
        if self.cursor == Some(id) {
            self.cursor = next(e, id, end);
        }
    }

    /// The entry, in the range or not, was programmed and stays: the cursor goes back to it if it
    /// was passed.
    pub(super) fn cleaned(&mut self, e: &mut Entries, id: NodeId, end: Option<NodeId>) {
        if *e.aux_mut(id) & PASSED == 0 {
            return;
        }
        let mut at = Some(id);
        while let Some(passed) = at.filter(|_| at != self.cursor) {
            *e.aux_mut(passed) &= !PASSED;
            at = next(e, passed, end);
        }
        self.cursor = Some(id);
    }

    /// Checks that the entries older than the cursor, and only they, are passed, and dirty.
    pub(super) fn check(
        self,
        e: &Entries,
        list: ListId,
        end: Option<NodeId>,
    ) -> Result<(), Violation> {
        let mut passed = true;
        let mut at = end.and_then(|_| e.slab().oldest(list));
        while let Some(id) = at {
            passed &= at != self.cursor;
            check_mark(e, id, PASSED, passed)?;
            check_mark(e, id, PASSED, passed && e.is_dirty(id))?;
            at = next(e, id, end);
        }
        Ok(())
    }
}

/// Checks whether an entry has a mark.
pub(super) fn check_mark(
    e: &Entries,
    id: NodeId,
    mark: u16,
    expected: bool,
) -> Result<(), Violation> {
    let node = e.slab().node(id);
    if (node.aux & mark != 0) == expected {
        return Ok(());
    }
    Err(Violation::Mark { list: usize::from(node.list), key: node.key, mark, expected })
}

/// The next newer entry of the range.
#[inline]
fn next(e: &Entries, id: NodeId, end: Option<NodeId>) -> Option<NodeId> {
    if end == Some(id) { None } else { e.slab().newer(id) }
}
