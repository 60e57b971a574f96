//! Least recently used.

use super::nested::{Nested, Newcomer};
use crate::{
    Access, Actions, Area, Build, Entries, ListId, NodeId, Pages, PolicyInfo, Replacement, Setup,
};

/// The policy for whoever has no other in mind: least recently used.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "lru",
    about: "One list by recency of any access; the least recently used entry leaves.",
    source: "folklore",
    parameters: &[],
    build: Build::of::<Lru>(),
};

/// One list by recency of any access, list number `AT`; the least recently used entry leaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lru<const AT: u8 = 0>;

impl<const AT: u8> Replacement for Lru<AT> {
    const AREAS: &'static [Area] = &[Area::new("all")];

    fn new(_: &Setup) -> Self {
        Self
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        self.join(e, id);
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
    fn admit_fresh(&mut self, e: &mut Entries, pages: Pages, out: &mut Actions) -> u32 {
        if e.is_full() { self.replace_fresh(e, pages, out) } else { 0 }
    }
}

impl<const AT: u8> Nested for Lru<AT> {
    #[inline]
    fn len(e: &Entries) -> u32 {
        e.len(ListId(AT))
    }

    #[inline]
    fn evict(&mut self, e: &mut Entries, out: &mut Actions) {
        e.evict(ListId(AT), out);
    }

    #[inline]
    fn insert(&mut self, e: &mut Entries, page: Newcomer, _: &mut Actions) -> NodeId {
        e.insert(ListId(AT), page.key)
    }

    #[inline]
    fn replace(&mut self, e: &mut Entries, page: Newcomer, out: &mut Actions) -> NodeId {
        e.replace(ListId(AT), ListId(AT), page.key, out)
    }

    #[inline]
    fn replace_fresh(&mut self, e: &mut Entries, pages: Pages, out: &mut Actions) -> u32 {
        e.replace_oldest(ListId(AT), ListId(AT), e.fresh(pages), out)
    }

    #[inline]
    fn join(&mut self, e: &mut Entries, id: NodeId) {
        e.move_to_newest(ListId(AT), id);
    }
}
