//! The buffered entries: lists, index, dirty parts, programs and their statistics.
//!
//! Terms. An *entry* is a mapping unit in the buffer; its node number is its *slot*. A *ghost* is a
//! remembered key without a slot. An entry is *partial* if some of its parts are not valid. The
//! *oldest* end of a list is where victims come from.
//!
//! Invariants, after every request:
//! 1. Every node in use is in exactly one list, whose links and length counter agree.
//! 2. Every node in a list is found under its key, and no other node is in the index.
//! 3. Slots are in a list or free, never both: entries <= C.
//! 4. dirty parts are valid parts; an entry has a valid part, a ghost has none.
//! 5. The dirty counter of a list is the number of its entries with a dirty part.
//! 6. Per tenant, pages written = overwritten + programmed + discarded + dirty.
//! 7. A program has 1 to k entries of one stream, all complete, and dirty before it unless they
//!    fill up a block (`padded`). Clean entries are complete.
//! 8. A dirty entry leaves only by a program or a TRIM.

mod check;
mod fresh;
mod ghosts;
mod padded;
mod parts;
mod program;
mod replace;
mod run;
mod trim;

use onefold_units::Lpn;

pub use fresh::Pages;
pub use replace::Memory;
pub(crate) use run::Run;

use crate::index::Index;
use crate::node::NewNode;
use crate::{Area, ListId, NodeId, Programmed, Shape, Slab, Slot, Stats, Stream, TenantStats};

/// Counts of the request at hand that are not in the statistics yet.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    /// Tenant whose entries were programmed.
    owner: u8,
    /// Programs of one entry.
    programs: u64,
}

onefold_units::keep!(Pending { owner, programs });

/// The entries of one buffer, in the lists of its policy.
#[derive(Clone, Debug)]
pub struct Entries {
    shape: Shape,
    slab: Slab,
    index: Index,
    /// Stream of each list. Its counters are in the statistics.
    streams: Vec<Stream>,
    stats: Stats,
    pending: Pending,
    /// Entries of the program being made.
    batch: Vec<NodeId>,
    /// Pages of the block being evicted.
    block: Vec<Programmed>,
    /// Entries of the range being trimmed, or those to flush.
    found: Vec<NodeId>,
    /// Entries that were programmed in place.
    cleaned: Vec<NodeId>,
    /// Keys that the last eviction removed; kept if there are ghosts to remember them.
    evicted: Vec<u32>,
    remembers: bool,
}

onefold_units::keep!(Entries { slab, index, stats, pending, evicted } but { shape, streams, batch, block, found, cleaned, remembers });

impl Entries {
    /// No entries. `ghosts` keys can be remembered without a slot.
    #[must_use]
    pub fn new(shape: Shape, ghosts: u32, areas: &[Area]) -> Self {
        assert!(areas.len() < usize::from(u8::MAX), "lists are numbered by a byte, 255 is none");
        let sentinels = (0..u8::MAX).nth(areas.len()).unwrap_or_default();
        Self {
            shape,
            slab: Slab::new(shape.slots(), ghosts, sentinels),
            index: Index::new(shape.slots() + ghosts),
            streams: areas.iter().map(|area| area.stream).collect(),
            stats: Stats::new(areas),
            pending: Pending::default(),
            batch: Vec::new(),
            block: Vec::new(),
            found: Vec::new(),
            cleaned: Vec::new(),
            evicted: Vec::new(),
            remembers: ghosts > 0,
        }
    }

    /// Sizes of the buffer.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The nodes and their order in the lists. Changes of lists go through `Entries`.
    #[must_use]
    pub const fn slab(&self) -> &Slab {
        &self.slab
    }

    /// The policy's own bits of an entry or ghost.
    #[inline]
    pub fn aux_mut(&mut self, id: NodeId) -> &mut u16 {
        &mut self.slab.node_mut(id).aux
    }

    /// What was counted so far.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    #[inline]
    pub(crate) const fn stats_mut(&mut self) -> &mut Stats {
        &mut self.stats
    }

    /// Whether no slot is free.
    #[must_use]
    #[inline]
    pub const fn is_full(&self) -> bool {
        !self.slab.has_free_slot()
    }

    /// Entries (or ghosts) in a list.
    #[must_use]
    #[inline]
    pub fn len(&self, list: ListId) -> u32 {
        self.stats.area(list.0).entries
    }

    /// Whether a list is empty.
    #[must_use]
    #[inline]
    pub fn is_empty(&self, list: ListId) -> bool {
        self.len(list) == 0
    }

    /// The page of an entry or ghost, as [`Self::find`] takes it.
    #[inline]
    #[must_use]
    pub fn key(&self, id: NodeId) -> u32 {
        self.slab.node(id).key
    }

    /// Whether an entry has dirty parts.
    #[must_use]
    #[inline]
    pub fn is_dirty(&self, id: NodeId) -> bool {
        self.slab.node(id).dirty != 0
    }

