//! Two-level LRU: hot entries, and candidates that have not been accessed again.

use crate::{
    Access, Actions, Area, Build, Entries, Limits, ListId, NodeId, Pages, Parameter, PolicyInfo,
    Ratio, Replacement, Setup, Value, Violation,
};

const CANDIDATES: ListId = ListId(0);
const HOT: ListId = ListId(1);

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "2l",
    about: "Two-level LRU: a hit lifts an entry into a hot list of a third of the buffer.",
    source: "Chang, Kuo 2002; as described in Jeong 2021, sec. III",
    parameters: &[Parameter {
        name: "hot",
        default: Value::Ratio(Ratio::new(1, 3)),
        limits: Limits::Ratio,
        about: "Share of the entries for the hot list; one entry at least stays outside.",
    }],
    build: Build::of::<TwoLevel>(),
};

/// Two LRU lists of fixed sizes: a miss enters the candidates, a hit lifts an entry into the hot
/// list, whose oldest entry becomes a candidate again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwoLevel {
    candidates_most: u32,
    hot_most: u32,
}

impl Replacement for TwoLevel {
    const AREAS: &'static [Area] = &[Area::new("candidates"), Area::new("hot")];

    fn new(setup: &Setup) -> Self {
        let slots = setup.shape.slots();
        let hot_most = setup.parameters.value("hot").ratio().of(slots).min(slots.saturating_sub(1));
        Self { candidates_most: slots - hot_most, hot_most }
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        e.move_to_newest(HOT, id);
        if e.len(HOT) > self.hot_most
            && let Some(oldest) = e.slab().oldest(HOT)
        {
            e.move_to_newest(CANDIDATES, oldest);
        }
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
        Some(if e.len(CANDIDATES) >= self.candidates_most {
            e.replace(CANDIDATES, CANDIDATES, key, out)
        } else {
            e.insert(CANDIDATES, key)
        })
    }

    #[inline]
    fn admit_fresh(&mut self, e: &mut Entries, pages: Pages, out: &mut Actions) -> u32 {
        if e.len(CANDIDATES) < self.candidates_most {
            return 0;
        }
        e.replace_oldest(CANDIDATES, CANDIDATES, e.fresh(pages), out)
    }

    fn check(&self, e: &Entries) -> Result<(), Violation> {
        for (id, limit) in [(CANDIDATES, self.candidates_most), (HOT, self.hot_most)] {
            let (list, found) = (usize::from(id.0), e.len(id));
            if found > limit {
                return Err(Violation::ListLimit { list, found, limit });
            }
        }
        Ok(())
    }
}
