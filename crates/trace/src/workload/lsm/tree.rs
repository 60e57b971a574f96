//! The shape of a log-structured merge tree: which files there are and what is merged next.
//!
//! Keys are numbers in `0..KEYS`, hashed keys of the store, so data lie evenly between the bounds of
//! a file. The tree knows sizes and bounds, never I/O.
//!
//! Terms: level 0 holds flushed memtables, each over all keys, oldest first. Levels 1 and deeper
//! hold files in key order.
//!
//! Invariants:
//! 1. The files of a level from 1 on do not overlap in keys.
//! 2. A merge takes all of the deeper level that overlaps, so it can put its outputs there.

use std::ops::Range;

use onefold_units::Rng;
use onefold_units::convert::{float, floor_u64, narrow};

use super::space::Extent;

/// Number of keys.
pub(super) const KEYS: u64 = 1 << 32;
/// More levels than any size of device fills: ten times more each.
const MAX_LEVELS: usize = 16;

/// A sorted file on the device.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// First key, and first key after it.
    pub(super) keys: Range<u64>,
    pub(super) pages: u32,
    /// Traffic of the device when it was written, in pages.
    pub(super) born: u64,
    pub(super) extents: Vec<Extent>,
}

/// What decides when to merge and what comes out.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// Pages of a file.
    pub(super) file: u32,
    /// An output is up to that many pages shorter.
    pub(super) shorten: u32,
    /// Files of level 0 that start a merge.
    pub(super) trigger: usize,
    /// Pages of level 1, and how many times more each deeper level holds.
    pub(super) first_level: u64,
    pub(super) fanout: u64,
}

/// A merge: the inputs have left the tree, the outputs are not yet in it.
#[derive(Clone, Debug)]
pub(super) struct Compaction {
    /// Of the upper level, then of the deeper one, in key order each.
    pub(super) inputs: Vec<File>,
    /// Keys and pages of each output, in key order.
    pub(super) outputs: Vec<(Range<u64>, u32)>,
    /// Where the outputs go.
    pub(super) level: usize,
    /// Position within that level.
    at: usize,
}

/// The levels.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    shape: Shape,
    levels: Vec<Vec<File>>,
    /// Pages of each level.
    sizes: Vec<u64>,
    /// The key at which each level goes on choosing files.
    next_key: Vec<u64>,
}

impl Tree {
    pub(super) fn new(shape: Shape) -> Self {
        Self { shape, levels: vec![Vec::new(); 2], sizes: vec![0; 2], next_key: vec![0; 2] }
    }

    /// Pages of all files.
    pub(super) fn pages(&self) -> u64 {
        self.sizes.iter().sum()
    }

    #[cfg(test)]
    pub(super) fn files(&self) -> impl Iterator<Item = &File> {
        self.levels.iter().flatten()
    }

    /// A flushed memtable.
    pub(super) fn push(&mut self, file: File) {
        self.sizes[0] += u64::from(file.pages);
        self.levels[0].push(file);
    }

    /// The level in which a point read finds its key, by size. `None` without files.
    pub(super) fn choose_level(&self, rng: &mut Rng) -> Option<usize> {
        let mut page = rng.below(self.pages());
        for (level, size) in self.sizes.iter().enumerate() {
            if page < *size {
                return Some(level);
            }
            page -= size;
        }
        None
    }

    /// The files of a level.
    pub(super) fn level(&self, level: usize) -> &[File] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// The file of a level that has a key; of level 0, whose files have all keys, the newest.
    pub(super) fn covering(&self, level: usize, key: u64) -> Option<usize> {
        let files = self.level(level);
        if level == 0 {
            return files.len().checked_sub(1);
        }
        let at = files.partition_point(|file| file.keys.end <= key);
        files.get(at).is_some_and(|file| file.keys.start <= key).then_some(at)
    }

    /// The next merge: level 0 as soon as it has enough files, else the first level above its size.
    /// Of the data that reach the last level only the share `new_share` is new, the rest replaces
    /// old data. `None` if all levels are within their sizes.
    pub(super) fn compaction(&mut self, new_share: f64, rng: &mut Rng) -> Option<Compaction> {
        if self.levels[0].len() >= self.shape.trigger {
            let upper: Vec<File> = self.levels[0].drain(..).collect();
            return Some(self.merge(0, upper, 0..self.levels[1].len(), new_share, rng));
        }
        let level = (1..self.levels.len().min(MAX_LEVELS - 1))
            .find(|level| self.sizes[*level] > self.limit(*level))?;
        if level + 1 == self.levels.len() {
            self.levels.push(Vec::new());
            self.sizes.push(0);
            self.next_key.push(0);
        }
        let file = self.take_next(level);
        let deeper = &self.levels[level + 1];
        let start = deeper.partition_point(|other| other.keys.end <= file.keys.start);
        let end = deeper.partition_point(|other| other.keys.start < file.keys.end);
        Some(self.merge(level, vec![file], start..end, new_share, rng))
    }

