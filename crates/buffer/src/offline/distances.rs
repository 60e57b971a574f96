//! Stack distances of LRU.

use std::collections::BTreeSet;

use onefold_units::convert::{index, index64};

use super::fenwick::Marks;
use super::{Request, Use};

/// No position.
const NONE: u32 = u32::MAX;

/// Positions of a new stack.
const POSITIONS_LEAST: usize = 1024;

/// Hits of LRU buffers of every size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distances {
    /// By number of slots, up to the size from which on nothing changes.
    reads: Vec<u64>,
    writes: Vec<u64>,
}

impl Distances {
    /// Read pages that hit in a buffer of `slots` entries.
    #[must_use]
    pub fn read_hits(&self, slots: u32) -> u64 {
        at_most(&self.reads, slots)
    }

    /// Written pages that hit in a buffer of `slots` entries.
    #[must_use]
    pub fn write_hits(&self, slots: u32) -> u64 {
        at_most(&self.writes, slots)
    }
}

fn at_most(hits: &[u64], slots: u32) -> u64 {
    hits.get(index(slots)).or_else(|| hits.last()).copied().unwrap_or(0)
}

/// The hits of LRU at every size in one pass: an access hits in buffers that are larger than its
/// distance from the top of the LRU stack (Mattson, Gecsei, Slutz, Traiger 1970).
///
/// Takes O(log n) per page for n distinct pages, and memory for the highest page touched.
#[must_use]
pub fn stack_distances(requests: &[Request]) -> Distances {
    let pages = requests.iter().filter(|r| r.kind().is_some()).map(|r| r.end()).max();
    let mut stack = Stack::new(index64(pages.unwrap_or(0)));
    let (mut reads, mut writes) = (vec![0], vec![0]);
    for r in requests {
        let Some(kind) = r.kind() else { continue };
        for page in (0..r.pages()).map(|at| r.lpn + at) {
            match kind {
                Use::Read => count(&mut reads, stack.access(page)),
                Use::Write => count(&mut writes, stack.access(page)),
                Use::Trim => stack.trim(page),
            }
        }
    }
    Distances { reads: sums(reads), writes: sums(writes) }
}

/// An access at a distance needs one slot more than that.
fn count(hits: &mut Vec<u64>, distance: Option<u32>) {
    let Some(distance) = distance else { return };
    let slots = index(distance) + 1;
    if hits.len() <= slots {
        hits.resize(slots + 1, 0);
    }
    hits[slots] += 1;
}

fn sums(mut hits: Vec<u64>) -> Vec<u64> {
    let mut sum = 0;
    for hits in &mut hits {
        sum += *hits;
        *hits = sum;
    }
    hits
}

/// The LRU stack: positions ascend with time, and a mark stands for a slot.
///
/// A TRIM leaves a hole: a slot that is free in buffers so large that they had the page. The next
/// page that enters a buffer fills its newest hole, and all slots below stay as they are.
struct Stack {
    /// Position of each page.
    positions: Vec<u32>,
    /// Page at each position; meaningful where `positions` agrees.
    pages: Vec<u32>,
    marks: Marks,
    holes: BTreeSet<u32>,
    now: u32,
}

impl Stack {
    fn new(pages: usize) -> Self {
        Self {
            positions: vec![NONE; pages],
            pages: vec![0; POSITIONS_LEAST],
            marks: Marks::new(POSITIONS_LEAST),
            holes: BTreeSet::new(),
            now: 0,
        }
    }

    /// Puts a page on top; its distance from there, if it was in the stack.
    fn access(&mut self, page: u32) -> Option<u32> {
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

    fn trim(&mut self, page: u32) {
        let then = std::mem::replace(&mut self.positions[index(page)], NONE);
        if then != NONE {
            self.holes.insert(then);
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
