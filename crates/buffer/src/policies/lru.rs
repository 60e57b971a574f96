//! Least recently used.

use crate::{Access, Actions, Area, Entries, ListId, NodeId, PolicyInfo, Replacement, Setup};

const ALL: ListId = ListId(0);

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "lru",
    about: "One list by recency of any access; the least recently used entry leaves.",
    source: "folklore",
    parameters: &[],
};

/// One list by recency of any access; the least recently used entry leaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lru;

impl Replacement for Lru {
    const AREAS: &'static [Area] = &[Area::new("all")];

    fn new(_: &Setup) -> Self {
        Self
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        e.move_to_newest(ALL, id);
    }

    #[inline]
    fn admit(
        &mut self,
        e: &mut Entries,
        key: u32,
        _: Option<NodeId>,
        _: Access,
        out: &mut Actions,
    ) -> Option<NodeId> {
        if e.is_full() {
            e.evict(ALL, out);
        }
        Some(e.insert(ALL, key))
    }
}
