//! Entries by block: for policies that evict neighbouring pages together.
//!
//! Block `b` of n pages has the LPNs `b x n` to `b x n + n - 1`; only buffered ones are its
//! entries. Blocks with entries stand in a queue of their own, whose oldest end is evicted first.
//!
//! Invariants:
//! 1. The entries of a block are neighbours in their list of [`Entries`], in the order they came,
//!    so taking a block is a walk over its entries alone.
//! 2. A block knows the oldest and the newest of them and how many they are, at least one.
//! 3. An entry knows its block, so a hit needs no second look-up.

use onefold_units::convert::index;

use crate::entries::Run;
use crate::index::Index;
use crate::node::NewNode;
use crate::{Actions, Entries, ListId, NodeId, Pages, Slab, Violation};

const QUEUE: ListId = ListId(0);

/// A block with entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct BlockId(NodeId);

onefold_units::keep!(BlockId(node));

#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    block: NodeId,
    /// The first page of the block.
    first: u32,
}

onefold_units::keep!(Recent { block, first });

/// The blocks that have entries.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    queue: Slab,
    index: Index,
    /// Invariant 2.
    groups: Box<[Run]>,
    /// Invariant 3, by slot.
    of_slot: Box<[NodeId]>,
    /// Pages of a block.
    pages: u32,
    /// The block that an entry was added to last, if it still exists: the pages of a request come in
    /// a row, so it is mostly the next one's too.
    recent: Option<Recent>,
}

onefold_units::keep!(Blocks { queue, index, groups, of_slot, pages, recent });

/// Invariant 1: moves an entry next to the one that came to its block before.
fn join_block(e: &mut Entries, before: NodeId, id: NodeId) {
    if let Some(newer) = e.slab().newer(before) {
        e.move_older_than(newer, id);
    }
}

impl Blocks {
    /// No blocks, of `pages` each. `entries` of all `slots` can be in them.
    pub(super) fn new(pages: u32, entries: u32, slots: u32) -> Self {
        let empty = Run { oldest: NodeId(0), newest: NodeId(0), len: 0 };
        Self {
            queue: Slab::new(entries, 0, 1),
            index: Index::new(entries),
            groups: vec![empty; index(entries)].into_boxed_slice(),
            of_slot: vec![NodeId(0); index(slots)].into_boxed_slice(),
            pages,
            recent: None,
        }
    }

    /// Pages of a block.
    #[inline]
    pub(super) const fn pages(&self) -> u32 {
        self.pages
    }

    /// The block of an entry.
    #[inline]
    pub(super) fn of(&self, id: NodeId) -> BlockId {
        BlockId(self.of_slot[index(id.0)])
    }

    /// Entries of the block.
    #[inline]
    pub(super) fn len(&self, block: BlockId) -> u32 {
        self.groups[index(block.0.0)].len
    }

    /// The policy's own bits of a block, 0 at first.
    #[inline]
    pub(super) fn aux_mut(&mut self, block: BlockId) -> &mut u16 {
        &mut self.queue.node_mut(block.0).aux
    }

    /// Takes note of an entry that was put at the newest end of its list. A block without entries
    /// is new: it goes to the newest end of the queue.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once per page inserted, by one or two callers")]
    pub(super) fn add(&mut self, e: &mut Entries, id: NodeId) -> BlockId {
        let (block, before) = self.append(e.slab().node(id).key, id);
        if let Some(before) = before.filter(|before| e.slab().node(*before).newer != id.0) {
            join_block(e, before, id);
        }
        block
    }

    /// Puts an entry into the block of its page. Returns the one that came there before it.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once per page inserted")]
    fn append(&mut self, key: u32, id: NodeId) -> (BlockId, Option<NodeId>) {
        let Some(block) = self.block_of(key) else { return (self.create(key, id), None) };
        self.of_slot[index(id.0)] = block;
        let group = &mut self.groups[index(block.0)];
        let before = std::mem::replace(&mut group.newest, id);
        group.len += 1;
        (BlockId(block), Some(before))
    }

    /// The block of a page that is going to get an entry.
    #[inline]
    fn block_of(&mut self, key: u32) -> Option<NodeId> {
        match self.recent {
            Some(Recent { block, first }) if key.wrapping_sub(first) < self.pages => Some(block),
            _ => self.find(key),
        }
    }

    #[inline(never)]
    fn find(&mut self, key: u32) -> Option<NodeId> {
        let number = key / self.pages;
        let block = self.index.find(&self.queue, number)?;
        self.remember(block, number);
        Some(block)
    }

    /// Notes the block that is added to. Not one that the end of the 32-bit keys cuts off: its missing
    /// pages would seem to be the first keys.
    fn remember(&mut self, block: NodeId, number: u32) {
        let first = number * self.pages;
        let last = first.checked_add(self.pages - 1);
        self.recent = last.map(|_| Recent { block, first });
    }

    #[inline(never)]
    fn create(&mut self, key: u32, id: NodeId) -> BlockId {
        let number = key / self.pages;
        // Invariant 2: there are no more blocks than entries, so a node is free.
        let head = self.index.head_mut(number);
        let block = self.queue.attach(NewNode::empty(QUEUE.0), number, head);
        self.remember(block, number);
        self.groups[index(block.0)] = Run { oldest: id, newest: id, len: 1 };
        self.of_slot[index(id.0)] = block;
        BlockId(block)
    }

