//! A probation FIFO, a main LRU for what comes back, a memory of what left.
//! Source: Johnson, Shasha 1994, section 3.2 (the full version of 2Q).

use crate::{
    Access, Actions, Area, Build, Entries, Limits, ListId, Memory, NodeId, Pages, Parameter,
    PolicyInfo, Ratio, Replacement, Setup, Value,
};

/// A1in of the paper.
const IN: ListId = ListId(0);
/// Am of the paper.
const MAIN: ListId = ListId(1);
/// A1out of the paper.
const OUT: ListId = ListId(2);

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "2q",
    about: "A probation FIFO, a main LRU for what comes back, a memory of what left.",
    source: "Johnson, Shasha 1994",
    parameters: &[
        Parameter {
            name: "in",
            default: Value::Ratio(Ratio::new(1, 4)),
            limits: Limits::Ratio,
            about: "Share of the entries for the probation queue.",
        },
        Parameter {
            name: "out",
            default: Value::Ratio(Ratio::new(1, 2)),
            limits: Limits::Ratio,
            about: "Keys remembered after they left it, as a share of the entries.",
        },
    ],
    build: Build::of::<TwoQ>(),
};

/// What is new waits in a FIFO; only what comes back after it left enters the LRU list.
#[derive(Clone)]
pub(crate) struct TwoQ {
    /// Entries the FIFO keeps when room is needed: Kin of the paper.
    keep: u32,
    /// Kout of the paper.
    memory: Memory,
}

impl TwoQ {
    #[inline]
    fn replace(&self, e: &mut Entries, to: ListId, key: u32, out: &mut Actions) -> NodeId {
        if (e.len(IN) > self.keep || e.is_empty(MAIN))
            && let Some(oldest) = e.slab().oldest(IN)
        {
            return e.replace_and_remember(oldest, self.memory, to, key, out);
        }
        e.replace(MAIN, to, key, out)
    }
}

impl Replacement for TwoQ {
    const AREAS: &'static [Area] = &[Area::new("in"), Area::new("main"), Area::ghosts()];

    fn new(setup: &Setup) -> Self {
        let keep = setup.parameters.value("in").ratio().of(setup.shape.slots());
        Self { keep, memory: Memory { list: OUT, most: Self::ghosts(setup) } }
    }

    fn ghosts(setup: &Setup) -> u32 {
        setup.parameters.value("out").ratio().of(setup.shape.slots())
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        if e.slab().list_of(id) == Some(MAIN) {
            e.move_to_newest(MAIN, id);
        }
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
        let to = if ghost.is_some() { MAIN } else { IN };
        Some(if e.is_full() { self.replace(e, to, key, out) } else { e.insert(to, key) })
    }

    #[inline]
    fn admit_fresh(&mut self, e: &mut Entries, pages: Pages, out: &mut Actions) -> u32 {
        if !e.is_full() || e.len(IN) <= self.keep {
            return 0;
        }
        e.replace_oldest_and_remember(IN, self.memory, IN, e.fresh(pages), out)
    }

    onefold_units::keep_fields!({} but { keep, memory });
}
