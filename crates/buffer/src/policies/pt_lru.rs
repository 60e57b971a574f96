//! Probabilistic triplicate LRU: cold clean, cold dirty and hot entries.

use onefold_units::Rng;

use crate::{
    Access, Actions, Area, Build, Entries, Limits, ListId, NodeId, Pages, Parameter, PolicyInfo,
    Ratio, Replacement, Setup, Value,
};

const COLD_CLEAN: ListId = ListId(0);
const COLD_DIRTY: ListId = ListId(1);
const HOT: ListId = ListId(2);

/// State of the generator in a new buffer (buffer specification, section 5).
const SEED: u64 = 3;

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "pt-lru",
    about: "Cold clean entries leave first, then cold dirty ones with a probability.",
    source: "Cui, Wu, Wang, Duan 2014, PT-LRU",
    parameters: &[Parameter {
        name: "p",
        default: Value::Ratio(Ratio::new(999, 1000)),
        limits: Limits::Ratio,
        about: "Probability that a cold dirty entry leaves rather than a hot one.",
    }],
    build: Build::of::<PtLru>(),
};

/// Three LRU lists without limits. A miss enters a cold list by its operation, a hit lifts an entry
/// into the hot list, where it stays; entries that were written back stay in their list.
#[derive(Clone, Debug)]
pub(crate) struct PtLru {
    p: f64,
    rng: Rng,
}

/// The list that a miss enters.
#[inline]
const fn cold(access: Access) -> ListId {
    match access {
        Access::Read => COLD_CLEAN,
        Access::Write => COLD_DIRTY,
    }
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

    /// How many of the next `most` victims that are cold and dirty leave before a hot one does. Draws
    /// for them, but not for the hot one.
    #[inline]
    fn draw_cold(&mut self, e: &Entries, most: u32) -> u32 {
        if e.is_empty(HOT) {
            return most;
        }
        let mut drawn = 0;
        while drawn < most {
            let mut ahead = self.rng.clone();
            if ahead.unit() >= self.p {
                break;
            }
            self.rng = ahead;
            drawn += 1;
        }
        drawn
    }
}

impl Replacement for PtLru {
    const AREAS: &'static [Area] =
        &[Area::new("cold-clean"), Area::new("cold-dirty"), Area::new("hot")];

    fn new(setup: &Setup) -> Self {
        Self { p: setup.parameters.value("p").ratio().real(), rng: Rng::new(SEED) }
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
        let list = cold(access);
        Some(if e.is_full() {
            let victims = self.victims(e);
            e.replace(victims, list, key, out)
        } else {
            e.insert(list, key)
        })
    }

    #[inline]
    fn admit_fresh(&mut self, e: &mut Entries, pages: Pages, out: &mut Actions) -> u32 {
        let to = cold(pages.access);
        if !e.is_full() {
            return 0;
        }
        if !e.is_empty(COLD_CLEAN) {
            return e.replace_oldest(COLD_CLEAN, to, e.fresh(pages), out);
        }
        if to == COLD_CLEAN {
            // Each page is the next one's victim.
            return 0;
        }
        let pages = e.fresh(pages).up_to(e.len(COLD_DIRTY));
        let drawn = self.draw_cold(e, pages.len);
        e.replace_oldest(COLD_DIRTY, to, pages.up_to(drawn), out)
    }
}
