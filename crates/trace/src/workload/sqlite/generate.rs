//! The requests of `SQLite` to its device.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use onefold_units::convert::{index, narrow};
use onefold_units::{Op, PAGE_BYTES, Rng};

use super::tree::{Pages, Tree};
use super::{Checkpoint, GROUP, SqliteFill, SqliteWorkload};
use crate::workload::choices::stream;
use crate::workload::{RemapFrom, Request};

/// Largest request: 512 KiB.
const IO_PAGES: u64 = 128;
/// The page with the header of the database, and the root of the table.
const HEADER: u32 = 1;
const ROOT: u32 = 2;

/// Produces the requests of a [`SqliteWorkload`]. Batches and single requests can be mixed: the sequence is the same. It keeps the
/// pages of the B-tree with their keys, and four bytes for each key.
#[derive(Clone, Debug)]
pub struct SqliteGenerator {
    workload: SqliteWorkload,
    rng: Rng,
    /// Values put so far.
    put: u64,
    tree: Tree,
    pages: Pages,
    /// First overflow page of each key; 0 without a value.
    overflow: Vec<u32>,
    wal: Wal,
    queue: VecDeque<Request>,
    over: bool,
}

/// What is in the WAL.
#[derive(Clone, Debug, Default)]
struct Wal {
    frames: u64,
    /// The last frame of each page of the database.
    last: BTreeMap<u32, u64>,
}

/// Block of the device in which the page of a frame lies.
const fn block_of(frame: u64) -> u64 {
    headers_of(frame) + 1 + frame % GROUP
}

/// Block of the device in which the header of a frame lies.
const fn headers_of(frame: u64) -> u64 {
    1 + frame / GROUP * (GROUP + 1)
}

impl SqliteGenerator {
    pub(super) fn new(workload: &SqliteWorkload, seed: u64) -> Self {
        let cells_most = index(narrow(workload.cells_most()));
        Self {
            rng: Rng::fork(seed, stream::PLACES),
            put: 0,
            tree: Tree::new(ROOT, cells_most),
            pages: Pages { last: ROOT },
            overflow: vec![0; index(narrow(workload.values))],
            wal: Wal::default(),
            queue: VecDeque::new(),
            over: false,
            workload: workload.clone(),
        }
    }

    /// First byte after the addresses that it can use.
    pub(in crate::workload) const fn end_bytes(&self) -> u64 {
        (self.workload.wal_pages() + self.workload.database_pages_most()) * PAGE_BYTES
    }

    /// Fills `out` from its start and returns how many requests it wrote. Fewer than asked means
    /// the end of the workload.
    pub fn fill(&mut self, out: &mut [Request]) -> usize {
        let mut filled = 0;
        while let Some(place) = out.get_mut(filled) {
            if let Some(request) = self.queue.pop_front() {
                *place = request;
                filled += 1;
            } else if self.over {
                break;
            } else {
                self.plan();
            }
        }
        filled
    }

    /// Puts the next value, or closes the database.
    fn plan(&mut self) {
        if self.put == self.workload.values {
            self.checkpoint();
            self.over = true;
            return;
        }
        let key = match self.workload.fill {
            SqliteFill::Random => self.rng.below(self.workload.values),
            SqliteFill::Sequential => self.put,
        };
        self.put += 1;
        let pages = self.transaction(narrow(key));
        self.commit(pages);
        if self.wal.frames >= self.workload.frames {
            self.checkpoint();
        }
    }

    /// Puts a value at a key; the pages that change, in the order of the database, as `SQLite` logs them.
    fn transaction(&mut self, key: u32) -> BTreeSet<u32> {
        let count = narrow(self.workload.overflow_pages());
        let first = &mut self.overflow[index(key)];
        if *first == 0 {
            *first = self.pages.last + 1;
            self.pages.last += count;
        }
        let mut changed = vec![HEADER];
        changed.extend(*first..*first + count);
        self.tree.put(key, &mut self.pages, &mut changed);
        changed.into_iter().collect()
    }

    /// Logs pages.
    fn commit(&mut self, pages: BTreeSet<u32>) {
        if self.wal.frames == 0 {
            self.write(0, 1);
        }
        let mut first = block_of(self.wal.frames);
        for page in pages {
            let frame = self.wal.frames;
            if frame > 0 && frame.is_multiple_of(GROUP) {
                // The group is full.
                let headers = headers_of(frame - 1);
                self.write(first, (headers + 1 + GROUP).max(first));
                self.write(headers, headers + 1);
                first = block_of(frame);
            }
            self.wal.last.insert(page, frame);
            self.wal.frames += 1;
        }
        self.write(first, block_of(self.wal.frames - 1) + 1);
    }

    /// Brings the pages of the WAL into the database, and begins it anew.
    fn checkpoint(&mut self) {
        let wal = std::mem::take(&mut self.wal);
        if wal.frames == 0 {
            return;
        }
        let headers = headers_of(wal.frames - 1);
        self.write(headers, headers + 1);
        self.queue.push_back(Request::EMPTY);
        let database = self.workload.wal_pages();
        let mut pages = wal.last.into_iter().peekable();
        while let Some((page, frame)) = pages.next() {
            let (to, from) = (database + u64::from(page) - 1, block_of(frame));
            let mut count = 1;
            let follows = |&(page, frame): &(u32, u64), count: u64| {
                (database + u64::from(page) - 1, block_of(frame)) == (to + count, from + count)
            };
            while count < IO_PAGES && pages.next_if(|next| follows(next, count)).is_some() {
                count += 1;
            }
            self.write(to, to + count);
            if self.workload.checkpoint == Checkpoint::Remap
                && let Some(request) = self.queue.back_mut()
            {
                request.remap = Some(RemapFrom { offset: from * PAGE_BYTES, moves: false });
            }
        }
        self.queue.push_back(Request::EMPTY);
    }

    /// Queues blocks to be written, at most [`IO_PAGES`] in a request.
    fn write(&mut self, first: u64, end: u64) {
        let mut block = first;
        while block < end {
            let blocks = (end - block).min(IO_PAGES);
            let (offset, len) = (block * PAGE_BYTES, narrow(blocks * PAGE_BYTES));
            self.queue.push_back(Request { op: Op::Write, len, offset, ..Request::EMPTY });
            block += blocks;
        }
    }
}
