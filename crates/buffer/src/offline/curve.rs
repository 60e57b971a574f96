//! Miss ratios of LRU over the size of the buffer, for streams that are too long to keep.
//!
//! A page is in the sample if its hash is below a threshold, and the share of hashes below it is the
//! rate. Distances between sampled pages, divided by the rate, estimate distances between all pages
//! (SHARDS: Waldspurger, Park, Garthwaite, Ahmad, "Efficient MRC Construction with SHARDS", FAST
//! 2015). [`Sampling::Pages`] lowers the threshold whenever the sample has one page too many.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use onefold_units::Rng;
use onefold_units::convert::{float, floor_u64, index, u64_from};

use super::stack::Stack;
use crate::Access;

/// Hashes of pages are below this.
const HASHES: u64 = 1 << 52;

/// Which pages a curve is computed from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampling {
    /// All pages: the curve is exact. Memory grows with the distinct pages, about 60 B each.
    All,
    /// A share of all pages, from 0 to 1. Memory grows with the distinct pages in the sample.
    Rate(f64),
    /// At most so many pages, whatever the stream touches: constant memory.
    Pages(NonZeroU32),
}

/// Share of accesses that miss in a buffer of one size; `None` where there is no such access.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MissRatios {
    /// Pages in the buffer.
    pub pages: u64,
    /// Misses of reads / pages read.
    pub reads: Option<f64>,
    /// Misses of writes / pages written.
    pub writes: Option<f64>,
    /// Misses / pages accessed.
    pub all: Option<f64>,
}

/// Miss ratios of LRU buffers of several sizes in one pass: O(log n) per page for n pages in the
/// sample.
///
/// Reads and writes share the buffer, and both enter the pages that they miss. A trim empties the
/// slots of its pages and is neither a hit nor a miss.
///
/// ```
/// use onefold_buffer::offline::{LruCurve, Sampling};
///
/// let mut curve = LruCurve::new(vec![1, 2], Sampling::All, 0);
/// curve.write(0, 2); // pages 0 and 1
/// curve.read(0, 2);
/// let reads: Vec<_> = curve.miss_ratios().map(|at| (at.pages, at.reads)).collect();
/// assert_eq!(reads, [(1, Some(1.0)), (2, Some(0.0))]);
/// ```
#[derive(Clone, Debug)]
pub struct LruCurve {
    sizes: Vec<u64>,
    sampling: Sampling,
    seed: u64,
    /// Pages with a hash below this are in the sample.
    threshold: u64,
    /// Number of each page of the sample in the stack.
    numbers: BTreeMap<u64, u32>,
    /// Numbers of pages that left the sample.
    unused: Vec<u32>,
    /// Pages of the sample by hash, where the sample is bounded.
    by_hash: BTreeSet<(u64, u64)>,
    stack: Stack,
    reads: Hits,
    writes: Hits,
}

/// Hits of one kind of access.
#[derive(Clone, Debug, Default)]
struct Hits {
    /// Accesses of all pages.
    accesses: u64,
    /// Accesses of pages in the sample, at today's rate.
    sampled: f64,
    /// Those that hit from this size on, but not at the size before.
    first_at: Vec<f64>,
}

impl LruCurve {
    /// A curve at `sizes`, in pages and any order. `seed` chooses the sample.
    #[must_use]
    pub fn new(mut sizes: Vec<u64>, sampling: Sampling, seed: u64) -> Self {
        sizes.sort_unstable();
        sizes.dedup();
        let threshold = match sampling {
            Sampling::Rate(rate) => floor_u64(rate.clamp(0.0, 1.0) * float(HASHES)).max(1),
            Sampling::All | Sampling::Pages(_) => HASHES,
        };
        let none = Hits { first_at: vec![0.0; sizes.len()], ..Hits::default() };
        Self {
            sizes,
            sampling,
            seed,
            threshold,
            numbers: BTreeMap::new(),
            unused: Vec::new(),
            by_hash: BTreeSet::new(),
            stack: Stack::new(0),
            reads: none.clone(),
            writes: none,
        }
    }

    /// Reads `n` pages from `first` on.
    pub fn read(&mut self, first: u64, n: u64) {
        self.access(Access::Read, first, n);
    }

    /// Writes `n` pages from `first` on.
    pub fn write(&mut self, first: u64, n: u64) {
        self.access(Access::Write, first, n);
    }

    /// Drops `n` pages from `first` on.
    pub fn trim(&mut self, first: u64, n: u64) {
        for number in self.numbers.range(first..first.saturating_add(n)).map(|(_, number)| number) {
            self.stack.trim(*number);
        }
    }

    /// The share of all pages that is in the sample, at the end of what was seen so far.
    #[must_use]
    pub fn rate(&self) -> f64 {
        float(self.threshold) / float(HASHES)
    }

