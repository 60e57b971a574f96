//! Point reads of the store.

use std::collections::VecDeque;

use onefold_units::Rng;
use onefold_units::convert::{index64, narrow, u64_from};

use super::space::{Extent, part};
use super::spec::{GetSize, Lsm};
use super::tree::Tree;

/// Chooses point reads: mostly new ones, some as one of the last.
#[derive(Clone, Debug)]
pub(super) struct Gets {
    rng: Rng,
    sizes: Vec<GetSize>,
    weights: u64,
    repeat: f64,
    /// The last gets, oldest first.
    recent: VecDeque<Extent>,
    capacity: usize,
    /// Gets since the log was opened.
    done: u64,
}

impl Gets {
    pub(super) fn new(spec: &Lsm, rng: Rng) -> Self {
        Self {
            rng,
            sizes: spec.get_pages.clone(),
            weights: spec.get_pages.iter().map(|size| u64::from(size.weight)).sum(),
            repeat: spec.repeat,
            recent: VecDeque::new(),
            capacity: index64(spec.recent),
            done: 0,
        }
    }

    /// A new memtable: counts from 0 again.
    pub(super) const fn restart(&mut self) {
        self.done = 0;
    }

    /// Files were deleted: what was read may be gone.
    pub(super) fn forget(&mut self) {
        self.recent.clear();
    }

    /// The next get, while fewer than `due` have been made. `None` also without files.
    pub(super) fn next(&mut self, due: u64, tree: &Tree) -> Option<Extent> {
        if self.done >= due {
            return None;
        }
        let repeats = self.repeat > 0.0 && self.rng.unit() < self.repeat;
        let get = match self.recent.len() {
            known if repeats && known > 0 => self.recent[index64(self.rng.below(u64_from(known)))],
            _ => self.choose(tree)?,
        };
        self.done += 1;
        if self.recent.len() >= self.capacity {
            self.recent.pop_front();
        }
        self.recent.push_back(get);
        Some(get)
    }

    fn choose(&mut self, tree: &Tree) -> Option<Extent> {
        let pages = self.size();
        let file = tree.choose(&mut self.rng)?;
        let pages = pages.min(file.pages);
        let at = narrow(self.rng.below(u64::from(file.pages - pages) + 1));
        // A get that crosses a border of extents reads up to it.
        part(&file.extents, at, pages).next()
    }

    fn size(&mut self) -> u32 {
        let mut draw = self.rng.below(self.weights);
        for size in &self.sizes {
            let weight = u64::from(size.weight);
            if draw < weight {
                return size.from + narrow(self.rng.below(u64::from(size.to - size.from) + 1));
            }
            draw -= weight;
        }
        1
    }
}
