//! LRU with write sequence reordering: dirty entries leave only when they are cold.

use super::second_chance::{cool, oldest_unspared, warm};
use crate::{
    Access, Actions, Area, Build, Entries, ListId, NodeId, PolicyInfo, Replacement, Setup,
};

const ALL: ListId = ListId(0);

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "lru-wsr",
    about: "LRU that gives dirty entries a second chance until they are cold.",
    source: "Jung, Shim, Park, Kang, Cha 2008, LRU-WSR",
    parameters: &[],
    build: Build::of::<LruWsr>(),
};

/// LRU that gives dirty entries a second chance until they are cold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LruWsr;

impl Replacement for LruWsr {
    const AREAS: &'static [Area] = &[Area::new("all")];

    fn new(_: &Setup) -> Self {
        Self
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        warm(e, id);
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
        if e.is_full()
            && let Some(victim) = oldest_unspared(e, ALL, |e, id| e.is_dirty(id) && cool(e, id))
        {
            e.evict_at(victim, out);
        }
        Some(e.insert(ALL, key))
    }
}
