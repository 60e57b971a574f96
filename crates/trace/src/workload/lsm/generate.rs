//! The requests of the store.
//!
//! The life of a memtable: its log is written in bursts, with the gets in between; then it is
//! flushed to a file of level 0 and its log deleted; then merges run until every level is within
//! its size. A plan of one such step is a queue of runs of pages, and requests are cut from its
//! front, so memory grows with the number of files and never with their pages.

use std::collections::VecDeque;

use onefold_units::convert::{index64, narrow};
use onefold_units::{Op, Rng};

use super::log::{Journal, Wal};
use super::space::{Extent, Space};
use super::spec::{Discard, GetSize, Lsm};
use super::tree::{Compaction, File, KEYS, Shape, Tree};
use crate::workload::Request;
use crate::workload::page_request::{PAGE_BYTES, PageRequest, PageSource, fill_requests, pages_of};

/// The streams of one seed, one per kind of decision.
mod stream {
    pub(super) const WAL: u64 = 1;
    pub(super) const FILES: u64 = 2;
    pub(super) const CACHE: u64 = 3;
    pub(super) const GETS: u64 = 4;
    pub(super) const METADATA: u64 = 5;
}

/// What has been produced since the end of the warm-up, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LsmTotals {
    /// What the user put or updated.
    pub user_bytes: u64,
    /// Read by merges and gets.
    pub read_bytes: u64,
    /// Written to files, log, journal and metadata.
    pub write_bytes: u64,
    /// Trimmed.
    pub trim_bytes: u64,
}

/// Consecutive pages of one operation.
#[derive(Clone, Copy, Debug)]
struct Run {
    op: Op,
    extent: Extent,
}

/// What the next plan is about.
#[derive(Clone, Copy, Debug)]
enum Step {
    Log,
    Flush,
    Compact,
    /// The space is full, which the check of the specification excludes.
    Over,
}

/// Produces the requests of an [`Lsm`] workload.
#[derive(Clone, Debug)]
pub struct LsmGenerator {
    spec: Lsm,
    max_req: u32,
    queue: VecDeque<Run>,
    step: Step,
    space: Space,
    tree: Tree,
    journal: Journal,
    wal: Option<Wal>,
    gets: Gets,
    /// Deleted but not yet trimmed, with their pages.
    waiting: Vec<Extent>,
    waiting_pages: u64,
    wal_rng: Rng,
    file_rng: Rng,
    cache_rng: Rng,
    /// Pages read and written by all plans so far: the clock of the host's cache.
    traffic: u64,
    user_pages: u64,
    warming: bool,
    /// Pages to read and write after the warm-up.
    left: u64,
    totals: LsmTotals,
}

/// Point reads.
#[derive(Clone, Debug)]
struct Gets {
    rng: Rng,
    weights: u64,
    /// Since the log was opened.
    done: u64,
    recent: VecDeque<Extent>,
}

impl LsmGenerator {
    pub(super) fn new(spec: &Lsm, seed: u64) -> Self {
        let hot = Extent { start: 0, pages: narrow(spec.hot_pages) };
        let journal = Extent { start: hot.pages, pages: narrow(spec.journal) };
        let align = pages_of(spec.align);
        let end = pages_of(spec.space) / align * align;
        let shape = Shape {
            file: pages_of(spec.file),
            shorten: narrow(spec.shorten),
            trigger: index64(spec.l0_trigger),
            first_level: u64::from(pages_of(spec.l1)),
            fanout: spec.fanout,
        };
        Self {
            max_req: pages_of(spec.max_req),
            queue: VecDeque::new(),
            step: Step::Log,
            space: Space::new(pages_of(spec.reserved()), end, align),
            tree: Tree::new(shape),
            journal: Journal::new(journal, hot, Rng::fork(seed, stream::METADATA)),
            wal: None,
            gets: Gets {
                rng: Rng::fork(seed, stream::GETS),
                weights: spec.get_pages.iter().map(|size| u64::from(size.weight)).sum(),
                done: 0,
                recent: VecDeque::new(),
            },
            waiting: Vec::new(),
            waiting_pages: 0,
            wal_rng: Rng::fork(seed, stream::WAL),
            file_rng: Rng::fork(seed, stream::FILES),
            cache_rng: Rng::fork(seed, stream::CACHE),
            traffic: 0,
            user_pages: 0,
            warming: spec.warmup > 0,
            left: spec.bytes / u64::from(PAGE_BYTES),
            totals: LsmTotals::default(),
            spec: spec.clone(),
        }
    }

