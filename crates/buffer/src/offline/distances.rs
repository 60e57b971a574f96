//! Stack distances of LRU.

use onefold_units::convert::{index, index64};

use super::stack::Stack;
use super::{Request, Use};

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