    /// How many of fresh pages, of which there is one, are in the block of the last one. This block
    /// and that of the first page can have entries, those between them cannot.
    #[inline]
    pub(super) fn in_last(&self, pages: Pages) -> u32 {
        let last = pages.first + (pages.len - 1);
        (last % self.pages + 1).min(pages.len)
    }

    /// Puts fresh pages, for which there is room, into a list: next to the others of their block, or at
    /// the newest end. Of their blocks only the first can have entries. Returns how many, one at least.
    #[inline]
    pub(super) fn insert_fresh(
        &mut self,
        e: &mut Entries,
        list: ListId,
        pages: Pages,
        out: &mut Actions,
    ) -> u32 {
        let first = self.block_of(pages.first).map(|block| self.groups[index(block.0)].newest);
        let newer = first.and_then(|before| e.slab().newer(before));
        let pages = match newer {
            Some(_) => pages.up_to(self.pages - pages.first % self.pages),
            None => pages,
        };
        e.insert_fresh(list, newer, pages, |id, key| _ = self.append(key, id), out);
        pages.len
    }

    /// Takes note of an entry that is about to leave its list alone, and returns its block unless
    /// that was its last entry.
    pub(super) fn leave(&mut self, e: &Entries, id: NodeId) -> Option<BlockId> {
        let block = self.of(id);
        let group = &mut self.groups[index(block.0.0)];
        group.len -= 1;
        if group.len == 0 {
            self.remove(block);
            return None;
        }
        let node = e.slab().node(id);
        if group.newest == id {
            group.newest = NodeId(node.older);
        } else if group.oldest == id {
            group.oldest = NodeId(node.newer);
        }
        Some(block)
    }

    fn remove(&mut self, block: BlockId) {
        self.recent = self.recent.filter(|recent| recent.block != block.0);
        let number = self.queue.node(block.0).key;
        self.queue.detach(block.0, self.index.head_mut(number));
    }

    /// Removes a block, whose entries are about to leave their list together.
    #[inline]
    pub(super) fn take(&mut self, block: BlockId) -> Run {
        self.remove(block);
        self.groups[index(block.0.0)]
    }

    /// The next block to evict.
    #[inline]
    pub(super) fn oldest(&self) -> Option<BlockId> {
        self.queue.oldest(QUEUE).map(BlockId)
    }

    /// Loads what evicting the next block takes, so that it is there by then.
    #[inline]
    pub(super) fn touch_oldest(&self, e: &Entries) {
        if let Some(block) = self.oldest() {
            e.touch_run(self.groups[index(block.0.0)]);
        }
    }

    /// The neighbour in the queue that is evicted later.
    pub(super) fn newer(&self, block: BlockId) -> Option<BlockId> {
        self.queue.newer(block.0).map(BlockId)
    }

    /// The neighbour in the queue that is evicted earlier.
    pub(super) fn older(&self, block: BlockId) -> Option<BlockId> {
        self.queue.older(block.0).map(BlockId)
    }

    /// Moves a block to the newest end of the queue.
    #[inline]
    pub(super) fn move_to_newest(&mut self, block: BlockId) {
        self.queue.unlink(block.0);
        self.queue.push_newest(QUEUE, block.0);
    }

    /// Moves a block to the oldest end of the queue.
    pub(super) fn move_to_oldest(&mut self, block: BlockId) {
        self.queue.unlink(block.0);
        self.queue.push_oldest(QUEUE, block.0);
    }

    /// Moves a block next to another one, on its older side.
    pub(super) fn move_older_than(&mut self, newer: BlockId, block: BlockId) {
        self.queue.unlink(block.0);
        self.queue.push_older_than(QUEUE, newer.0, block.0);
    }

    /// Moves a block next to another one, on its newer side.
    pub(super) fn move_above(&mut self, older: BlockId, block: BlockId) {
        self.queue.unlink(block.0);
        match self.queue.newer(older.0) {
            Some(newer) => self.queue.push_older_than(QUEUE, newer, block.0),
            None => self.queue.push_newest(QUEUE, block.0),
        }
    }

    /// Checks the invariants for the blocks of one list, which has no other entries.
    pub(super) fn check(&self, e: &Entries, list: ListId) -> Result<(), Violation> {
        let mut entries = 0;
        let queue = std::iter::successors(self.oldest(), |block| self.newer(*block));
        // One more than there can be: a broken queue may go round in circles.
        for block in queue.take(index(e.len(list)) + 1) {
            let Run { oldest, newest, len: pages } = self.groups[index(block.0.0)];
            let number = self.queue.node(block.0).key;
            let members = std::iter::successors(Some(newest), |id| e.slab().older(*id));
            let members = members.take(index(pages)).filter(|id| {
                let node = e.slab().node(*id);
                let here = e.slab().list_of(*id) == Some(list) && self.of(*id) == block;
                here && node.key / self.pages == number
            });
            let members: Vec<NodeId> = members.collect();
            if members.last() != Some(&oldest) || members.len() != index(pages) {
                return Err(Violation::Block { block: number, pages });
            }
            entries += pages;
        }
        let (list, counted) = (usize::from(list.0), e.len(list));
        if entries == counted {
            return Ok(());
        }
        Err(Violation::ListLength { list, found: entries, counted })
    }
}