    /// Fills `out` from its start and returns how many requests it wrote. Fewer than asked means
    /// the end of the workload. The warm-up comes first, without a border.
    pub fn fill(&mut self, out: &mut [Request]) -> usize {
        fill_requests(self, out)
    }

    /// What has been produced since the end of the warm-up.
    #[must_use]
    pub const fn totals(&self) -> LsmTotals {
        self.totals
    }

    /// Bytes of all files of the tree.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.tree.pages() * u64::from(PAGE_BYTES)
    }

    /// Where everything that has not been deleted lies.
    #[cfg(test)]
    pub(super) fn all_extents(&self) -> Vec<Extent> {
        let files = self.tree.files().flat_map(|file| file.extents.clone());
        files.chain(self.wal.iter().flat_map(|wal| wal.extents.clone())).collect()
    }

    fn fill_until(&mut self, out: &mut [PageRequest], stops_warm: bool) -> usize {
        let mut filled = 0;
        while filled < out.len() {
            if self.left == 0 || (stops_warm && !self.warming) {
                break;
            }
            let Some(run) = self.queue.front_mut() else {
                if !self.plan() {
                    break;
                }
                continue;
            };
            let most = if run.op == Op::Trim { pages_of(self.spec.trim_max) } else { self.max_req };
            let n = run.extent.pages.min(most);
            out[filled] = PageRequest { lpn: run.extent.start, n, op: run.op, tenant: 0 };
            run.extent.start += n;
            run.extent.pages -= n;
            if run.extent.pages == 0 {
                self.queue.pop_front();
            }
            if !self.warming {
                self.count(&out[filled]);
            }
            filled += 1;
        }
        filled
    }

    fn count(&mut self, request: &PageRequest) {
        self.left = self.left.saturating_sub(u64::from(request.traffic_pages()));
        let bytes = u64::from(request.n) * u64::from(PAGE_BYTES);
        match request.op {
            Op::Read => self.totals.read_bytes += bytes,
            Op::Trim => self.totals.trim_bytes += bytes,
            _ => self.totals.write_bytes += bytes,
        }
    }

    /// Plans the next step; the queue is empty. False if there is none.
    fn plan(&mut self) -> bool {
        let next = match self.step {
            Step::Log => self.plan_log(),
            Step::Flush => self.plan_flush(),
            Step::Compact => self.plan_compaction(),
            Step::Over => None,
        };
        self.step = next.unwrap_or(Step::Over);
        next.is_some()
    }

    fn plan_log(&mut self) -> Option<Step> {
        if self.wal.is_none() {
            let pages = pages_of(self.spec.memtable);
            let extents = self.space.allocate(pages)?;
            self.wal = Some(Wal::new(extents, pages));
            self.commit(self.spec.commit_file);
        }
        let (from, to) = self.spec.wal_burst;
        let burst = from + narrow(self.wal_rng.below(u64::from(to - from) + 1));
        let wal = self.wal.as_mut()?;
        let (first, count, added) = wal.append(burst);
        let (due, full) = (wal.logged(self.spec.gets), wal.is_full());
        let extents = wal.extents.clone();
        self.user_pages += u64::from(added);
        if !self.warming {
            self.totals.user_bytes += u64::from(added) * u64::from(PAGE_BYTES);
        }
        for extent in part(&extents, first, count) {
            self.push(Op::Write, extent);
        }
        if !self.warming {
            self.plan_gets(due);
        }
        Some(if full { Step::Flush } else { Step::Log })
    }

    /// Gets up to the number that is due for the part of the memtable that is logged.
    fn plan_gets(&mut self, due: u64) {
        while self.gets.done < due {
            self.gets.done += 1;
            let gets = &mut self.gets;
            let known = gets.recent.len();
            let repeats = self.spec.repeat > 0.0 && gets.rng.unit() < self.spec.repeat;
            let get = if repeats && known > 0 {
                gets.recent[index64(gets.rng.below(u64::try_from(known).unwrap_or(0)))]
            } else {
                let pages = draw_size(&self.spec.get_pages, gets.weights, &mut gets.rng);
                let Some(file) = self.tree.choose(&mut gets.rng) else { return };
                let pages = pages.min(file.pages);
                let at = narrow(gets.rng.below(u64::from(file.pages - pages) + 1));
                // A get that crosses a border of extents reads up to it.
                let Some(get) = part(&file.extents, at, pages).next() else { return };
                get
            };
            if self.gets.recent.len() >= index64(self.spec.recent) {
                self.gets.recent.pop_front();
            }
            self.gets.recent.push_back(get);
            self.push(Op::Read, get);
        }
    }

    fn plan_flush(&mut self) -> Option<Step> {
        if self.spec.drops_wal_first {
            self.end_log();
        }
        let file = self.write_file(0..KEYS, pages_of(self.spec.memtable))?;
        for extent in file.extents.clone() {
            self.push(Op::Write, extent);
        }
        self.commit(self.spec.commit_file);
        self.tree.push(file);
        self.commit(self.spec.commit_flush);
        self.gets.done = 0;
        self.end_log();
        Some(Step::Compact)
    }

    /// Deletes the log of a memtable, or makes it ready for the next one.
    fn end_log(&mut self) {
        if self.spec.recycles_wal {
            self.wal.iter_mut().for_each(Wal::recycle);
        } else if let Some(wal) = self.wal.take() {
            self.delete(wal.extents);
        }
    }

    fn plan_compaction(&mut self) -> Option<Step> {
        let full = self.tree.pages() >= self.spec.full_at() / u64::from(PAGE_BYTES);
        let new_share = match (full, self.warming) {
            (true, _) => 0.0,
            (false, true) => 1.0,
            (false, false) => self.spec.new_share,
        };
        let Some(compaction) = self.tree.compaction(new_share, &mut self.file_rng) else {
            if self.user_pages >= self.spec.warmup / u64::from(PAGE_BYTES) {
                self.warming = false;
            }
            return Some(Step::Log);
        };
        self.merge(compaction)?;
        Some(Step::Compact)
    }

    /// Reads the inputs the host does not have in memory, writes the outputs meanwhile, and
    /// deletes the inputs.
    fn merge(&mut self, compaction: Compaction) -> Option<()> {
        let age = self.spec.cache_age / u64::from(PAGE_BYTES);
        let mut reads = VecDeque::new();
        for file in &compaction.inputs {
            let is_cached = self.traffic.saturating_sub(file.born) < age;
            if !is_cached && self.cache_rng.unit() >= self.spec.absorb {
                reads.extend(file.extents.iter().copied());
            }
        }
        let to_read = total(&reads);
        let to_write: u64 = compaction.outputs.iter().map(|(_, pages)| u64::from(*pages)).sum();
        let stripe = pages_of(self.spec.readahead);
        let (mut read, mut written) = (0, 0);
        let mut files = Vec::with_capacity(compaction.outputs.len());
        for (keys, pages) in compaction.outputs.clone() {
            let file = self.write_file(keys, pages)?;
            let mut extents: VecDeque<Extent> = file.extents.iter().copied().collect();
            while !extents.is_empty() {
                // The merge has read at least the share it writes.
                while read * to_write <= written * to_read && !reads.is_empty() {
                    read += self.push_stripe(Op::Read, &mut reads, stripe);
                }
                written += self.push_stripe(Op::Write, &mut extents, stripe);
            }
            self.commit(self.spec.commit_file);
            files.push(file);
        }
        while !reads.is_empty() {
            self.push_stripe(Op::Read, &mut reads, stripe);
        }
        self.tree.install(&compaction, files);
        self.commit(self.spec.commit_compaction);
        // What was read may be gone.
        self.gets.recent.clear();
        for file in compaction.inputs {
            self.delete(file.extents);
        }
        Some(())
    }

    fn push_stripe(&mut self, op: Op, extents: &mut VecDeque<Extent>, stripe: u32) -> u64 {
        let Some(first) = extents.front_mut() else { return 0 };
        let run = Extent { start: first.start, pages: first.pages.min(stripe) };
        first.start += run.pages;
        first.pages -= run.pages;
        if first.pages == 0 {
            extents.pop_front();
        }
        self.push(op, run);
        u64::from(run.pages)
    }

    /// Room for a new file, which is as old as the traffic so far.
    fn write_file(&mut self, keys: std::ops::Range<u64>, pages: u32) -> Option<File> {
        let extents = self.space.allocate(pages)?;
        Some(File { keys, pages, born: self.traffic, extents })
    }

    fn commit(&mut self, pages: u64) {
        for extent in self.journal.commit(narrow(pages)) {
            if extent.pages > 0 {
                self.push(Op::Write, extent);
            }
        }
    }

    /// Frees extents, after a trim if the device is to hear of it.
    fn delete(&mut self, extents: Vec<Extent>) {
        if self.spec.discard == Discard::None {
            for extent in extents {
                self.space.release(extent);
            }
            return;
        }
        self.waiting_pages += total(&extents);
        self.waiting.extend(extents);
        let batch = match self.spec.discard {
            Discard::Delayed => self.spec.trim_batch / u64::from(PAGE_BYTES),
            Discard::Online | Discard::None => 0,
        };
        if self.waiting_pages >= batch {
            self.waiting_pages = 0;
            for extent in std::mem::take(&mut self.waiting) {
                self.push(Op::Trim, extent);
                self.space.release(extent);
            }
        }
    }

    fn push(&mut self, op: Op, extent: Extent) {
        if op != Op::Trim {
            self.traffic += u64::from(extent.pages);
        }
        self.queue.push_back(Run { op, extent });
    }
}

