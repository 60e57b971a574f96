//! The requests of ext4 to its device.

use std::collections::VecDeque;

use onefold_units::convert::{index64, narrow};
use onefold_units::{Op, PAGE_BYTES};

use super::journal::{Journal, Step};
use super::{DATA_START, Ext4Mode, Ext4Workload};
use crate::workload::{PatternGenerator, Request};

/// Largest request: 512 KiB.
const IO_PAGES: u64 = 128;
/// Block of the group descriptors, of the inode, and the first of block bitmaps and of leaves of the extent tree.
const GROUPS: u64 = 1;
const INODE: u64 = 1100;
const BITMAPS: u64 = 1200;
const LEAVES: u64 = 4096;
/// Extents in a leaf as recorded: 40,000 pages of a file of 640 MiB, written at random, had 183 leaves. Leaves beyond so many share
/// blocks in turn.
const EXTENTS: u64 = 220;
const LEAVES_MAX: u64 = DATA_START / PAGE_BYTES - LEAVES;
/// Blocks of a group.
const GROUP: u64 = 32_768;
const BITMAPS_MAX: u64 = LEAVES - BITMAPS;

/// Produces the requests of an [`Ext4Workload`]. Batches and single requests can be mixed: the sequence is the same. It keeps a bit for
/// each page of a sparse file, and the blocks of the transactions in the journal.
#[derive(Clone, Debug)]
pub struct Ext4Generator {
    workload: Ext4Workload,
    application: PatternGenerator,
    journal: Journal,
    /// Pages of the file that are filled, until all are.
    filled: u64,
    /// Whether each page of a sparse file has a block.
    allocated: Vec<bool>,
    /// How many have.
    extents: u64,
    /// Pages written since the last commit.
    written: u64,
    /// What the journal wants done; empty between calls.
    steps: Vec<Step>,
    queue: VecDeque<Request>,
    over: bool,
}

impl Ext4Generator {
    pub(super) fn new(workload: &Ext4Workload, application: PatternGenerator) -> Self {
        let file_pages = workload.file_bytes / PAGE_BYTES;
        let blocks = workload.journal_bytes / PAGE_BYTES;
        Self {
            application,
            journal: Journal::new(workload.journal_at / PAGE_BYTES, blocks, workload.order),
            filled: if workload.fill { 0 } else { file_pages },
            allocated: if workload.fill { Vec::new() } else { vec![false; index64(file_pages)] },
            extents: 0,
            written: 0,
            steps: Vec::new(),
            queue: VecDeque::new(),
            over: false,
            workload: workload.clone(),
        }
    }

    /// First byte after the addresses it uses.
    pub(in crate::workload) fn end_bytes(&self) -> u64 {
        self.workload.end_bytes()
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

    /// Takes the next request to the file, or ends.
    fn plan(&mut self) {
        let file_pages = self.workload.file_bytes / PAGE_BYTES;
        if self.filled < file_pages {
            let end = (self.filled + IO_PAGES).min(file_pages);
            let first = std::mem::replace(&mut self.filled, end);
            self.write(first, end, &Request::EMPTY);
            return;
        }
        let mut one = [Request::EMPTY];
        if self.application.fill(&mut one) == 0 {
            self.commit(&Request::EMPTY);
            self.over = true;
            return;
        }
        let [request] = one;
        let first = request.offset / PAGE_BYTES;
        let end = (request.offset + u64::from(request.len)).div_ceil(PAGE_BYTES);
        match request.op {
            Op::Read => self.transfer(first, end, &request),
            Op::Write => {
                self.write(first, end, &request);
                if request.fua {
                    self.commit(&request);
                }
            }
            _ => {
                self.commit(&request);
                self.queue.push_back(Request { at: request.at, ..Request::EMPTY });
            }
        }
    }

    /// Pages of the file are written.
    fn write(&mut self, first: u64, end: u64, request: &Request) {
        if self.workload.mode == Ext4Mode::Ordered {
            let request = Request { op: Op::Write, fua: false, ..*request };
            self.transfer(first, end, &request);
        }
        for page in first..end {
            let block = self.block(page);
            self.journal.dirty(INODE);
            self.allocate(page, block);
            if self.workload.mode == Ext4Mode::Journal {
                self.journal.dirty(block);
            }
            self.written += 1;
            if self.written >= self.workload.commit_pages || self.journal.is_full() {
                self.commit(request);
            }
        }
    }

    /// A page that had no block gets one.
    fn allocate(&mut self, page: u64, block: u64) {
        let Some(allocated) = self.allocated.get_mut(index64(page)) else { return };
        if !std::mem::replace(allocated, true) {
            self.journal.dirty(GROUPS);
            self.journal.dirty(BITMAPS + block / GROUP % BITMAPS_MAX);
            self.extents += 1;
            let leaves = self.extents.div_ceil(EXTENTS);
            let leaf = page * leaves / (self.workload.file_bytes / PAGE_BYTES);
            self.journal.dirty(LEAVES + leaf % LEAVES_MAX);
        }
    }

    fn commit(&mut self, request: &Request) {
        self.written = 0;
        let mut steps = std::mem::take(&mut self.steps);
        self.journal.commit(&mut steps);
        for step in steps.drain(..) {
            match step {
                Step::Write(first, blocks) => self.push(Op::Write, first, first + blocks, request),
                Step::Force(block) => {
                    self.queue.push_back(Request { at: request.at, ..Request::EMPTY });
                    self.push(Op::Write, block, block + 1, request);
                    if let Some(last) = self.queue.back_mut() {
                        last.fua = true;
                    }
                }
            }
        }
        self.steps = steps;
    }

    /// Block of the device that a page of the file lies in.
    const fn block(&self, page: u64) -> u64 {
        self.workload.device_byte(page * PAGE_BYTES) / PAGE_BYTES
    }

    /// Reads or writes pages of the file, which may lie on both sides of the journal.
    fn transfer(&mut self, first: u64, end: u64, request: &Request) {
        let mut page = first;
        while page < end {
            let block = self.block(page);
            let mut next = page + 1;
            while next < end && self.block(next) == block + (next - page) {
                next += 1;
            }
            self.push(request.op, block, block + (next - page), request);
            page = next;
        }
    }

    /// Queues blocks in requests of at most [`IO_PAGES`].
    fn push(&mut self, op: Op, first: u64, end: u64, request: &Request) {
        let mut block = first;
        while block < end {
            let blocks = (end - block).min(IO_PAGES);
            let (offset, len) = (block * PAGE_BYTES, narrow(blocks * PAGE_BYTES));
            self.queue.push_back(Request { op, len, offset, at: request.at, ..Request::EMPTY });
            block += blocks;
        }
    }
}
