//! FIFO with a hand that passes over accessed entries. Source: Zhang et al. 2024, algorithm 1.

use super::nested::{Nested, Newcomer};
use crate::{
    Access, Actions, Area, Build, Entries, ListId, NodeId, PolicyInfo, Replacement, Setup,
};

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "sieve",
    about: "FIFO with a hand that passes over accessed entries.",
    source: "Zhang et al. 2024",
    parameters: &[],
    build: Build::of::<Sieve>(),
};

/// One list by insertion, number `AT`, whose hand looks for victims from the oldest end to the newest and round.
/// `aux` of an entry is 1 if it was accessed since the hand passed.
#[derive(Clone)]
pub(crate) struct Sieve<const AT: u8 = 0> {
    /// The entry the search goes on with; `None` is the oldest one.
    hand: Option<NodeId>,
}

impl<const AT: u8> Sieve<AT> {
    /// The next entry that was not accessed since the hand passed, which goes on from there.
    #[inline]
    fn victim(&self, e: &mut Entries) -> Option<NodeId> {
        let oldest = |e: &Entries| e.slab().oldest(ListId(AT));
        let mut at = self.hand.or_else(|| oldest(e))?;
        while std::mem::take(e.aux_mut(at)) != 0 {
            let next = e.slab().newer(at).or_else(|| oldest(e));
            at = next.unwrap_or(at);
        }
        Some(at)
    }
}

impl<const AT: u8> Nested for Sieve<AT> {
    #[inline]
    fn len(e: &Entries) -> u32 {
        e.len(ListId(AT))
    }

    /// Evicts the next entry that was not accessed since the hand passed.
    fn evict(&mut self, e: &mut Entries, out: &mut Actions) {
        let Some(victim) = self.victim(e) else { return };
        // The victim may take along newer entries, none below it: from there the hand goes on.
        let below = e.slab().older(victim);
        e.evict_at(victim, out);
        let oldest = || e.slab().oldest(ListId(AT));
        self.hand = below.map_or_else(oldest, |below| e.slab().newer(below));
    }

    #[inline]
    fn replace(&mut self, e: &mut Entries, page: Newcomer, out: &mut Actions) -> NodeId {
        if e.shape().per_program() == 1
            && let Some(victim) = self.victim(e)
        {
            self.hand = e.slab().newer(victim);
            return e.replace_at(victim, ListId(AT), page.key, out);
        }
        self.evict(e, out);
        self.insert(e, page, out)
    }

    #[inline]
    fn insert(&mut self, e: &mut Entries, page: Newcomer, _: &mut Actions) -> NodeId {
        e.insert(ListId(AT), page.key)
    }

    #[inline]
    fn join(&mut self, e: &mut Entries, id: NodeId) {
        e.move_to_newest(ListId(AT), id);
    }
}

impl<const AT: u8> Replacement for Sieve<AT> {
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
        ghost: Option<NodeId>,
        access: Access,
        out: &mut Actions,
    ) -> Option<NodeId> {
        self.make_room_and_insert(e, (key, access), ghost, out)
    }

    #[inline]
    fn forget(&mut self, e: &mut Entries, id: NodeId) {
        if self.hand == Some(id) {
            self.hand = e.slab().newer(id);
        }
    }

    onefold_units::keep_fields!({ hand });
}
