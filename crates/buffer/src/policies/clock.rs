//! CLOCK: FIFO whose accessed entries get one more round.

use super::second_chance::oldest_unspared;
use crate::{
    Access, Actions, Area, Build, Entries, ListId, NodeId, PolicyInfo, Replacement, Setup,
};

const ALL: ListId = ListId(0);

const ACCESSED: u16 = 1;

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "clock",
    about: "FIFO whose accessed entries get one more round.",
    source: "Corbato 1968, A paging experiment with the Multics system",
    parameters: &[],
    build: Build::of::<Clock>(),
};

/// FIFO whose accessed entries get one more round. The hand is the oldest end of the list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock;

impl Replacement for Clock {
    const AREAS: &'static [Area] = &[Area::new("all")];

    fn new(_: &Setup) -> Self {
        Self
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        *e.aux_mut(id) = ACCESSED;
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
        let spared = |e: &mut Entries, id| std::mem::take(e.aux_mut(id)) == ACCESSED;
        if e.is_full()
            && let Some(victim) = oldest_unspared(e, ALL, spared)
        {
            e.evict_at(victim, out);
        }
        Some(e.insert(ALL, key))
    }
}
