//! Small FIFO, main FIFO with counts, ghost FIFO. Source: Yang et al. 2023, algorithm 1.

use super::nested::{Nested, Newcomer};
use crate::{
    Access, Actions, Area, Build, Entries, Limits, ListId, Memory, NodeId, Pages, Parameter,
    PolicyInfo, Ratio, Replacement, Setup, Value,
};

/// Share of the small queue unless set.
const SMALL_SHARE: Ratio = Ratio::new(1, 10);
/// Largest count of an entry.
const COUNT_MOST: u16 = 3;
/// Accesses after its admission that lift an entry from the small into the main queue.
const COUNT_TO_MAIN: u16 = 2;

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "s3-fifo",
    about: "Small FIFO, main FIFO with counts, ghost FIFO.",
    source: "Yang et al. 2023",
    parameters: &[Parameter {
        name: "small",
        default: Value::Ratio(SMALL_SHARE),
        limits: Limits::Ratio,
        about: "Share of the entries for the small queue.",
    }],
    build: Build::of::<S3Fifo>(),
};

/// What is new passes a small FIFO, where what is accessed only once leaves soon. `aux` of an entry
/// counts its accesses. Its lists are `AT` and the two after it.
#[derive(Clone)]
pub(crate) struct S3Fifo<const AT: u8 = 0> {
    /// Entries of the small queue from which on victims come from it.
    limit: u32,
    memory: Memory,
}

fn limit(setup: &Setup) -> u32 {
    let own = setup.parameters.policy() == INFO.name;
    let share = if own { setup.parameters.value("small").ratio() } else { SMALL_SHARE };
    share.of(setup.shape.slots())
}

impl<const AT: u8> S3Fifo<AT> {
    const SMALL: ListId = ListId(AT);
    const MAIN: ListId = ListId(AT + 1);
    const GHOSTS: ListId = ListId(AT + 2);

    /// The entry to evict, and whether it is remembered: it is if it comes from the small queue.
    #[inline]
    fn victim(&self, e: &mut Entries) -> Option<(NodeId, bool)> {
        if (e.len(Self::SMALL) >= self.limit || e.is_empty(Self::MAIN))
            && let Some(victim) = Self::victim_in_small(e)
        {
            return Some((victim, true));
        }
        Self::victim_in_main(e).map(|victim| (victim, false))
    }

    /// How many of the `most` oldest entries of the small queue leave before one of them goes to the
    /// main queue.
    #[inline]
    fn unlifted(e: &Entries, most: u32) -> u32 {
        let mut at = e.slab().oldest(Self::SMALL);
        let mut count = 0;
        while let Some(id) = at.filter(|id| count < most && e.slab().node(*id).aux < COUNT_TO_MAIN)
        {
            count += 1;
            at = e.slab().newer(id);
        }
        count
    }

    /// `None` if all its entries went to the main queue.
    #[inline]
    fn victim_in_small(e: &mut Entries) -> Option<NodeId> {
        while let Some(oldest) = e.slab().oldest(Self::SMALL) {
            let count = e.aux_mut(oldest);
            if *count < COUNT_TO_MAIN {
                return Some(oldest);
            }
            *count = 0;
            e.move_to_newest(Self::MAIN, oldest);
        }
        None
    }

    #[inline]
    fn victim_in_main(e: &mut Entries) -> Option<NodeId> {
        while let Some(oldest) = e.slab().oldest(Self::MAIN) {
            let count = e.aux_mut(oldest);
            if *count == 0 {
                return Some(oldest);
            }
            *count -= 1;
            e.move_to_newest(Self::MAIN, oldest);
        }
        None
    }

    #[inline]
    const fn queue(known: bool) -> ListId {
        if known { Self::MAIN } else { Self::SMALL }
    }
}

impl<const AT: u8> Nested for S3Fifo<AT> {
    #[inline]
    fn len(e: &Entries) -> u32 {
        e.len(Self::SMALL) + e.len(Self::MAIN)
    }

    #[inline]
    fn evict(&mut self, e: &mut Entries, out: &mut Actions) {
        let Some((victim, remembered)) = self.victim(e) else { return };
        e.evict_at(victim, out);
        if remembered {
            e.remember_evicted(self.memory);
        }
    }

    #[inline]
    fn insert(&mut self, e: &mut Entries, page: Newcomer, _: &mut Actions) -> NodeId {
        e.insert(Self::queue(page.known), page.key)
    }

    #[inline]
    fn replace(&mut self, e: &mut Entries, page: Newcomer, out: &mut Actions) -> NodeId {
        let (to, key) = (Self::queue(page.known), page.key);
        match self.victim(e) {
            Some((victim, true)) => e.replace_and_remember(victim, self.memory, to, key, out),
            Some((victim, false)) => e.replace_at(victim, to, key, out),
            None => e.insert(to, key),
        }
    }

    #[inline]
    fn replace_fresh(&mut self, e: &mut Entries, pages: Pages, out: &mut Actions) -> u32 {
        if e.len(Self::SMALL) < self.limit {
            return 0;
        }
        let pages = e.fresh(pages);
        let pages = pages.up_to(Self::unlifted(e, pages.len));
        e.replace_oldest_and_remember(Self::SMALL, self.memory, Self::SMALL, pages, out)
    }

    /// As if it came back as a ghost: the small queue is for what is accessed only once.
    #[inline]
    fn join(&mut self, e: &mut Entries, id: NodeId) {
        e.move_to_newest(Self::MAIN, id);
    }
}

impl<const AT: u8> Replacement for S3Fifo<AT> {
    const AREAS: &'static [Area] = &[Area::new("small"), Area::new("main"), Area::ghosts()];

    fn new(setup: &Setup) -> Self {
        Self {
            limit: limit(setup),
            memory: Memory { list: Self::GHOSTS, most: Self::ghosts(setup) },
        }
    }

    fn ghosts(setup: &Setup) -> u32 {
        setup.shape.slots() - limit(setup)
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        let count = e.aux_mut(id);
        *count = (*count + 1).min(COUNT_MOST);
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

    onefold_units::keep_fields!({} but { limit, memory });
}