    /// Distinct pages in the sample.
    #[must_use]
    pub fn sampled_pages(&self) -> u64 {
        u64_from(self.numbers.len())
    }

    /// Distinct pages that reads and writes touched; an estimate where pages are sampled.
    #[must_use]
    pub fn distinct_pages(&self) -> u64 {
        floor_u64(float(self.sampled_pages()) / self.rate() + 0.5)
    }

    /// Pages accessed, with multiplicity: all of them, sampled or not.
    #[must_use]
    pub const fn accesses(&self, kind: Access) -> u64 {
        match kind {
            Access::Read => self.reads.accesses,
            Access::Write => self.writes.accesses,
        }
    }

    /// The curve, from the smallest size on.
    pub fn miss_ratios(&self) -> impl Iterator<Item = MissRatios> {
        let rate = self.rate();
        let (reads, writes) = (self.reads.ratios(rate), self.writes.ratios(rate));
        self.sizes.iter().zip(reads).zip(writes).map(|((pages, reads), writes)| MissRatios {
            pages: *pages,
            reads: reads.map(|hits| 1.0 - hits),
            writes: writes.map(|hits| 1.0 - hits),
            all: self.misses(reads, writes),
        })
    }

    /// Misses of both kinds, each weighted by its accesses. A kind without any has no ratio.
    fn misses(&self, reads: Option<f64>, writes: Option<f64>) -> Option<f64> {
        let accesses = self.reads.accesses + self.writes.accesses;
        let hits = reads.unwrap_or(0.0) * float(self.reads.accesses)
            + writes.unwrap_or(0.0) * float(self.writes.accesses);
        (reads.is_some() || writes.is_some()).then(|| 1.0 - hits / float(accesses))
    }

    fn access(&mut self, kind: Access, first: u64, n: u64) {
        for page in first..first.saturating_add(n) {
            match kind {
                Access::Read => self.reads.accesses += 1,
                Access::Write => self.writes.accesses += 1,
            }
            let Some(number) = self.number(page) else { continue };
            let distance = self.stack.access(number);
            let slots = distance.map(|others| 1 + floor_u64(f64::from(others) / self.rate()));
            let at = slots.map(|slots| self.sizes.partition_point(|size| *size < slots));
            match kind {
                Access::Read => self.reads.add(at),
                Access::Write => self.writes.add(at),
            }
        }
    }

    /// The number in the stack of a page, if the page is in the sample.
    fn number(&mut self, page: u64) -> Option<u32> {
        let hash = match self.sampling {
            Sampling::All => 0,
            Sampling::Rate(_) | Sampling::Pages(_) => Rng::fork(self.seed, page).below(HASHES),
        };
        if hash >= self.threshold {
            return None;
        }
        if let Some(number) = self.numbers.get(&page) {
            return Some(*number);
        }
        if let Sampling::Pages(most) = self.sampling {
            if self.numbers.len() >= index(most.get()) {
                self.make_room(hash);
            }
            if hash >= self.threshold {
                return None;
            }
            self.by_hash.insert((hash, page));
        }
        let number = self.unused.pop().unwrap_or_else(|| self.stack.add_page());
        self.numbers.insert(page, number);
        Some(number)
    }

    /// Lowers the threshold to the highest hash of the sample and a newcomer. Pages from there on
    /// leave the sample, and what was counted is scaled to the new rate.
    fn make_room(&mut self, newcomer: u64) {
        let highest = self.by_hash.last().map_or(0, |(hash, _)| *hash);
        let threshold = highest.max(newcomer).max(1);
        for (_, page) in self.by_hash.split_off(&(threshold, 0)) {
            if let Some(number) = self.numbers.remove(&page) {
                self.stack.forget(number);
                self.unused.push(number);
            }
        }
        let scale = float(threshold) / float(self.threshold);
        self.reads.scale(scale);
        self.writes.scale(scale);
        self.threshold = threshold;
    }
}

impl Hits {
    /// Counts an access in the sample that hits from size number `at` on.
    fn add(&mut self, at: Option<usize>) {
        self.sampled += 1.0;
        if let Some(hits) = at.and_then(|at| self.first_at.get_mut(at)) {
            *hits += 1.0;
        }
    }

    /// Hit ratio by size. The sample may have more or fewer accesses than its rate says, by pages
    /// that are accessed often: the difference counts as hits at every size (`SHARDS_adj`, sec. 3.2).
    fn ratios(&self, rate: f64) -> Vec<Option<f64>> {
        let expected = float(self.accesses) * rate;
        let mut hits = expected - self.sampled;
        let ratio = |first_at: &f64| {
            hits += first_at;
            (self.sampled > 0.0).then(|| (hits / expected).clamp(0.0, 1.0))
        };
        self.first_at.iter().map(ratio).collect()
    }

    fn scale(&mut self, by: f64) {
        self.sampled *= by;
        for hits in &mut self.first_at {
            *hits *= by;
        }
    }
}
