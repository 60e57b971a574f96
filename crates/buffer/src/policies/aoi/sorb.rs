//! How the pages inside SORB replace one another (Jeong 2021, sec. IV-B: "LRU", others allowed).

use std::fmt::Debug;

use crate::{Actions, Area, Entries, ListId, NodeId, Setup};

/// Append-only writes.
pub(super) const BAW: ListId = ListId(0);
/// Append-only reads.
pub(super) const BAR: ListId = ListId(1);
/// The first list of SORB; the others follow, then ghosts.
pub(super) const SORB: ListId = ListId(2);

pub(super) const BAW_AREA: Area = Area::append_only("baw");
pub(super) const BAR_AREA: Area = Area::new("bar");

/// Replacement among the pages of SORB.
pub(crate) trait Sorb: Clone + Debug {
    /// The lists of the whole buffer: BAW, BAR, those of SORB from [`SORB`] on, ghosts.
    const AREAS: &'static [Area];

    fn new(setup: &Setup) -> Self;

    /// Keys without bytes that are remembered at most.
    fn ghosts(_: &Setup) -> u32 {
        0
    }

    /// Pages in SORB.
    fn len(e: &Entries) -> u32;

    /// A page of SORB is accessed.
    fn hit(&mut self, e: &mut Entries, id: NodeId);

    /// A page of another area turned out to be re-accessed.
    fn join(&mut self, e: &mut Entries, id: NodeId);

    /// Inserts a page, for which there is room. `known` if it was a ghost.
    fn insert(&mut self, e: &mut Entries, key: u32, known: bool) -> NodeId;

    /// Makes room for at least one page. SORB is not empty.
    fn evict(&mut self, e: &mut Entries, out: &mut Actions);

    /// A page of SORB, or a ghost, is about to leave because of a TRIM.
    fn forget(&mut self, _: &mut Entries, _: NodeId) {}
}

/// The least recently used page leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LruSorb;

impl Sorb for LruSorb {
    const AREAS: &'static [Area] = &[BAW_AREA, BAR_AREA, Area::new("sorb")];

    fn new(_: &Setup) -> Self {
        Self
    }

    #[inline]
    fn len(e: &Entries) -> u32 {
        e.len(SORB)
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId) {
        e.move_to_newest(SORB, id);
    }

    #[inline]
    fn join(&mut self, e: &mut Entries, id: NodeId) {
        e.move_to_newest(SORB, id);
    }

    #[inline]
    fn insert(&mut self, e: &mut Entries, key: u32, _: bool) -> NodeId {
        e.insert(SORB, key)
    }

    #[inline]
    fn evict(&mut self, e: &mut Entries, out: &mut Actions) {
        e.evict(SORB, out);
    }
}
