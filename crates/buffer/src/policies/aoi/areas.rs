//! Which area gives up pages when another one needs room (Jeong 2021, sec. IV-B, algorithms 3-5).

use onefold_units::convert::index;
use onefold_units::{Keep, Keeper};

use super::classify::Destination;
use super::{BAR, BAW};
use crate::policies::nested::{Nested, Newcomer};
use crate::{Actions, Entries, ListId, NodeId, Pages, Setup};

/// Sizes of the areas, and who leaves.
#[derive(Clone, Debug)]
pub(super) struct Areas<S> {
    pub(super) sorb: S,
    /// Most pages in BAW, and in BAR: one flash page for each die.
    most: u32,
    /// Pages in a flash page: k.
    per_program: u32,
    /// Pages in the buffer: C.
    slots: u32,
    /// Pages that needed room while BAW had some, but too few for a flash page.
    deadline: u32,
    /// Pages of BAW that leave together.
    group: Vec<NodeId>,
}

impl Destination {
    /// The list of an area with a limit.
    #[inline]
    const fn bounded(self) -> Option<ListId> {
        match self {
            Self::Baw => Some(BAW),
            Self::Bar => Some(BAR),
            Self::Sorb => None,
        }
    }
}

impl<S: Nested> Areas<S> {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            sorb: S::new(setup),
            most: Self::most(setup),
            per_program: setup.shape.per_program(),
            slots: setup.shape.slots(),
            deadline: 0,
            group: Vec::new(),
        }
    }

    /// Most pages in BAW and in BAR: channels x ways x k ("the smallest I/O size that can achieve the
    /// maximum internal parallelism", Jeong 2021, sec. IV-A), of the drive unless they are given.
    pub(super) fn most(setup: &Setup) -> u32 {
        let given = |key, of_drive| match setup.parameters.value(key).count() {
            0 => of_drive,
            count => count,
        };
        let dies = given("channels", setup.channels).saturating_mul(given("ways", setup.ways));
        dies.saturating_mul(setup.shape.per_program())
    }

    /// Makes room for one page and inserts it. Areas can be smaller than a request, so the paper's
    /// algorithms, which make room for a whole request, would not end. It is known if SORB remembered
    /// it.
    #[inline]
    pub(super) fn admit(
        &mut self,
        e: &mut Entries,
        destination: Destination,
        page: Newcomer,
        out: &mut Actions,
    ) -> NodeId {
        let key = page.key;
        let Some(list) = destination.bounded() else {
            if e.is_full() {
                if e.is_empty(BAR) && e.is_empty(BAW) {
                    return self.sorb.replace(e, page, out);
                }
                self.take(e, destination, out);
            }
            return self.sorb.insert(e, page, out);
        };
        let left = self.most - e.len(list);
        if left == 0 && self.per_program == 1 {
            // What `recycle` does, in one step.
            self.deadline = if list == BAW { 0 } else { self.deadline };
            return e.replace(list, list, key, out);
        }
        if left == 0 || self.free(e) >= left {
            self.recycle(e, list, out);
        } else if e.is_full() {
            self.take(e, destination, out);
        }
        e.insert(list, key)
    }

    /// Does so for fresh pages as long as one of them is like the other, and returns their number.
    #[inline]
    pub(super) fn admit_fresh(
        &mut self,
        e: &mut Entries,
        destination: Destination,
        pages: Pages,
        out: &mut Actions,
    ) -> u32 {
        let Some(list) = destination.bounded() else {
            let alone = e.is_full() && e.is_empty(BAR) && e.is_empty(BAW);
            return if alone { self.sorb.replace_fresh(e, pages, out) } else { 0 };
        };
        let pages = e.fresh(pages);
        if pages.len == 0 {
            return 0;
        }
        // Flash pages have one entry here, so the deadline has nothing to decide.
        let left = self.most - e.len(list);
        if left == 0 {
            return e.replace_oldest(list, list, pages, out);
        }
        if e.is_full() && list == BAR {
            return e.replace_oldest(BAW, BAR, pages.up_to(left), out);
        }
        if e.is_full() {
            e.evict_all(BAR, out);
        }
        let pages = pages.up_to(left).up_to(self.free(e));
        e.insert_fresh(list, None, pages, |_, _| {}, out);
        pages.len
    }

    /// Slots that no area uses.
    #[inline]
    fn free(&self, e: &Entries) -> u32 {
        self.slots - e.len(BAW) - e.len(BAR) - S::len(e)
    }

    /// The area can still grow to its limit without the others: it makes room in itself only.
    fn recycle(&mut self, e: &mut Entries, list: ListId, out: &mut Actions) {
        if list == BAW {
            self.deadline = 0;
        }
        while e.len(list) >= self.most {
            if list == BAW {
                self.evict_appends(e, out);
            } else {
                e.evict(list, out);
            }
        }
    }

    fn take(&mut self, e: &mut Entries, destination: Destination, out: &mut Actions) {
        let appends = e.len(BAW);
        if destination != Destination::Baw && 0 < appends && appends < self.per_program {
            self.deadline = self.deadline.saturating_add(1);
        }
        while e.is_full() {
            self.take_once(e, destination, out);
        }
    }

    /// BAR first, because it is clean but for pages that a write found there; then appends, in whole
    /// flash pages unless they have waited for as many pages as the buffer has; then SORB.
    fn take_once(&mut self, e: &mut Entries, destination: Destination, out: &mut Actions) {
        let appends = e.len(BAW);
        let flash_page =
            appends >= self.per_program || (appends > 0 && self.deadline >= self.slots);
        if destination != Destination::Bar && !e.is_empty(BAR) {
            e.evict_all(BAR, out);
        } else if destination != Destination::Baw && flash_page {
            self.evict_appends(e, out);
        } else if S::len(e) > 0 {
            self.sorb.evict(e, out);
        } else if !e.is_empty(BAR) {
            e.evict(BAR, out);
        } else {
            self.evict_appends(e, out);
        }
    }

    /// The oldest pages of BAW leave together, as many as a flash page holds: what is dirty among
    /// them was written in sequence.
    #[inline]
    fn evict_appends(&mut self, e: &mut Entries, out: &mut Actions) {
        self.deadline = 0;
        if self.per_program == 1 {
            e.evict(BAW, out);
        } else {
            self.evict_group(e, out);
        }
    }

    fn evict_group(&mut self, e: &mut Entries, out: &mut Actions) {
        self.group.clear();
        let oldest = e.slab().oldest(BAW);
        let newer = std::iter::successors(oldest, |id| e.slab().newer(*id));
        self.group.extend(newer.take(index(self.per_program)));
        e.evict_group(&self.group, out);
    }

    /// Writes or takes its state.
    pub(super) fn keep(&mut self, keeper: &mut Keeper<'_>) {
        let Self { sorb, deadline, most: _, per_program: _, slots: _, group: _ } = self;
        sorb.keep(keeper);
        deadline.keep(keeper);
    }
}
