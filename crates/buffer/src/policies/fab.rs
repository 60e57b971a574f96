//! The flash block with the most buffered pages leaves whole.

use onefold_units::convert::index;

use super::blocks::{BlockId, Blocks};
use crate::{
    Access, Actions, Area, Build, Entries, Limits, ListId, NodeId, Parameter, PolicyInfo,
    Replacement, Setup, Value, Violation,
};

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "fab",
    about: "The flash block with the most buffered pages leaves whole.",
    source: "Jo et al. 2006",
    parameters: &[Parameter {
        name: "block",
        default: Value::Count(64),
        limits: Limits::Count { least: 1, most: 4096 },
        about: "Pages of a block.",
    }],
    build: Build::of::<Fab>(),
};

const ALL: ListId = ListId(0);

/// Blocks of one size, next to each other in the queue. `None`: there are none.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    oldest: BlockId,
    newest: BlockId,
}

onefold_units::keep!(Run { oldest, newest });

/// The largest block leaves; of several, the least recently accessed.
///
/// The queue is sorted by size, and among blocks of one size by access. A page makes a block one
/// larger or smaller, so it moves over one run of equals, whose ends are known: O(1).
#[derive(Clone, Debug)]
pub struct Fab {
    blocks: Blocks,
    /// By number of pages.
    runs: Box<[Option<Run>]>,
}

impl Fab {
    fn run(&mut self, pages: u32) -> &mut Option<Run> {
        &mut self.runs[index(pages)]
    }

    /// Takes a block out of the run of its size, not out of the queue.
    fn leave_run(&mut self, block: BlockId, pages: u32) {
        let (newer, older) = (self.blocks.newer(block), self.blocks.older(block));
        let run = self.run(pages);
        *run = match *run {
            Some(Run { oldest, newest }) if oldest != newest => Some(Run {
                oldest: newer.filter(|_| oldest == block).unwrap_or(oldest),
                newest: older.filter(|_| newest == block).unwrap_or(newest),
            }),
            _ => None,
        };
    }

    /// A block that had `before` pages was accessed: it becomes the newest of its size now, which
    /// is the same or one more.
    #[inline]
    fn accessed(&mut self, block: BlockId, before: u32) {
        let pages = self.blocks.len(block);
        if self.run(pages).is_some_and(|run| run.newest == block) {
            return;
        }
        if before > 0 {
            self.leave_run(block, before);
        }
        if let Some(run) = *self.run(pages) {
            self.blocks.move_above(run.newest, block);
            *self.run(pages) = Some(Run { newest: block, ..run });
            return;
        }
        if let Some(smaller) = *self.run(before) {
            self.blocks.move_older_than(smaller.oldest, block);
        }
        *self.run(pages) = Some(Run { oldest: block, newest: block });
    }

    /// A block lost one of its pages to a TRIM: it keeps its place in the queue as nearly as its
    /// size allows, and becomes the oldest of those that have one page less.
    fn shrunk(&mut self, block: BlockId) {
        let pages = self.blocks.len(block);
        self.leave_run(block, pages + 1);
        if let Some(larger) = *self.run(pages + 1) {
            self.blocks.move_above(larger.newest, block);
        }
        let newest = self.run(pages).map_or(block, |run| run.newest);
        *self.run(pages) = Some(Run { oldest: block, newest });
    }

    fn evict(&mut self, e: &mut Entries, out: &mut Actions) {
        let Some(victim) = self.blocks.oldest() else { return };
        self.leave_run(victim, self.blocks.len(victim));
        e.evict_run(self.blocks.take(victim), out);
    }
}

impl Replacement for Fab {
    const AREAS: &'static [Area] = &[Area::new("all")];

    fn new(setup: &Setup) -> Self {
        let (block, slots) = (setup.parameters.value("block").count(), setup.shape.slots());
        Self {
            blocks: Blocks::new(block, slots, slots),
            runs: vec![None; index(block) + 1].into_boxed_slice(),
        }
    }

    #[inline]
    fn hit(&mut self, _: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        let block = self.blocks.of(id);
        self.accessed(block, self.blocks.len(block));
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
        if e.is_full() {
            self.evict(e, out);
        }
        let id = e.insert(ALL, key);
        let block = self.blocks.add(e, id);
        self.accessed(block, self.blocks.len(block) - 1);
        Some(id)
    }

    fn forget(&mut self, e: &mut Entries, id: NodeId) {
        let block = self.blocks.of(id);
        if self.blocks.len(block) == 1 {
            self.leave_run(block, 1);
        }
        if let Some(block) = self.blocks.leave(e, id) {
            self.shrunk(block);
        }
    }

    fn check(&self, e: &Entries) -> Result<(), Violation> {
        self.blocks.check(e, ALL)
    }

    onefold_units::keep_fields!({ blocks, runs });
}
