//! The LRU stack of Mattson, Gecsei, Slutz, Traiger 1970, counted by a tree.

use std::collections::BTreeSet;

use onefold_units::convert::{index, u32_from};

use super::fenwick::Marks;

/// No position.
const NONE: u32 = u32::MAX;

/// Positions of a new stack.
const POSITIONS_LEAST: usize = 1024;

/// The LRU stack: positions ascend with time, and a mark stands for a slot.
///
/// A TRIM leaves a hole: a slot that is free in buffers so large that they had the page. The next
/// page that enters a buffer fills its newest hole, and all slots below stay as they are.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    /// Position of each page.
    positions: Vec<u32>,
    /// Page at each position; meaningful where `positions` agrees.
    pages: Vec<u32>,
    marks: Marks,
    holes: BTreeSet<u32>,
    now: u32,
}

impl Stack {
    /// An empty stack for pages below `pages`.
    pub(super) fn new(pages: usize) -> Self {
        Self {
            positions: vec![NONE; pages],
            pages: vec![0; POSITIONS_LEAST],
            marks: Marks::new(POSITIONS_LEAST),
            holes: BTreeSet::new(),
            now: 0,
        }
    }

    /// Puts a page on top; its distance from there, if it was in the stack.
    pub(super) fn access(&mut self, page: u32) -> Option<u32> {
        if index(self.now) == self.pages.len() {
            self.renumber();
        }
        let now = self.now;
        let then = std::mem::replace(&mut self.positions[index(page)], now);
        self.pages[index(now)] = page;
        self.now += 1;
        let known = then != NONE;
        let distance =
            known.then(|| self.marks.before(index(now)) - self.marks.before(index(then) + 1));
        let hole = self.holes.last().copied().filter(|hole| !known || *hole > then);
        if let Some(hole) = hole {
            self.holes.remove(&hole);
            self.marks.clear(index(hole));
        }
        match (known, hole) {
            (true, Some(_)) => {
                self.holes.insert(then);
            }
            (true, None) => self.marks.clear(index(then)),
            (false, _) => {}
        }
        self.marks.set(index(now));
        distance
    }

    /// Drops a page; its slot stays, empty.
    pub(super) fn trim(&mut self, page: u32) {
        let then = std::mem::replace(&mut self.positions[index(page)], NONE);
        if then != NONE {
            self.holes.insert(then);
        }
    }

    /// Makes room for one more page; its number.
    pub(super) fn add_page(&mut self) -> u32 {
        self.positions.push(NONE);
        u32_from(self.positions.len() - 1)
    }

    /// Forgets a page with its slot, as if no request had ever touched it. A page that was trimmed
    /// takes a hole along, if there is one.
    pub(super) fn forget(&mut self, page: u32) {
        let then = std::mem::replace(&mut self.positions[index(page)], NONE);
        let slot = if then == NONE { self.holes.pop_last() } else { Some(then) };
        if let Some(slot) = slot {
            self.marks.clear(index(slot));
        }
    }

    /// Moves everything to the lowest positions, and makes at least as many again.
    fn renumber(&mut self) {
        let mut holes = BTreeSet::new();
        let mut count = 0;
        for at in 0..self.now {
            let page = self.pages[index(at)];
            if self.positions[index(page)] == at {
                self.positions[index(page)] = count;
                self.pages[index(count)] = page;
            } else if self.holes.contains(&at) {
                holes.insert(count);
                // The page there is elsewhere or nowhere: it cannot agree with the new position.
                self.pages[index(count)] = page;
            } else {
                continue;
            }
            count += 1;
        }
        self.holes = holes;
        self.now = count;
        let positions = (2 * index(count)).max(POSITIONS_LEAST);
        self.pages.resize(positions, 0);
        self.marks = Marks::full(index(count), positions);
    }
}
