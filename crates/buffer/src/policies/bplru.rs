//! Write buffer of whole blocks, padded and programmed as a block.

use onefold_units::convert::narrow;

use super::blocks::{BlockId, Blocks};
use crate::{
    Access, Actions, Area, Build, Entries, Limits, ListId, NodeId, Parameter, PolicyInfo,
    Replacement, Setup, Tables, Value, Violation,
};

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "bplru",
    about: "Write buffer of whole blocks, padded and programmed as a block.",
    source: "Kim, Ahn 2008",
    parameters: &[Parameter {
        name: "block",
        default: Value::Count(64),
        limits: Limits::Count { least: 1, most: 4096 },
        about: "Pages of a block.",
    }],
    build: Build::of::<Bplru>(),
};

const ALL: ListId = ListId(0);

/// Next offset of a block that was not written in sequence.
const BROKEN: u16 = u16::MAX;

/// An LRU list of blocks by writes; a block that was written once, in sequence, goes first.
///
/// A victim is programmed whole: pages that are not buffered are read before, into slots behind
/// those of the entries, and its clean entries (a FLUSH or FUA write programmed them) are
/// programmed again. A block of clean entries alone is dropped.
#[derive(Clone, Debug)]
pub struct Bplru {
    blocks: Blocks,
    /// Last page of the device: blocks end there.
    last: u32,
}

impl Bplru {
    /// Places a block of which the page `key` is being written.
    #[inline]
    fn written(&mut self, block: BlockId, key: u32) {
        let pages = self.blocks.pages();
        let next = self.blocks.aux_mut(block);
        *next = if u32::from(*next) == key % pages { *next + 1 } else { BROKEN };
        if u32::from(*next) == pages {
            self.blocks.move_to_oldest(block);
        } else {
            self.blocks.move_to_newest(block);
        }
    }

    fn evict(&mut self, e: &mut Entries, out: &mut Actions) {
        let Some(victim) = self.blocks.oldest() else { return };
        let group = e.take_run(self.blocks.take(victim));
        if group.iter().any(|id| e.is_dirty(*id)) {
            e.evict_padded(&group, self.blocks.pages(), self.last, out);
        } else {
            e.evict_group(&group, out);
        }
        e.give_back_found(group);
    }

    fn block_pages(setup: &Setup) -> u32 {
        setup.parameters.value("block").count()
    }
}

impl Replacement for Bplru {
    const AREAS: &'static [Area] = &[Area::new("all")];

    fn new(setup: &Setup) -> Self {
        let last = setup.device_entries.saturating_sub(1).min(u64::from(u32::MAX));
        let slots = setup.shape.slots();
        let blocks = Blocks::new(Self::block_pages(setup), slots, slots);
        Self { blocks, last: narrow(last) }
    }

    /// A victim has one entry at least.
    fn scratch(&self) -> u32 {
        self.blocks.pages() - 1
    }

    fn tables(setup: &Setup) -> Tables {
        let scratch = u64::from(Self::block_pages(setup) - 1);
        Tables { paper: 0, full: scratch * u64::from(setup.shape.entry_bytes()) }
    }

    /// Reads do not count.
    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, access: Access, _: &mut Actions) {
        if access == Access::Write {
            self.written(self.blocks.of(id), e.slab().node(id).key);
        }
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
        if access == Access::Read {
            return None;
        }
        if e.is_full() {
            self.evict(e, out);
        }
        let id = e.insert(ALL, key);
        let block = self.blocks.add(e, id);
        self.written(block, key);
        Some(id)
    }

    fn forget(&mut self, e: &mut Entries, id: NodeId) {
        if let Some(block) = self.blocks.leave(e, id) {
            *self.blocks.aux_mut(block) = BROKEN;
        }
    }

    fn check(&self, e: &Entries) -> Result<(), Violation> {
        self.blocks.check(e, ALL)
    }

    onefold_units::keep_fields!({ blocks, last });
}