    /// Puts the outputs of a merge in its level.
    pub(super) fn install(&mut self, compaction: &Compaction, files: Vec<File>) {
        let pages: u64 = files.iter().map(|file| u64::from(file.pages)).sum();
        self.sizes[compaction.level] += pages;
        self.levels[compaction.level].splice(compaction.at..compaction.at, files);
    }

    fn limit(&self, level: usize) -> u64 {
        let steps = u32::try_from(level - 1).unwrap_or(u32::MAX);
        self.shape.first_level.saturating_mul(self.shape.fanout.saturating_pow(steps))
    }

    /// The first file at or after the key where the level goes on, or its first.
    fn take_next(&mut self, level: usize) -> File {
        let files = &mut self.levels[level];
        let at = files.partition_point(|file| file.keys.start < self.next_key[level]);
        let file = files.remove(if at < files.len() { at } else { 0 });
        self.next_key[level] = file.keys.end;
        self.sizes[level] -= u64::from(file.pages);
        file
    }

    fn merge(
        &mut self,
        upper_level: usize,
        mut inputs: Vec<File>,
        overlap: Range<usize>,
        new_share: f64,
        rng: &mut Rng,
    ) -> Compaction {
        let level = upper_level + 1;
        if upper_level == 0 {
            self.sizes[0] = 0;
        }
        let sum = |files: &[File]| files.iter().map(|file| u64::from(file.pages)).sum::<u64>();
        let (new, at) = (sum(&inputs), overlap.start);
        let upper = inputs.len();
        inputs.extend(self.levels[level].drain(overlap));
        let old = sum(&inputs[upper..]);
        self.sizes[level] -= old;
        // Where there are no old data, there is nothing to replace.
        let replaces = level + 1 == self.levels.len() && old > 0;
        let kept = if replaces { floor_u64(float(new) * new_share) } else { new };
        let first = inputs.iter().map(|file| file.keys.start).min().unwrap_or(0);
        let end = inputs.iter().map(|file| file.keys.end).max().unwrap_or(KEYS);
        let keys = first..end;
        let outputs = self.cut(&keys, old + kept, rng);
        Compaction { inputs, outputs, level, at }
    }

    /// Cuts merged data into as many files as full ones would take, of equal shares. Each loses up
    /// to `shorten` pages: a merge drops entries and repacks blocks, and this is what keeps the
    /// write amplification of a load at the calibrated value.
    fn cut(&self, keys: &Range<u64>, pages: u64, rng: &mut Rng) -> Vec<(Range<u64>, u32)> {
        let files = pages.div_ceil(u64::from(self.shape.file));
        let width = keys.end - keys.start;
        let bound = |at: u64| keys.start + floor_u64(float(width) * float(at) / float(files));
        let mut outputs = Vec::new();
        for at in 0..files {
            let full = pages * (at + 1) / files - pages * at / files;
            let short = rng.below(u64::from(self.shape.shorten) + 1).min(full - 1);
            outputs.push((bound(at)..bound(at + 1), narrow(full - short)));
        }
        outputs
    }
}

#[cfg(test)]
mod tests {
    use super::{File, KEYS, Shape, Tree};
    use onefold_units::Rng;

    /// Invariant 1 and the sizes of the levels, after every merge of a long load.
    #[test]
    fn levels_stay_sorted_and_within_their_sizes() {
        let shape = Shape { file: 256, shorten: 4, trigger: 4, first_level: 1024, fanout: 4 };
        let mut tree = Tree::new(shape);
        let mut rng = Rng::new(11);
        let (mut merges, mut widest) = (0, 0);
        for _ in 0..1000 {
            tree.push(File { keys: 0..KEYS, pages: 256, born: 0, extents: Vec::new() });
            while let Some(compaction) = tree.compaction(1.0, &mut rng) {
                merges += 1;
                widest = widest.max(compaction.inputs.len());
                let outputs = compaction.outputs.iter().cloned();
                let file = |(keys, pages)| File { keys, pages, born: 0, extents: Vec::new() };
                tree.install(&compaction, outputs.map(file).collect());
                for (level, files) in tree.levels.iter().enumerate().skip(1) {
                    let sorted = files.windows(2).all(|it| it[0].keys.end <= it[1].keys.start);
                    assert!(sorted, "level {level} after {merges} merges");
                    assert!(files.iter().all(|file| !file.keys.is_empty() && file.pages <= 256));
                    let pages: u64 = files.iter().map(|file| u64::from(file.pages)).sum();
                    assert_eq!(pages, tree.sizes[level]);
                }
            }
            assert!((1..tree.levels.len()).all(|level| tree.sizes[level] <= tree.limit(level)));
        }
        assert!(tree.levels.len() > 4 && merges > 1000, "{} levels", tree.levels.len());
        assert!(tree.pages() > 256 * 1000 * 8 / 10, "{} pages are left", tree.pages());
        assert!((4..20).contains(&widest), "{widest} inputs");
    }
}