    /// The entry or ghost of a key.
    #[must_use]
    #[inline]
    pub fn find_any(&self, key: u32) -> Option<NodeId> {
        self.index.find(&self.slab, key)
    }

    /// Loads the bucket of a key and the first node there.
    #[inline]
    pub(crate) fn touch(&self, key: u32) -> u32 {
        self.index.touch(&self.slab, key)
    }

    /// The entry with a slot.
    #[must_use]
    #[inline]
    pub fn find(&self, key: u32) -> Option<NodeId> {
        self.index.find(&self.slab, key).filter(|id| !self.slab.is_ghost(*id))
    }

    /// Inserts a key, of which no entry or ghost exists, at the newest end of a list.
    ///
    /// A slot must be free: policies make room first.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "most misses; the policy knows the list")]
    pub fn insert(&mut self, list: ListId, key: u32) -> NodeId {
        let id = self.slab.attach(NewNode::empty(list.0), key, self.index.head_mut(key));
        self.stats.area_mut(list.0).entries += 1;
        id
    }

    #[inline]
    fn enter(&mut self, list: ListId, id: NodeId) {
        self.index.insert(&mut self.slab, id);
        self.slab.push_newest(list, id);
        self.stats.area_mut(list.0).entries += 1;
    }

    /// Moves an entry or ghost to the newest end of a list, its own or another one.
    #[inline]
    pub fn move_to_newest(&mut self, list: ListId, id: NodeId) {
        let before = self.slab.move_to_newest(list, id);
        if before.list != list.0 {
            let dirty = u32::from(before.dirty != 0);
            let left = self.stats.area_mut(before.list);
            left.entries -= 1;
            left.dirty -= dirty;
            let joined = self.stats.area_mut(list.0);
            joined.entries += 1;
            joined.dirty += dirty;
        }
    }

    /// Moves an entry or ghost to the oldest end of a list, its own or another one.
    #[inline]
    pub fn move_to_oldest(&mut self, list: ListId, id: NodeId) {
        self.leave_list(id);
        self.slab.push_oldest(list, id);
        self.join_list(list, id);
    }

    /// Moves an entry or ghost into the list of `newer`, next to it on its older side.
    #[inline]
    pub fn move_older_than(&mut self, newer: NodeId, id: NodeId) {
        assert!(newer != id, "a node is not its own neighbour");
        self.leave_list(id);
        let list = ListId(self.slab.node(newer).list);
        self.slab.push_older_than(list, newer, id);
        self.join_list(list, id);
    }

    #[inline]
    fn leave_list(&mut self, id: NodeId) {
        let node = self.slab.node(id);
        let area = self.stats.area_mut(node.list);
        area.entries -= 1;
        area.dirty -= u32::from(node.dirty != 0);
        self.slab.unlink(id);
    }

    #[inline]
    fn join_list(&mut self, list: ListId, id: NodeId) {
        let dirty = u32::from(self.is_dirty(id));
        let area = self.stats.area_mut(list.0);
        area.entries += 1;
        area.dirty += dirty;
    }

    /// Removes an entry that is clean, or a ghost.
    #[inline]
    fn remove(&mut self, id: NodeId) {
        self.leave_list(id);
        self.index.remove(&mut self.slab, id);
        self.slab.give_back(id);
    }

    /// Moves the programs counted so far into the statistics. A level may be wrong by what is
    /// pending, below zero even, until the request ends.
    #[inline]
    fn count_pending(&mut self) {
        let programs = std::mem::take(&mut self.pending.programs);
        let owner = self.stats.tenant_mut(self.pending.owner);
        owner.pages_programmed += programs;
        owner.programs += programs;
        owner.dirty = owner.dirty.wrapping_sub(programs);
    }

    /// Ends a request: all its programs are in the statistics. Returns the counters of its tenant.
    #[inline]
    pub(crate) fn end_request(&mut self, tenant: u8) -> &mut TenantStats {
        if self.pending.programs > 0 {
            self.count_pending();
        }
        self.stats.tenant_mut(tenant)
    }

    #[inline]
    fn place(&self, id: NodeId) -> (Lpn, Slot) {
        (Lpn::new(self.slab.node(id).key), Slot::new(id.0))
    }

    /// The entries that were programmed in place since the last call. The list has to be given back.
    pub(crate) fn take_cleaned(&mut self) -> Vec<NodeId> {
        std::mem::take(&mut self.cleaned)
    }

    pub(crate) fn give_back_cleaned(&mut self, mut cleaned: Vec<NodeId>) {
        cleaned.clear();
        self.cleaned = cleaned;
    }

    /// The keys that the last eviction removed, oldest first, of a policy that has ghosts. Not for
    /// evictions that are part of an insertion.
    #[must_use]
    pub fn evicted(&self) -> &[u32] {
        &self.evicted
    }
}
