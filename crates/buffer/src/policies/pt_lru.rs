//! Probabilistic triplicate LRU: cold clean, cold dirty and hot entries.

use onefold_units::Rng;

use crate::{
    Access, Actions, Area, Entries, Limits, ListId, NodeId, Parameter, PolicyInfo, Ratio,
    Replacement, Setup, Value,
};

const COLD_CLEAN: ListId = ListId(0);
const COLD_DIRTY: ListId = ListId(1);
const HOT: ListId = ListId(2);

/// State of the generator in a new buffer (buffer specification, section 5).
const SEED: u64 = 3;

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "pt-lru",
    about: "Cold clean entries leave first, then cold dirty ones with a probability.",
    source: "Cui, Wu, Wang, Duan 2014, PT-LRU",
    parameters: &[Parameter {
        name: "p",
        default: Value::Ratio(Ratio::new(999, 1000)),
        limits: Limits::Ratio,
        about: "Probability that a cold dirty entry leaves rather than a hot one.",
    }],
};

/// Three LRU lists without limits. A miss enters a cold list by its operation, a hit lifts an entry
/// into the hot list, where it stays; entries that were written back stay in their list.
#[derive(Clone, Debug)]
pub(crate) struct PtLru {
    p: f64,
    rng: Rng,
}

impl PtLru {
    /// The list the victim comes from. Draws only if there is a choice.
    #[inline]
    fn victims(&mut self, e: &Entries) -> ListId {
        if !e.is_empty(COLD_CLEAN) {
            return COLD_CLEAN;
        }
        let cold_dirty = !e.is_empty(COLD_DIRTY) && (e.is_empty(HOT) || self.rng.unit() < self.p);
        if cold_dirty { COLD_DIRTY } else { HOT }
    }
}

impl Replacement for PtLru {
    const AREAS: &'static [Area] =
        &[Area::new("cold-clean"), Area::new("cold-dirty"), Area::new("hot")];

    fn new(setup: &Setup) -> Self {
        Self { p: setup.spec.value("p").ratio().real(), rng: Rng::new(SEED) }
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        e.move_to_newest(HOT, id);
    }

    #[inline]
    fn admit(
        &mut self,
        e: &mut Entries,
        key: u32,
        _: Option<NodeId>,
        access: Access,
        out: &mut Actions,
    ) -> Option<NodeId> {
        let list = match access {
            Access::Read => COLD_CLEAN,
            Access::Write => COLD_DIRTY,
        };
        Some(if e.is_full() {
            let victims = self.victims(e);
            e.replace(victims, list, key, out)
        } else {
            e.insert(list, key)
        })
    }
}
