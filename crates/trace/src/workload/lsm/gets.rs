//! Point reads of the store.

use std::collections::VecDeque;

use onefold_units::Rng;
use onefold_units::convert::{float, floor_u64, index64, narrow, u64_from};

use super::space::{Extent, part};
use super::spec::{GetSize, Lsm};
use super::tree::{File, KEYS, Tree};
use crate::workload::{Scatter, Zipf};

/// Bytes of a record of YCSB: as many keys are popular as the full store has records.
const RECORD_BYTES: u64 = 1000;

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
    /// Popularity of records, where in the key space they are, and how many; `None`: all alike.
    popular: Option<(Zipf, Scatter, u64)>,
    /// Whether the levels above the one with the key are read as well.
    cascades: bool,
    /// Reads of the running get, in order.
    path: VecDeque<Extent>,
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
            popular: spec.zipf.and_then(|theta| {
                let records = (spec.full_at() / RECORD_BYTES).max(1);
                Some((Zipf::new(records, theta)?, Scatter::new(records, 0), records))
            }),
            cascades: spec.cascade,
            path: VecDeque::new(),
        }
    }

    /// A new memtable: counts from 0 again.
    pub(super) const fn restart(&mut self) {
        self.done = 0;
    }

    /// Files were deleted: what was read may be gone.
    pub(super) fn forget(&mut self) {
        self.recent.clear();
        self.path.clear();
    }

    /// The next read, while fewer gets than `due` have been made. `None` also without files.
    pub(super) fn next(&mut self, due: u64, tree: &Tree) -> Option<Extent> {
        if let Some(next) = self.path.pop_front() {
            return Some(next);
        }
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
        self.path.push_back(get);
        self.path.pop_front()
    }

    /// Chooses a get. What is read on the way to it is in the path then.
    fn choose(&mut self, tree: &Tree) -> Option<Extent> {
        let pages = self.size();
        let level = tree.choose_level(&mut self.rng)?;
        let files = tree.level(level);
        let key = self.popular_key();
        let at = match key {
            None => index64(self.rng.below(u64_from(files.len()))),
            // Files of level 0 have all keys.
            Some(_) if level == 0 => index64(self.rng.below(u64_from(files.len()))),
            // Where no file has the key it is not in the store: the next one answers.
            Some(key) => tree.covering(level, key).unwrap_or(0),
        };
        let file = files.get(at)?;
        let pages = pages.min(file.pages);
        let first = match key {
            None => narrow(self.rng.below(u64::from(file.pages - pages) + 1)),
            Some(key) => place(file, key).min(file.pages - pages),
        };
        if self.cascades {
            let key = key.unwrap_or_else(|| key_at(file, first));
            self.pass(tree, key, (level, at));
        }
        // A get that crosses a border of extents reads up to it.
        part(&file.extents, first, pages).next()
    }

    /// A key by its popularity, hashed over all keys as YCSB does.
    fn popular_key(&mut self) -> Option<u64> {
        let (zipf, scatter, records) = self.popular.as_ref()?;
        let record = scatter.apply(zipf.rank(&mut self.rng));
        Some(floor_u64(float(record) / float(*records) * float(KEYS)))
    }

    /// Reads the block in which a key would be of every file that may have it and is newer than the one that has it (Jeong 2021,
    /// fig. 2): a store without filters.
    fn pass(&mut self, tree: &Tree, key: u64, (level, at): (usize, usize)) {
        let newest = tree.level(0).iter().rev();
        let passed = if level == 0 { tree.level(0).len() - 1 - at } else { usize::MAX };
        let deeper =
            (1..level).filter_map(|level| tree.level(level).get(tree.covering(level, key)?));
        for file in newest.take(passed).chain(deeper) {
            self.path.extend(part(&file.extents, place(file, key), 1).next());
        }
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

/// The page of a file in which a key is, or would be: data lie evenly between its bounds.
fn place(file: &File, key: u64) -> u32 {
    let width = file.keys.end - file.keys.start;
    let share = float(key.saturating_sub(file.keys.start)) / float(width.max(1));
    narrow(floor_u64(share * float(u64::from(file.pages))).min(u64::from(file.pages) - 1))
}

/// A key of a page of a file.
fn key_at(file: &File, page: u32) -> u64 {
    let width = file.keys.end - file.keys.start;
    let share = (float(u64::from(page)) + 0.5) / float(u64::from(file.pages));
    file.keys.start + floor_u64(share * float(width))
}
