//! Keeps the entries with the shortest distance between two accesses.
//! Source: Jiang, Zhang 2002, section 3.3.
//!
//! Terms of the paper. *LIR* entries have a short distance between their last two accesses, all
//! others are *HIR*; victims are HIR. The *stack S* holds what was accessed since the LIR entry
//! that was not accessed for the longest time, LIR or HIR, buffered or not. The *queue Q* holds the
//! HIR entries that are buffered.
//!
//! No stack is kept: with the time of the last access of everything, S is what was accessed after
//! the oldest LIR entry. That time never falls, because entries become LIR by an access; so what
//! left S, the pruning of the paper, never comes back. Ghosts that left S are older than the others;
//! they go when they are the oldest of too many, or their key returns.

use onefold_units::convert::index;

use crate::shape::SCAN_MAX;
use crate::{
    Access, Actions, Area, Build, Entries, Limits, ListId, NodeId, Parameter, PolicyInfo, Ratio,
    Replacement, Setup, Value,
};

const LIR: ListId = ListId(0);
/// The queue Q.
const HIR: ListId = ListId(1);
/// HIR entries that left the buffer while they were in S.
const GHOSTS: ListId = ListId(2);

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "lirs",
    about: "Keeps the entries with the shortest distance between two accesses.",
    source: "Jiang, Zhang 2002",
    parameters: &[Parameter {
        name: "hir",
        default: Value::Ratio(Ratio::new(1, 100)),
        limits: Limits::Ratio,
        about: "Share of the entries for those not yet seen twice.",
    }],
    build: Build::of::<Lirs>(),
};

/// LIR entries are in the order of their last access; so are ghosts, but for those that a flash page
/// of several entries took along.
#[derive(Clone)]
pub(crate) struct Lirs {
    /// Most LIR entries.
    limit: u32,
    /// Most ghosts.
    ghosts: u32,
    /// Accesses so far.
    now: u64,
    /// When each node was accessed last.
    last: Box<[u64]>,
    /// What the next eviction may take: key and last access.
    victims: Vec<(u32, u64)>,
    /// Entries it may take at most.
    reach: usize,
}

impl Lirs {
    /// Whether an HIR entry or a ghost is in S.
    #[inline]
    fn in_stack(&self, e: &Entries, id: NodeId) -> bool {
        let oldest = e.slab().oldest(LIR);
        oldest.is_some_and(|oldest| self.last[index(id.raw())] > self.last[index(oldest.raw())])
    }

    #[inline]
    fn accessed(&mut self, id: NodeId) {
        self.now += 1;
        self.last[index(id.raw())] = self.now;
    }

    /// If there are too many LIR entries, the oldest becomes HIR. It is not in S any more.
    #[inline]
    fn demote(&self, e: &mut Entries) {
        if e.len(LIR) > self.limit
            && let Some(oldest) = e.slab().oldest(LIR)
        {
            e.move_to_newest(HIR, oldest);
        }
    }

    /// Evicts from Q, and remembers what was in S.
    fn evict(&mut self, e: &mut Entries, out: &mut Actions) {
        let mut victims = std::mem::take(&mut self.victims);
        victims.clear();
        let queue = std::iter::successors(e.slab().oldest(HIR), |id| e.slab().newer(*id));
        let in_stack = queue.take(self.reach).filter(|id| self.in_stack(e, *id));
        victims.extend(in_stack.map(|id| (e.slab().node(id).key, self.last[index(id.raw())])));
        e.evict(HIR, out);
        for (key, last) in &victims {
            if e.evicted().contains(key) {
                self.remember(e, *key, *last);
            }
        }
        self.victims = victims;
    }

    #[inline]
    fn remember(&mut self, e: &mut Entries, key: u32, last: u64) {
        e.forget_oldest(GHOSTS, self.ghosts - 1);
        if let Some(ghost) = e.insert_ghost(GHOSTS, key) {
            self.last[index(ghost.raw())] = last;
        }
    }
}

impl Replacement for Lirs {
    const AREAS: &'static [Area] = &[Area::new("lir"), Area::new("hir"), Area::ghosts()];

    fn new(setup: &Setup) -> Self {
        let (slots, ghosts) = (setup.shape.slots(), Self::ghosts(setup));
        let alone = setup.shape.per_program() == 1;
        Self {
            limit: slots - setup.parameters.value("hir").ratio().of(slots).max(1),
            ghosts,
            now: 0,
            last: vec![0; index(slots + ghosts)].into_boxed_slice(),
            victims: Vec::new(),
            reach: if alone { 1 } else { index(SCAN_MAX) },
        }
    }

    fn ghosts(setup: &Setup) -> u32 {
        setup.shape.slots()
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        let near = e.slab().list_of(id) == Some(LIR) || self.in_stack(e, id);
        self.accessed(id);
        e.move_to_newest(if near { LIR } else { HIR }, id);
        self.demote(e);
    }

    #[inline]
    fn admit(
        &mut self,
        e: &mut Entries,
        key: u32,
        ghost: Option<NodeId>,
        _: Access,
        out: &mut Actions,
    ) -> Option<NodeId> {
        if e.is_full() {
            self.evict(e, out);
        }
        // Only now, as published: the victim may have pushed the oldest ghost out, this one.
        let ghost = ghost.and_then(|_| e.find_ghost(key));
        let in_stack = ghost.is_some_and(|ghost| self.in_stack(e, ghost));
        if let Some(ghost) = ghost {
            e.remove_ghost(ghost);
        }
        let near = in_stack || e.len(LIR) < self.limit;
        let id = e.insert(if near { LIR } else { HIR }, key);
        self.accessed(id);
        self.demote(e);
        Some(id)
    }

    onefold_units::keep_fields!({ now, last } but { limit, ghosts, victims, reach });
}
