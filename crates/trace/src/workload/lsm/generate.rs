//! The requests of the store.
//!
//! The life of a memtable: its log is written in bursts, with the gets in between; then it is
//! flushed to a file of level 0 and its log deleted; then merges run until every level is within
//! its size. A plan of one such step is a queue of runs of pages, and requests are cut from its
//! front, so memory grows with the number of files and never with their pages.

use std::collections::VecDeque;

use onefold_units::convert::{index64, narrow};
use onefold_units::{Op, Rng};

use super::gets::Gets;
use super::log::{Journal, Wal};
use super::queue::Queue;
use super::space::{Extent, Space, part, total};
use super::spec::{Discard, Lsm};
use super::tree::{Compaction, File, KEYS, Shape, Tree};
use crate::workload::page_request::{PAGE_BYTES, PageRequest, PageSource, fill_requests, pages_of};
use crate::workload::{Request, WorkloadError};

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
    queue: Queue,
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
    user_pages: u64,
    warming: bool,
    /// Pages to read and write after the warm-up.
    left: u64,
    totals: LsmTotals,
}

impl Lsm {
    /// Fits the store to a device of `device_bytes` bytes. `seed` is used unless the specification
    /// has its own.
    pub fn instantiate(&self, device_bytes: u64, seed: u64) -> Result<LsmGenerator, WorkloadError> {
        if self.space > device_bytes {
            return Err(WorkloadError::RangeBeyondDevice { end: self.space, device: device_bytes });
        }
        Ok(LsmGenerator::new(self, self.seed.unwrap_or(seed)))
    }
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
            queue: Queue::new(pages_of(spec.max_req), pages_of(spec.trim_max)),
            step: Step::Log,
            space: Space::new(pages_of(spec.reserved()), end, align),
            tree: Tree::new(shape),
            journal: Journal::new(journal, hot, Rng::fork(seed, stream::METADATA)),
            wal: None,
            gets: Gets::new(spec, Rng::fork(seed, stream::GETS)),
            waiting: Vec::new(),
            waiting_pages: 0,
            wal_rng: Rng::fork(seed, stream::WAL),
            file_rng: Rng::fork(seed, stream::FILES),
            cache_rng: Rng::fork(seed, stream::CACHE),
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
            let Some(request) = self.queue.pop() else {
                if !self.plan() {
                    break;
                }
                continue;
            };
            out[filled] = request;
            if !self.warming {
                self.count(&request);
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
            self.queue.push(Op::Write, extent);
        }
        if !self.warming {
            while let Some(get) = self.gets.next(due, &self.tree) {
                self.queue.push(Op::Read, get);
            }
        }
        Some(if full { Step::Flush } else { Step::Log })
    }

    fn plan_flush(&mut self) -> Option<Step> {
        if self.spec.drops_wal_first {
            self.end_log();
        }
        let file = self.write_file(0..KEYS, pages_of(self.spec.memtable))?;
        for extent in file.extents.clone() {
            self.queue.push(Op::Write, extent);
        }
        self.commit(self.spec.commit_file);
        self.tree.push(file);
        self.commit(self.spec.commit_flush);
        self.gets.restart();
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
            let is_cached = self.queue.traffic().saturating_sub(file.born) < age;
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
                    read += self.queue.push_part(Op::Read, &mut reads, stripe);
                }
                written += self.queue.push_part(Op::Write, &mut extents, stripe);
            }
            self.commit(self.spec.commit_file);
            files.push(file);
        }
        while !reads.is_empty() {
            self.queue.push_part(Op::Read, &mut reads, stripe);
        }
        self.tree.install(&compaction, files);
        self.commit(self.spec.commit_compaction);
        self.gets.forget();
        for file in compaction.inputs {
            self.delete(file.extents);
        }
        Some(())
    }

    /// Room for a new file, which is as old as the traffic so far.
    fn write_file(&mut self, keys: std::ops::Range<u64>, pages: u32) -> Option<File> {
        let extents = self.space.allocate(pages)?;
        Some(File { keys, pages, born: self.queue.traffic(), extents })
    }

    fn commit(&mut self, pages: u64) {
        for extent in self.journal.commit(narrow(pages)) {
            if extent.pages > 0 {
                self.queue.push(Op::Write, extent);
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
                self.queue.push(Op::Trim, extent);
                self.space.release(extent);
            }
        }
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
