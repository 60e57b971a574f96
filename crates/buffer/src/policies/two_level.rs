//! Two-level LRU: hot entries, and candidates that have not been accessed again.

use super::nested::{Nested, Newcomer};
use crate::{
    Access, Actions, Area, Build, Entries, Limits, ListId, NodeId, Pages, Parameter, PolicyInfo,
    Ratio, Replacement, Setup, Value, Violation,
};

/// Share of the hot list where nobody says otherwise.
const HOT_SHARE: Ratio = Ratio::new(1, 3);

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "2l",
    about: "Two-level LRU: a hit lifts an entry into a hot list of a third of the buffer.",
    source: "Chang, Kuo 2002; as described in Jeong 2021, sec. III",
    parameters: &[Parameter {
        name: "hot",
        default: Value::Ratio(HOT_SHARE),
        limits: Limits::Ratio,
        about: "Share of the entries for the hot list; one entry at least stays outside.",
    }],
    build: Build::of::<TwoLevel>(),
};

/// Two LRU lists of fixed sizes: a miss enters the candidates, a hit lifts an entry into the hot
/// list, whose oldest entry becomes a candidate again. The lists are number `AT` and the next one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwoLevel<const AT: u8 = 0> {
    candidates_most: u32,
    hot_most: u32,
}

/// As an area of a divided buffer it has the limits that it would have alone, and the default share.
fn hot_most(setup: &Setup) -> u32 {
    let own = setup.parameters.policy() == INFO.name;
    let share = if own { setup.parameters.value("hot").ratio() } else { HOT_SHARE };
    let slots = setup.shape.slots();
    share.of(slots).min(slots.saturating_sub(1))
}

impl<const AT: u8> TwoLevel<AT> {
    const CANDIDATES: ListId = ListId(AT);
    const HOT: ListId = ListId(AT + 1);
}

impl<const AT: u8> Nested for TwoLevel<AT> {
    #[inline]
    fn len(e: &Entries) -> u32 {
        e.len(Self::CANDIDATES) + e.len(Self::HOT)
    }

    #[inline]
    fn evict(&mut self, e: &mut Entries, out: &mut Actions) {
        let list = if e.is_empty(Self::CANDIDATES) { Self::HOT } else { Self::CANDIDATES };
        e.evict(list, out);
    }

    /// A full candidate list gives up an entry even where the hot list has room.
    #[inline]
    fn insert(&mut self, e: &mut Entries, page: Newcomer, out: &mut Actions) -> NodeId {
        if e.len(Self::CANDIDATES) >= self.candidates_most {
            e.replace(Self::CANDIDATES, Self::CANDIDATES, page.key, out)
        } else {
            e.insert(Self::CANDIDATES, page.key)
        }
    }

    #[inline]
    fn replace_fresh(&mut self, e: &mut Entries, pages: Pages, out: &mut Actions) -> u32 {
        if e.len(Self::CANDIDATES) < self.candidates_most {
            return 0;
        }
        e.replace_oldest(Self::CANDIDATES, Self::CANDIDATES, e.fresh(pages), out)
    }

    #[inline]
    fn join(&mut self, e: &mut Entries, id: NodeId) {
        e.move_to_newest(Self::HOT, id);
        if e.len(Self::HOT) > self.hot_most
            && let Some(oldest) = e.slab().oldest(Self::HOT)
        {
            e.move_to_newest(Self::CANDIDATES, oldest);
        }
    }
}

impl<const AT: u8> Replacement for TwoLevel<AT> {
    const AREAS: &'static [Area] = &[Area::new("candidates"), Area::new("hot")];

    fn new(setup: &Setup) -> Self {
        let hot_most = hot_most(setup);
        Self { candidates_most: setup.shape.slots() - hot_most, hot_most }
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
        _: Option<NodeId>,
        access: Access,
        out: &mut Actions,
    ) -> Option<NodeId> {
        Some(self.insert(e, Newcomer { key, access, known: false }, out))
    }

    #[inline]
    fn admit_fresh(&mut self, e: &mut Entries, pages: Pages, out: &mut Actions) -> u32 {
        self.replace_fresh(e, pages, out)
    }

    fn check(&self, e: &Entries) -> Result<(), Violation> {
        let lists = [(Self::CANDIDATES, self.candidates_most), (Self::HOT, self.hot_most)];
        for (id, limit) in lists {
            let (list, found) = (usize::from(id.0), e.len(id));
            if found > limit {
                return Err(Violation::ListLimit { list, found, limit });
            }
        }
        Ok(())
    }

    onefold_units::keep_fields!({} but { candidates_most, hot_most });
}
