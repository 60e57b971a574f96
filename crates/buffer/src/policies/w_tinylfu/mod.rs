//! A small window; a frequency sketch decides who enters the main cache.
//! Source: Einziger, Friedman, Manes 2017, section 4; the main cache is the segmented LRU of
//! Karedla, Love, Wherry 1994.

mod sketch;

use sketch::Sketch;

use crate::{
    Access, Actions, Area, Build, Entries, Limits, ListId, NodeId, Parameter, PolicyInfo, Ratio,
    Replacement, Setup, Tables, Value,
};

const WINDOW: ListId = ListId(0);
/// Entries of the main cache that were not hit there.
const PROBATION: ListId = ListId(1);
const PROTECTED: ListId = ListId(2);

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "w-tinylfu",
    about: "A small window; a frequency sketch decides who enters the main cache.",
    source: "Einziger et al. 2017",
    parameters: &[
        Parameter {
            name: "window",
            default: Value::Ratio(Ratio::new(1, 100)),
            limits: Limits::Ratio,
            about: "Share of the entries for the window.",
        },
        Parameter {
            name: "protected",
            default: Value::Ratio(Ratio::new(4, 5)),
            limits: Limits::Ratio,
            about: "Share of the main cache for entries that were hit there.",
        },
    ],
    build: Build::of::<WTinyLfu>(),
};

/// What is new enters a small LRU list; what leaves it stays only if it was accessed more often than
/// the victim of the main cache.
#[derive(Clone)]
pub(crate) struct WTinyLfu {
    sketch: Sketch,
    /// Most entries of the window.
    window: u32,
    /// Most protected entries.
    protected: u32,
}

impl WTinyLfu {
    /// Accesses of an entry lately.
    fn count(&self, e: &Entries, id: NodeId) -> u64 {
        self.sketch.count(e.slab().node(id).key)
    }

    /// The oldest entry of a full window, or that of the main cache, whichever counts less. One of
    /// them exists in a full buffer.
    fn evict(&self, e: &mut Entries, out: &mut Actions) {
        let full = e.len(WINDOW) >= self.window;
        let candidate = e.slab().oldest(WINDOW).filter(|_| full);
        let main = e.slab().oldest(PROBATION).or_else(|| e.slab().oldest(PROTECTED));
        let victim = match (candidate, main) {
            (Some(candidate), Some(main)) if self.count(e, candidate) <= self.count(e, main) => {
                Some(candidate)
            }
            (candidate, main) => main.or(candidate),
        };
        if let Some(victim) = victim {
            e.evict_at(victim, out);
        }
    }
}

/// Moves the oldest entry of a list that has more than `most` to the newest end of the probation.
#[inline]
fn overflow(e: &mut Entries, list: ListId, most: u32) {
    if e.len(list) > most
        && let Some(oldest) = e.slab().oldest(list)
    {
        e.move_to_newest(PROBATION, oldest);
    }
}

impl Replacement for WTinyLfu {
    const AREAS: &'static [Area] =
        &[Area::new("window"), Area::new("probation"), Area::new("protected")];

    fn new(setup: &Setup) -> Self {
        let slots = setup.shape.slots();
        let window = setup.parameters.value("window").ratio().of(slots).max(1);
        let protected = setup.parameters.value("protected").ratio().of(slots - window);
        Self { sketch: Sketch::new(slots), window, protected }
    }

    fn tables(setup: &Setup) -> Tables {
        Tables { paper: 0, full: Sketch::bytes(setup.shape.slots()) }
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        self.sketch.add(e.slab().node(id).key);
        if e.slab().list_of(id) == Some(WINDOW) {
            e.move_to_newest(WINDOW, id);
        } else {
            e.move_to_newest(PROTECTED, id);
            overflow(e, PROTECTED, self.protected);
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
        self.sketch.add(key);
        if e.is_full() {
            self.evict(e, out);
        }
        let id = e.insert(WINDOW, key);
        overflow(e, WINDOW, self.window);
        Some(id)
    }

    onefold_units::keep_fields!({ sketch } but { window, protected });
}
