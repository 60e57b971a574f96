//! FIFO with a hand that passes over accessed entries. Source: Zhang et al. 2024, algorithm 1.

use crate::{Access, Actions, Area, Entries, ListId, NodeId, PolicyInfo, Replacement, Setup};

const ALL: ListId = ListId(0);

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "sieve",
    about: "FIFO with a hand that passes over accessed entries.",
    source: "Zhang et al. 2024",
    parameters: &[],
};

/// One list by insertion, whose hand looks for victims from the oldest end to the newest and round.
/// `aux` of an entry is 1 if it was accessed since the hand passed.
pub(crate) struct Sieve {
    /// The entry the search goes on with; `None` is the oldest one.
    hand: Option<NodeId>,
}

impl Sieve {
    /// Evicts the next entry that was not accessed since the hand passed.
    fn evict(&mut self, e: &mut Entries, out: &mut Actions) {
        let Some(mut at) = self.hand.or_else(|| e.slab().oldest(ALL)) else { return };
        while std::mem::take(e.aux_mut(at)) != 0 {
            let next = e.slab().newer(at).or_else(|| e.slab().oldest(ALL));
            at = next.unwrap_or(at);
        }
        // The victim may take along newer entries, none below it: from there the hand goes on.
        let below = e.slab().older(at);
        e.evict_at(at, out);
        self.hand = below.map_or_else(|| e.slab().oldest(ALL), |below| e.slab().newer(below));
    }
}

impl Replacement for Sieve {
    const AREAS: &'static [Area] = &[Area::new("all")];

    fn new(_: &Setup) -> Self {
        Self { hand: None }
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        *e.aux_mut(id) = 1;
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
            self.evict(e, out);
        }
        Some(e.insert(ALL, key))
    }

    #[inline]
    fn forget(&mut self, e: &mut Entries, id: NodeId) {
        if self.hand == Some(id) {
            self.hand = e.slab().newer(id);
        }
    }
}
