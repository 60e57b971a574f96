//! Probabilistic triplicate LRU: cold clean, cold dirty and hot entries.

use onefold_units::Rng;

use super::nested::{Nested, Newcomer};
use crate::{
    Access, Actions, Area, Build, Entries, Limits, ListId, NodeId, Pages, Parameter, PolicyInfo,
    Ratio, Replacement, Setup, Value,
};

/// Probability where nobody says otherwise.
const P: Ratio = Ratio::new(999, 1000);

/// State of the generator in a new buffer (buffer specification, section 5).
const SEED: u64 = 3;

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "pt-lru",
    about: "Cold clean entries leave first, then cold dirty ones with a probability.",
    source: "Cui, Wu, Wang, Duan 2014, PT-LRU",
    parameters: &[Parameter {
        name: "p",
        default: Value::Ratio(P),
        limits: Limits::Ratio,
        about: "Probability that a cold dirty entry leaves rather than a hot one.",
    }],
    build: Build::of::<PtLru>(),
};

/// Three LRU lists without limits. A miss enters a cold list by its operation, a hit lifts an entry
/// into the hot list, where it stays; entries that were written back stay in their list. The lists are
/// number `AT` and the next two.
#[derive(Clone, Debug)]
pub(crate) struct PtLru<const AT: u8 = 0> {
    p: f64,
    rng: Rng,
}

impl<const AT: u8> PtLru<AT> {
    const COLD_CLEAN: ListId = ListId(AT);
    const COLD_DIRTY: ListId = ListId(AT + 1);
    const HOT: ListId = ListId(AT + 2);

    /// The list that a miss enters.
    #[inline]
    const fn cold(access: Access) -> ListId {
        match access {
            Access::Read => Self::COLD_CLEAN,
            Access::Write => Self::COLD_DIRTY,
        }
    }

    /// The list the victim comes from. Draws only if there is a choice.
    #[inline]
    fn victims(&mut self, e: &Entries) -> ListId {
        if !e.is_empty(Self::COLD_CLEAN) {
            return Self::COLD_CLEAN;
        }
        let cold_dirty =
            !e.is_empty(Self::COLD_DIRTY) && (e.is_empty(Self::HOT) || self.rng.unit() < self.p);
        if cold_dirty { Self::COLD_DIRTY } else { Self::HOT }
    }

    /// How many of the next `most` victims that are cold and dirty leave before a hot one does. Draws
    /// for them, but not for the hot one.
    #[inline]
    fn draw_cold(&mut self, e: &Entries, most: u32) -> u32 {
        if e.is_empty(Self::HOT) {
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

impl<const AT: u8> Nested for PtLru<AT> {
    #[inline]
    fn len(e: &Entries) -> u32 {
        e.len(Self::COLD_CLEAN) + e.len(Self::COLD_DIRTY) + e.len(Self::HOT)
    }

    #[inline]
    fn evict(&mut self, e: &mut Entries, out: &mut Actions) {
        let victims = self.victims(e);
        e.evict(victims, out);
    }

    #[inline]
    fn insert(&mut self, e: &mut Entries, page: Newcomer, _: &mut Actions) -> NodeId {
        e.insert(Self::cold(page.access), page.key)
    }

    #[inline]
    fn replace(&mut self, e: &mut Entries, page: Newcomer, out: &mut Actions) -> NodeId {
        let victims = self.victims(e);
        e.replace(victims, Self::cold(page.access), page.key, out)
    }

    #[inline]
    fn replace_fresh(&mut self, e: &mut Entries, pages: Pages, out: &mut Actions) -> u32 {
        let (to, pages) = (Self::cold(pages.access), e.fresh(pages));
        if pages.len == 0 || !e.is_empty(Self::COLD_CLEAN) {
            return e.replace_oldest(Self::COLD_CLEAN, to, pages, out);
        }
        if to == Self::COLD_CLEAN {
            // Each page is the next one's victim.
            return e.replace_oldest(self.victims(e), to, pages.up_to(1), out);
        }
        let drawn = self.draw_cold(e, pages.len.min(e.len(Self::COLD_DIRTY)));
        e.replace_oldest(Self::COLD_DIRTY, to, pages.up_to(drawn), out)
    }

    #[inline]
    fn join(&mut self, e: &mut Entries, id: NodeId) {
        e.move_to_newest(Self::HOT, id);
    }
}

impl<const AT: u8> Replacement for PtLru<AT> {
    const AREAS: &'static [Area] =
        &[Area::new("cold-clean"), Area::new("cold-dirty"), Area::new("hot")];

    /// As an area of a divided buffer it has the default probability.
    fn new(setup: &Setup) -> Self {
        let own = setup.parameters.policy() == INFO.name;
        let p = if own { setup.parameters.value("p").ratio() } else { P };
        Self { p: p.real(), rng: Rng::new(SEED) }
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        self.join(e, id);
    }

    #[inline]
    fn admit(
        &mut self,
        e: &mut Entries,
        key: u32,
        ghost: Option<NodeId>,
        access: Access,
        out: &mut Actions,
    ) -> Option<NodeId> {
        self.make_room_and_insert(e, (key, access), ghost, out)
    }

    #[inline]
    fn admit_fresh(&mut self, e: &mut Entries, pages: Pages, out: &mut Actions) -> u32 {
        if e.is_full() { self.replace_fresh(e, pages, out) } else { 0 }
    }

    onefold_units::keep_fields!({ rng } but { p });
}
