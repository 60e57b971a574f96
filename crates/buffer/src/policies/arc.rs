//! Two LRU lists for recency and frequency that balance themselves by their ghosts.
//! Source: Megiddo, Modha 2003, figure 4.

use crate::{
    Access, Actions, Area, Build, Entries, ListId, Memory, NodeId, Pages, PolicyInfo, Replacement,
    Setup,
};

/// T1 and T2 of the paper: entries seen once, and more often.
const ONCE: ListId = ListId(0);
const OFTEN: ListId = ListId(1);
/// B1 and B2 of the paper: what left them.
const ONCE_OUT: ListId = ListId(2);
const OFTEN_OUT: ListId = ListId(3);

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "arc",
    about: "Two LRU lists for recency and frequency that balance themselves by their ghosts.",
    source: "Megiddo, Modha 2003",
    parameters: &[],
    build: Build::of::<Arc>(),
};

/// Invariants of the directory, C entries in the buffer: `ONCE` and its ghosts are C at most, all
/// four lists 2 C.
#[derive(Clone)]
pub(crate) struct Arc {
    entries: u32,
    /// Entries that `ONCE` should have: the real-valued p of the paper.
    target: f64,
}

impl Arc {
    /// Whether the victim was seen once.
    #[inline]
    fn takes_from_once(&self, e: &Entries, often_ghost: bool) -> bool {
        let once = f64::from(e.len(ONCE));
        let over = once > self.target || (often_ghost && once >= self.target);
        !e.is_empty(ONCE) && (over || e.is_empty(OFTEN))
    }

    /// REPLACE of the paper, and the insertion after it. A TRIM leaves holes; while there are some
    /// nothing has to go. `forget` is the list of ghosts that has to give up its oldest one.
    #[inline]
    fn replace(
        &self,
        e: &mut Entries,
        often_ghost: bool,
        mut forget: Option<ListId>,
        (to, key): (ListId, u32),
        out: &mut Actions,
    ) -> NodeId {
        let (from, list) = if self.takes_from_once(e, often_ghost) {
            (ONCE, ONCE_OUT)
        } else {
            (OFTEN, OFTEN_OUT)
        };
        let victim = if e.is_full() { e.slab().oldest(from) } else { None };
        let mut memory = Memory { list, most: u32::MAX };
        if forget == Some(list) && victim.is_some() && e.shape().per_program() == 1 {
            // The oldest ghost becomes the victim's.
            memory.most = e.len(list);
            forget = None;
        }
        if let Some(list) = forget {
            e.forget_oldest(list, e.len(list) - 1);
        }
        match victim {
            Some(victim) => e.replace_and_remember(victim, memory, to, key, out),
            None => e.insert(to, key),
        }
    }

    /// Case IV of the paper: the key is in no list.
    #[inline]
    fn admit_new(&self, e: &mut Entries, key: u32, out: &mut Actions) -> NodeId {
        if e.len(ONCE) == self.entries {
            // Without a ghost: the directory has no room for it.
            return e.replace(ONCE, ONCE, key, out);
        }
        let first = e.len(ONCE) + e.len(ONCE_OUT);
        let forget = if first == self.entries {
            Some(ONCE_OUT)
        } else if first + e.len(OFTEN) + e.len(OFTEN_OUT) == 2 * self.entries {
            Some(OFTEN_OUT)
        } else {
            None
        };
        self.replace(e, false, forget, (ONCE, key), out)
    }

    /// Cases II and III of the paper: a ghost says which list is too small.
    fn adapt(&mut self, e: &Entries, often_ghost: bool) {
        let (once, often) = (f64::from(e.len(ONCE_OUT)), f64::from(e.len(OFTEN_OUT)));
        self.target = if often_ghost {
            (self.target - f64::max(1.0, once / often)).max(0.0)
        } else {
            (self.target + f64::max(1.0, often / once)).min(f64::from(self.entries))
        };
    }
}

impl Replacement for Arc {
    const AREAS: &'static [Area] =
        &[Area::new("once"), Area::new("often"), Area::ghosts(), Area::ghosts()];

    fn new(setup: &Setup) -> Self {
        Self { entries: setup.shape.slots(), target: 0.0 }
    }

    /// The directory less the entries that stay while a full flash page of them is evicted.
    fn ghosts(setup: &Setup) -> u32 {
        setup.shape.slots() + setup.shape.per_program() - 1
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        e.move_to_newest(OFTEN, id);
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
        let Some(ghost) = ghost else {
            return Some(self.admit_new(e, key, out));
        };
        let often_ghost = e.slab().list_of(ghost) == Some(OFTEN_OUT);
        self.adapt(e, often_ghost);
        e.remove_ghost(ghost);
        Some(self.replace(e, often_ghost, None, (OFTEN, key), out))
    }

    /// The steady states of case IV: the directory for what was seen once is full, and a victim from
    /// it leaves it full.
    #[inline]
    fn admit_fresh(&mut self, e: &mut Entries, pages: Pages, out: &mut Actions) -> u32 {
        let (once, ghosts) = (e.len(ONCE), e.len(ONCE_OUT));
        if once == self.entries {
            return e.replace_oldest(ONCE, ONCE, e.fresh(pages), out);
        }
        if !e.is_full() || once + ghosts != self.entries || !self.takes_from_once(e, false) {
            return 0;
        }
        let memory = Memory { list: ONCE_OUT, most: ghosts };
        e.replace_oldest_and_remember(ONCE, memory, ONCE, e.fresh(pages), out)
    }

    onefold_units::keep_fields!({ target } but { entries });
}
