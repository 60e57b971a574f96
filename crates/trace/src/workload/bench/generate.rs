//! The requests of a benchmark on a device.

use std::collections::VecDeque;

use onefold_units::convert::{floor_u64, index64, narrow, u64_from};
use onefold_units::{Op, PAGE_BYTES, Rng};

use super::Bench;
use super::cache::PageCache;
use crate::workload::choices::Left;
use crate::workload::math::ln;
use crate::workload::spec::{Bound, Length};
use crate::workload::{Request, WorkloadError};

/// Addresses of a benchmark are pages in 32 bits.
const MAX_PAGES: u64 = 0xFFFF_FFFF;
/// 16 MiB: room for a log file and some data, or for the largest files.
const MIN_PAGES: u64 = 4096;

/// Largest request of the file server: 1 MiB.
const IO_PAGES: u64 = 256;
/// Mean file in pages: 128 KiB.
const FILE_PAGES: f64 = 32.0;
/// An append has 1 byte to 16 KiB, uniform: so many pages at most.
const APPEND_PAGES_MAX: u64 = 4;

/// Log file of the database and one write in it: 10 MiB, 256 KiB.
const LOG_PAGES: u64 = 2560;
const LOG_WRITE_PAGES: u64 = 64;
/// Reads after which the database writers wake up, and the writes of one that does.
const READS_PER_BURST: u64 = 1000;
const BURST: u32 = 100;
/// Reads after which the log writer wakes up.
const READS_PER_LOG_WRITE: u64 = 3200;

/// Files of FFSB.
const FFSB_FILES: u64 = 100;
/// Files that `PostMark` makes: 20, and one in each of 20 transactions.
const POSTMARK_FILES: u64 = 40;
/// Read-ahead of Linux: 128 KiB.
const READ_AHEAD_PAGES: u64 = 32;

/// Produces the requests of a [`super::BenchWorkload`]. Batches and single requests can be mixed: the
/// sequence is the same.
#[derive(Clone, Debug)]
pub struct BenchGenerator {
    start: u64,
    pages: u64,
    left: Left,
    rng: Rng,
    /// Planned and not yet given out.
    queue: VecDeque<Request>,
    cache: Option<PageCache>,
    model: Model,
}

#[derive(Clone, Debug)]
enum Model {
    /// The first page after each file.
    Fileserver {
        ends: Vec<u32>,
    },
    Oltp {
        reads: u64,
    },
    FioRandw,
    /// Pages of each file that are appended or wait for it, from its middle on.
    Ffsb {
        reads: bool,
        appended: Vec<u64>,
    },
    /// Files that were made.
    Postmark {
        made: u64,
    },
}

impl BenchGenerator {
    pub(super) fn new(
        bench: Bench,
        length: Length,
        (start, end): (u64, u64),
        cache: Bound,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        let start = start.next_multiple_of(PAGE_BYTES);
        let range = end.saturating_sub(start);
        let pages = range / PAGE_BYTES;
        if pages < MIN_PAGES {
            return Err(WorkloadError::FootprintTooLarge { range, needed: MIN_PAGES * PAGE_BYTES });
        }
        if pages > MAX_PAGES {
            return Err(WorkloadError::TooManyUnits { found: pages, limit: MAX_PAGES });
        }
        let mut rng = Rng::new(seed);
        let model = match bench {
            Bench::Fileserver => Model::Fileserver { ends: files(pages, &mut rng) },
            Bench::Oltp => Model::Oltp { reads: 0 },
            Bench::FioRandw => Model::FioRandw,
            Bench::FfsbWrite | Bench::FfsbMixed => Model::Ffsb {
                reads: bench == Bench::FfsbMixed,
                appended: vec![0; index64(FFSB_FILES)],
            },
            Bench::Postmark => Model::Postmark { made: 0 },
        };
        let left = Left::new(length, pages * PAGE_BYTES, None);
        let cache = PageCache::new(cache.resolve(pages * PAGE_BYTES) / PAGE_BYTES, pages);
        Ok(Self { start, pages, left, rng, queue: VecDeque::new(), cache, model })
    }

    /// First byte after the addresses it uses.
    pub(in crate::workload) const fn end_bytes(&self) -> u64 {
        self.start + self.pages * PAGE_BYTES
    }

    /// Fills `out` from its start and returns how many requests it wrote. Fewer than asked means
    /// the end of the workload.
    pub fn fill(&mut self, out: &mut [Request]) -> usize {
        let mut filled = 0;
        while filled < out.len() && !self.left.is_over() {
            let Some(request) = self.queue.pop_front() else {
                self.plan();
                continue;
            };
            self.left.count(request.op, request.len);
            out[filled] = request;
            filled += 1;
        }
        filled
    }

