//! First in, first out.

use crate::{
    Access, Actions, Area, Build, Entries, ListId, NodeId, Pages, PolicyInfo, Replacement, Setup,
};

const ALL: ListId = ListId(0);

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "fifo",
    about: "Entries leave in the order in which they came; hits do not move them.",
    source: "folklore",
    parameters: &[],
    build: Build::of::<Fifo>(),
};

/// Entries leave in the order in which they came; hits do not move them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fifo;

impl Replacement for Fifo {
    const AREAS: &'static [Area] = &[Area::new("all")];

    fn new(_: &Setup) -> Self {
        Self
    }

    #[inline]
    fn hit(&mut self, _: &mut Entries, _: NodeId, _: Access, _: &mut Actions) {}

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

    #[inline]
    fn admit_fresh(&mut self, e: &mut Entries, pages: Pages, out: &mut Actions) -> u32 {
        if e.is_full() { e.replace_oldest(ALL, ALL, e.fresh(pages), out) } else { 0 }
    }
}
