//! Small FIFO, main FIFO with counts, ghost FIFO. Source: Yang et al. 2023, algorithm 1.

use crate::{
    Access, Actions, Area, Entries, Limits, ListId, NodeId, Parameter, PolicyInfo, Ratio,
    Replacement, Setup, Value,
};

const SMALL: ListId = ListId(0);
const MAIN: ListId = ListId(1);
const GHOSTS: ListId = ListId(2);

/// Largest count of an entry.
const COUNT_MOST: u16 = 3;
/// Accesses after its admission that lift an entry from the small into the main queue.
const COUNT_TO_MAIN: u16 = 2;

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "s3-fifo",
    about: "Small FIFO, main FIFO with counts, ghost FIFO.",
    source: "Yang et al. 2023",
    parameters: &[Parameter {
        name: "small",
        default: Value::Ratio(Ratio::new(1, 10)),
        limits: Limits::Ratio,
        about: "Share of the entries for the small queue.",
    }],
};

/// What is new passes a small FIFO, where what is accessed only once leaves soon. `aux` of an entry
/// counts its accesses.
pub(crate) struct S3Fifo {
    /// Entries of the small queue from which on victims come from it.
    limit: u32,
    /// Most ghosts.
    ghosts: u32,
}

fn limit(setup: &Setup) -> u32 {
    setup.spec.value("small").ratio().of(setup.shape.slots())
}

impl S3Fifo {
    #[inline]
    fn evict(&self, e: &mut Entries, out: &mut Actions) {
        let from_small = e.len(SMALL) >= self.limit || e.is_empty(MAIN);
        if !(from_small && self.evict_small(e, out)) {
            Self::evict_main(e, out);
        }
    }

    /// `false` if all its entries went to the main queue.
    #[inline]
    fn evict_small(&self, e: &mut Entries, out: &mut Actions) -> bool {
        while let Some(oldest) = e.slab().oldest(SMALL) {
            let count = e.aux_mut(oldest);
            if *count < COUNT_TO_MAIN {
                e.evict_at(oldest, out);
                e.remember_evicted(GHOSTS, self.ghosts);
                return true;
            }
            *count = 0;
            e.move_to_newest(MAIN, oldest);
        }
        false
    }

    #[inline]
    fn evict_main(e: &mut Entries, out: &mut Actions) {
        while let Some(oldest) = e.slab().oldest(MAIN) {
            let count = e.aux_mut(oldest);
            if *count == 0 {
                e.evict_at(oldest, out);
                return;
            }
            *count -= 1;
            e.move_to_newest(MAIN, oldest);
        }
    }
}

impl Replacement for S3Fifo {
    const AREAS: &'static [Area] = &[Area::new("small"), Area::new("main"), Area::ghosts()];

    fn new(setup: &Setup) -> Self {
        Self { limit: limit(setup), ghosts: Self::ghosts(setup) }
    }

    fn ghosts(setup: &Setup) -> u32 {
        setup.shape.slots() - limit(setup)
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        let count = e.aux_mut(id);
        *count = (*count + 1).min(COUNT_MOST);
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
        if let Some(ghost) = ghost {
            e.remove_ghost(ghost);
        }
        if e.is_full() {
            self.evict(e, out);
        }
        Some(e.insert(if ghost.is_some() { MAIN } else { SMALL }, key))
    }
}