    /// Queues the requests of the next operation: none if the page cache answers it.
    fn plan(&mut self) {
        match &mut self.model {
            Model::Fileserver { .. } => {
                let (first, end) = self.file();
                self.push(Op::Write, first, end);
                let (first, end) = self.file();
                let append = 1 + self.rng.below(APPEND_PAGES_MAX);
                self.push(Op::Write, end.saturating_sub(append).max(first), end);
                let (first, end) = self.file();
                self.push(Op::Read, first, end);
            }
            Model::Oltp { reads } => {
                *reads += 1;
                let reads = *reads;
                self.random_data(Op::Read);
                if reads.is_multiple_of(READS_PER_BURST) {
                    (0..BURST).for_each(|_| self.random_data(Op::Write));
                }
                if reads.is_multiple_of(READS_PER_LOG_WRITE) {
                    let first = self.rng.below(LOG_PAGES / LOG_WRITE_PAGES) * LOG_WRITE_PAGES;
                    self.push(Op::Write, first, first + LOG_WRITE_PAGES);
                }
            }
            Model::FioRandw => {
                let page = self.rng.below(self.pages);
                self.push(Op::Write, page, page + 1);
            }
            Model::Ffsb { reads, .. } => {
                if *reads {
                    let page = self.ffsb_page();
                    self.push(Op::Read, page, page + 1);
                }
                if self.rng.below(2) == 0 {
                    let page = self.ffsb_page();
                    self.push(Op::Write, page, page + 1);
                } else {
                    self.append();
                }
            }
            Model::Postmark { made } => {
                let file = *made;
                *made = (file + 1) % POSTMARK_FILES;
                let pages = self.pages / POSTMARK_FILES;
                if file >= POSTMARK_FILES / 2 {
                    let first = self.rng.below(file) * pages;
                    for page in (first..first + pages).step_by(index64(READ_AHEAD_PAGES)) {
                        self.push(Op::Read, page, (page + READ_AHEAD_PAGES).min(first + pages));
                    }
                }
                self.push(Op::Write, file * pages, (file + 1) * pages);
            }
        }
    }

    /// A page of the first half of a random file of FFSB.
    fn ffsb_page(&mut self) -> u64 {
        let file = self.pages / FFSB_FILES;
        self.rng.below(FFSB_FILES) * file + self.rng.below(file / 2)
    }

    /// Appends a page to a random file of FFSB; asks for a write when enough of them came together.
    fn append(&mut self) {
        let file = self.pages / FFSB_FILES;
        let gathered = IO_PAGES.min(file / 4);
        let number = self.rng.below(FFSB_FILES);
        let Model::Ffsb { appended, .. } = &mut self.model else { return };
        let pages = &mut appended[index64(number)];
        *pages += 1;
        let end = *pages;
        if end.is_multiple_of(gathered) {
            if end + gathered > file - file / 2 {
                *pages = 0;
            }
            let end = number * file + file / 2 + end;
            self.push(Op::Write, end - gathered, end);
        }
    }

    /// First page of a random file, and the first after it.
    fn file(&mut self) -> (u64, u64) {
        let Model::Fileserver { ends } = &self.model else { return (0, 1) };
        let file = index64(self.rng.below(u64_from(ends.len())));
        let first = file.checked_sub(1).map_or(0, |before| ends[before]);
        (u64::from(first), u64::from(ends[file]))
    }

    /// A page of the data files, which lie behind the log.
    fn random_data(&mut self, op: Op) {
        let page = LOG_PAGES + self.rng.below(self.pages - LOG_PAGES);
        self.push(op, page, page + 1);
    }

    /// Queues pages `first..end`, without those that the page cache answers.
    fn push(&mut self, op: Op, first: u64, end: u64) {
        let Some(cache) = &mut self.cache else { return self.queue_pages(op, first, end) };
        let asked: Vec<bool> =
            (first..end).map(|page| !cache.use_page(page) || op == Op::Write).collect();
        let mut begin = first;
        for run in asked.chunk_by(|a, b| a == b) {
            let after = begin + u64_from(run.len());
            if run[0] {
                self.queue_pages(op, begin, after);
            }
            begin = after;
        }
    }

    /// Queues pages `first..end` in requests of at most [`IO_PAGES`].
    fn queue_pages(&mut self, op: Op, first: u64, end: u64) {
        let fua = op == Op::Write && matches!(self.model, Model::Oltp { .. });
        let mut page = first;
        while page < end {
            let pages = (end - page).min(IO_PAGES);
            let (offset, len) = (self.start + page * PAGE_BYTES, narrow(pages * PAGE_BYTES));
            self.queue.push_back(Request { op, fua, len, offset, ..Request::EMPTY });
            page += pages;
        }
    }
}

/// Ends of the files that fill so many pages; the last one is cut.
fn files(pages: u64, rng: &mut Rng) -> Vec<u32> {
    let mut ends = Vec::new();
    let mut end = 0;
    while end < pages {
        let size = floor_u64(gamma(rng) * (FILE_PAGES / GAMMA_SHAPE)) + 1;
        end = (end + size).min(pages);
        ends.push(narrow(end));
    }
    ends
}

/// Shape of filebench's file sizes.
const GAMMA_SHAPE: f64 = 1.5;

/// Gamma-distributed with shape 1.5, and so with mean 1.5: shape 1 (exponential) and shape 1/2 (half
/// the square of a normal variate, by Marsaglia's polar method).
fn gamma(rng: &mut Rng) -> f64 {
    let exponential = -ln(1.0 - rng.unit());
    loop {
        let (x, y) = (2.0 * rng.unit() - 1.0, 2.0 * rng.unit() - 1.0);
        let s = x * x + y * y;
        if s < 1.0 && s > 0.0 {
            return exponential - x * x * ln(s) / s;
        }
    }
}