impl PageSource for LsmGenerator {
    fn fill_pages(&mut self, out: &mut [PageRequest]) -> usize {
        self.fill_until(out, false)
    }

    fn fill_warm_up(&mut self, out: &mut [PageRequest]) -> usize {
        self.fill_until(out, true)
    }

    fn end_pages(&self) -> u32 {
        pages_of(self.spec.space)
    }
}

impl Iterator for LsmGenerator {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let mut one = [Request::EMPTY];
        (self.fill(&mut one) == 1).then_some(one[0])
    }
}

fn total<'a>(extents: impl IntoIterator<Item = &'a Extent>) -> u64 {
    extents.into_iter().map(|extent| u64::from(extent.pages)).sum()
}

/// `count` pages of a file from its page `first` on.
fn part(extents: &[Extent], first: u32, count: u32) -> impl Iterator<Item = Extent> {
    let (mut skip, mut left) = (first, count);
    extents.iter().filter_map(move |extent| {
        let before = skip.min(extent.pages);
        skip -= before;
        let pages = (extent.pages - before).min(left);
        left -= pages;
        (pages > 0).then_some(Extent { start: extent.start + before, pages })
    })
}

fn draw_size(sizes: &[GetSize], weights: u64, rng: &mut Rng) -> u32 {
    let mut draw = rng.below(weights);
    for size in sizes {
        let weight = u64::from(size.weight);
        if draw < weight {
            return size.from + narrow(rng.below(u64::from(size.to - size.from) + 1));
        }
        draw -= weight;
    }
    1
}
