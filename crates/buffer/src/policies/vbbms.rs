//! A region for single pages and one for longer requests, both in virtual blocks.

use super::blocks::{BlockId, Blocks};
use crate::{
    Access, Actions, Area, Build, Entries, FtlView, Limits, ListId, NodeId, Pages, Parameter,
    PolicyInfo, Ratio, Replacement, Req, Setup, Value, Violation,
};

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "vbbms",
    about: "A region for single pages and one for longer requests, both in virtual blocks.",
    source: "Du et al. 2019",
    parameters: &[
        Parameter {
            name: "random",
            default: Value::Ratio(Ratio::new(3, 5)),
            limits: Limits::Ratio,
            about: "Share of the entries for random requests; each region has one at least.",
        },
        Parameter {
            name: "longest",
            default: Value::Count(1),
            limits: Limits::Count { least: 1, most: 65_536 },
            about: "Pages of the longest request that counts as random.",
        },
        Parameter {
            name: "random_block",
            default: Value::Count(8),
            limits: Limits::Count { least: 1, most: 4096 },
            about: "Pages of a virtual block in the random region.",
        },
        Parameter {
            name: "sequential_block",
            default: Value::Count(6),
            limits: Limits::Count { least: 1, most: 4096 },
            about: "Pages of a virtual block in the sequential region.",
        },
    ],
    build: Build::of::<Vbbms>(),
};

const RANDOM: ListId = ListId(0);
const SEQUENTIAL: ListId = ListId(1);

/// A part of the buffer with virtual blocks of its own.
#[derive(Clone, Debug)]
struct Region {
    list: ListId,
    entries: u32,
    blocks: Blocks,
}

onefold_units::keep!(Region { blocks } but { list, entries });

impl Region {
    fn new(list: ListId, block: u32, entries: u32, slots: u32) -> Self {
        Self { list, entries, blocks: Blocks::new(block, entries, slots) }
    }

    /// Makes room for one entry.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of one step: a call is a tenth of it")]
    fn room(&mut self, e: &mut Entries, out: &mut Actions) {
        if e.len(self.list) >= self.entries {
            self.evict(e, out);
        }
    }

    /// Evicts the next block.
    #[inline(never)]
    fn evict(&mut self, e: &mut Entries, out: &mut Actions) {
        if let Some(victim) = self.blocks.oldest() {
            let run = self.blocks.take(victim);
            self.blocks.touch_oldest(e);
            e.evict_run(run, out);
        }
    }

    /// Inserts a page, for which there is room.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of one step: a call is a tenth of it")]
    fn insert(&mut self, e: &mut Entries, key: u32) -> (NodeId, BlockId) {
        let id = e.insert(self.list, key);
        (id, self.blocks.add(e, id))
    }

    /// Makes room for fresh pages and inserts them. Of their blocks only the first can have entries.
    #[inline]
    fn insert_fresh(&mut self, e: &mut Entries, pages: Pages, out: &mut Actions) {
        let mut rest = pages;
        while rest.len > 0 {
            self.room(e, out);
            let room = rest.up_to(self.entries - e.len(self.list));
            rest = rest.after(self.blocks.insert_fresh(e, self.list, room, out));
        }
    }

    fn check(&self, e: &Entries) -> Result<(), Violation> {
        let (found, limit) = (e.len(self.list), self.entries);
        if found > limit {
            return Err(Violation::ListLimit { list: usize::from(self.list.0), found, limit });
        }
        self.blocks.check(e, self.list)
    }
}

/// Random requests are kept in an LRU list of virtual blocks, sequential ones in a FIFO of others;
/// what hits there has shown that it is not sequential, and moves.
#[derive(Clone, Debug)]
pub struct Vbbms {
    random: Region,
    sequential: Region,
    longest: u32,
    /// Whether the current request is longer than that.
    long: bool,
}

impl Replacement for Vbbms {
    const AREAS: &'static [Area] = &[Area::new("random"), Area::new("sequential")];

    fn new(setup: &Setup) -> Self {
        let count = |key| setup.parameters.value(key).count();
        let slots = setup.shape.slots();
        let random = setup.parameters.value("random").ratio().of(slots).clamp(1, slots - 1);
        Self {
            random: Region::new(RANDOM, count("random_block"), random, slots),
            sequential: Region::new(SEQUENTIAL, count("sequential_block"), slots - random, slots),
            longest: count("longest"),
            long: false,
        }
    }

    /// One entry in each region.
    fn least(setup: &Setup) -> u32 {
        setup.shape.per_program().max(2)
    }

    #[inline]
    fn begin(&mut self, r: &Req, _: &dyn FtlView, _: &Entries, _: &mut Actions) {
        self.long = r.n > self.longest;
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, out: &mut Actions) {
        if e.slab().list_of(id) == Some(RANDOM) {
            self.random.blocks.move_to_newest(self.random.blocks.of(id));
            return;
        }
        self.sequential.blocks.leave(e, id);
        self.random.room(e, out);
        e.move_to_newest(RANDOM, id);
        let block = self.random.blocks.add(e, id);
        self.random.blocks.move_to_newest(block);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once per page of long requests")]
    fn admit(
        &mut self,
        e: &mut Entries,
        key: u32,
        _: Option<NodeId>,
        _: Access,
        out: &mut Actions,
    ) -> Option<NodeId> {
        if self.long {
            self.sequential.room(e, out);
            return Some(self.sequential.insert(e, key).0);
        }
        self.random.room(e, out);
        let (id, block) = self.random.insert(e, key);
        self.random.blocks.move_to_newest(block);
        Some(id)
    }

    #[inline]
    fn admit_fresh(&mut self, e: &mut Entries, pages: Pages, out: &mut Actions) -> u32 {
        if !self.long {
            return 0;
        }
        let fresh = e.fresh(pages);
        if fresh.len > 0 {
            let before = fresh.len - self.sequential.blocks.in_last(fresh);
            self.sequential.insert_fresh(e, fresh.up_to(before), out);
            self.sequential.insert_fresh(e, fresh.after(before), out);
        }
        fresh.len
    }

    fn forget(&mut self, e: &mut Entries, id: NodeId) {
        let random = e.slab().list_of(id) == Some(RANDOM);
        let region = if random { &mut self.random } else { &mut self.sequential };
        region.blocks.leave(e, id);
    }

    fn check(&self, e: &Entries) -> Result<(), Violation> {
        self.random.check(e)?;
        self.sequential.check(e)
    }

    onefold_units::keep_fields!({ random, sequential, long } but { longest });
}
