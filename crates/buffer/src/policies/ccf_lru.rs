//! Cold-clean-first LRU.

use super::second_chance::{cool, warm};
use crate::{
    Access, Actions, Area, Build, Entries, ListId, NodeId, PolicyInfo, Replacement, Setup,
};

const COLD_CLEAN: ListId = ListId(0);
const MIXED: ListId = ListId(1);

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "ccf-lru",
    about: "Cold clean entries leave before all others.",
    source: "Li, Jin, Su, Cui, Yue 2009, CCF-LRU",
    parameters: &[],
    build: Build::of::<CcfLru>(),
};

/// A list of clean entries that were not accessed again, and a mixed list of all others. Victims
/// come from the first; if it is empty, a walk through the second gives each entry one chance.
///
/// The cold flag of an entry in the first list, 1 in the paper, decides nothing: only a hit takes
/// the entry to the second list, and clears it. So it is set in the second list only.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CcfLru;

/// The oldest cold clean entry or, if there is none, the first of the mixed list that is cold. The
/// others on the way become cold: dirty ones go to the newest end, clean ones to the cold clean
/// list, from which the victim comes if no mixed entry is left.
#[inline]
fn victim(e: &mut Entries) -> Option<NodeId> {
    if e.is_empty(COLD_CLEAN) {
        while let Some(oldest) = e.slab().oldest(MIXED) {
            if !cool(e, oldest) {
                return Some(oldest);
            }
            let list = if e.is_dirty(oldest) { MIXED } else { COLD_CLEAN };
            e.move_to_newest(list, oldest);
        }
    }
    e.slab().oldest(COLD_CLEAN)
}

impl Replacement for CcfLru {
    const AREAS: &'static [Area] = &[Area::new("cold-clean"), Area::new("mixed")];

    fn new(_: &Setup) -> Self {
        Self
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        warm(e, id);
        e.move_to_newest(MIXED, id);
    }

    #[inline]
    fn admit(
        &mut self,
        e: &mut Entries,
        key: u32,
        _: Option<NodeId>,
        access: Access,
        out: &mut Actions,
    ) -> Option<NodeId> {
        if e.is_full()
            && let Some(victim) = victim(e)
        {
            e.evict_at(victim, out);
        }
        let list = match access {
            Access::Read => COLD_CLEAN,
            Access::Write => MIXED,
        };
        Some(e.insert(list, key))
    }
}
