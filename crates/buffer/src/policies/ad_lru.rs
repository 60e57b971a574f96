//! Adaptive double LRU: a cold and a hot list, clean entries first in both.

use super::oldest_clean::OldestClean;
use super::second_chance::{cool, oldest_unspared, warm};
use crate::{
    Access, Actions, Area, Build, Entries, Limits, ListId, NodeId, Parameter, PolicyInfo, Ratio,
    Replacement, Setup, Value, Violation,
};

const COLD: ListId = ListId(0);
const HOT: ListId = ListId(1);

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "ad-lru",
    about: "Cold and hot list; clean entries first in the one the victim comes from.",
    source: "Jin, Ou, Haerder, Li 2012, AD-LRU",
    parameters: &[Parameter {
        name: "cold",
        default: Value::Ratio(Ratio::new(1, 10)),
        limits: Limits::Ratio,
        about: "Share of the entries the cold list keeps.",
    }],
    build: Build::of::<AdLru>(),
};

/// Two LRU lists: a miss enters the cold one, a hit lifts an entry into the hot one. The cold list
/// gives victims while it is longer than its share. If all of a list is dirty, an entry leaves at
/// its second turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdLru {
    cold_least: u32,
    clean: [OldestClean; 2],
}

impl AdLru {
    #[inline]
    fn leave(&mut self, e: &mut Entries, id: NodeId) {
        if let Some(list) = e.slab().list_of(id) {
            let newest = e.slab().newest(list);
            self.clean[usize::from(list.0)].leaves(e, id, newest);
        }
    }

    /// Without a clean entry all of the list is passed, so the spared ones may change places.
    #[inline]
    fn victim(&mut self, e: &mut Entries) -> Option<NodeId> {
        let list = if e.len(COLD) > self.cold_least || e.is_empty(HOT) { COLD } else { HOT };
        let newest = e.slab().newest(list);
        if let Some(clean) = self.clean[usize::from(list.0)].find(e, newest) {
            self.leave(e, clean);
            return Some(clean);
        }
        oldest_unspared(e, list, cool)
    }
}

impl Replacement for AdLru {
    const AREAS: &'static [Area] = &[Area::new("cold"), Area::new("hot")];

    fn new(setup: &Setup) -> Self {
        let cold_least = setup.parameters.value("cold").ratio().of(setup.shape.slots());
        Self { cold_least, clean: [OldestClean::default(); 2] }
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        self.leave(e, id);
        warm(e, id);
        e.move_to_newest(HOT, id);
        self.clean[usize::from(HOT.0)].joined(id);
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
        if e.is_full()
            && let Some(victim) = self.victim(e)
        {
            e.evict_at(victim, out);
        }
        let id = e.insert(COLD, key);
        self.clean[usize::from(COLD.0)].joined(id);
        Some(id)
    }

    fn forget(&mut self, e: &mut Entries, id: NodeId) {
        self.leave(e, id);
    }

    fn cleaned(&mut self, e: &mut Entries, id: NodeId) {
        if let Some(list) = e.slab().list_of(id) {
            let newest = e.slab().newest(list);
            self.clean[usize::from(list.0)].cleaned(e, id, newest);
        }
    }

    fn check(&self, e: &Entries) -> Result<(), Violation> {
        for list in [COLD, HOT] {
            self.clean[usize::from(list.0)].check(e, list, e.slab().newest(list))?;
        }
        Ok(())
    }

    onefold_units::keep_fields!({ clean } but { cold_least });
}
