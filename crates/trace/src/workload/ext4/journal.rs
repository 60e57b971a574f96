//! The journal of jbd2 as its device sees it: a ring of transactions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use onefold_units::convert::u64_from;

use super::Order;

/// Blocks that a descriptor block names: 4 KiB without header, UUID and checksum, in tags of 16 bytes.
const TAGS: u64 = 254;
/// Commits after which write-back has written what a transaction changed: 30 s, and a commit each 5 s.
const WRITE_BACK: usize = 6;

/// What the journal wants done, in order. Blocks are pages of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Write so many blocks from one on.
    Write(u64, u64),
    /// Flush, and then write this block forced.
    Force(u64),
}

#[derive(Clone, Debug)]
struct Transaction {
    number: u64,
    /// In the order in which they joined.
    blocks: Vec<u64>,
    /// Blocks of the ring that it takes.
    takes: u64,
}

/// Transactions that run, that are in the ring, and where the ring ends.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    /// First block on the device, which is the superblock, and all blocks.
    first: u64,
    blocks: u64,
    /// In which blocks go to their places.
    checkpoints: Order,
    /// Where the next block goes, from 1 on.
    head: u64,
    /// Blocks that transactions in the ring take.
    used: u64,
    /// Blocks of the running transaction, and their order.
    running: BTreeSet<u64>,
    joined: Vec<u64>,
    ring: VecDeque<Transaction>,
    /// The newest transaction in the ring that has a block.
    newest: BTreeMap<u64, u64>,
    commits: u64,
}

impl Journal {
    pub(super) const fn new(first: u64, blocks: u64, order: Order) -> Self {
        Self {
            first,
            blocks,
            checkpoints: order,
            head: 1,
            used: 0,
            running: BTreeSet::new(),
            joined: Vec::new(),
            ring: VecDeque::new(),
            newest: BTreeMap::new(),
            commits: 0,
        }
    }

    /// A block joins the running transaction.
    pub(super) fn dirty(&mut self, block: u64) {
        if self.running.insert(block) {
            self.joined.push(block);
        }
    }

    /// Whether the running transaction may get no larger: jbd2 allows a quarter of the journal.
    pub(super) fn is_full(&self) -> bool {
        u64_from(self.running.len()) >= self.blocks / 4
    }

    /// Commits the running transaction, if there is one.
    pub(super) fn commit(&mut self, steps: &mut Vec<Step>) {
        if self.running.is_empty() {
            return;
        }
        let count = u64_from(self.running.len());
        let takes = count + count.div_ceil(TAGS) + 1;
        let mut forgot = false;
        while self.ring.len() >= WRITE_BACK || self.used + takes > self.blocks - 1 {
            let Some(mut oldest) = self.ring.pop_front() else { break };
            if self.checkpoints == Order::Address {
                oldest.blocks.sort_unstable();
            }
            self.checkpoint(&oldest, steps);
            forgot = true;
        }
        if forgot {
            steps.push(Step::Force(self.first));
        }
        self.append(takes - 1, steps);
        steps.push(Step::Force(self.first + self.head));
        self.advance(1);
        self.commits += 1;
        let (number, blocks) = (self.commits, std::mem::take(&mut self.joined));
        self.running.clear();
        self.newest.extend(blocks.iter().map(|block| (*block, number)));
        self.used += takes;
        self.ring.push_back(Transaction { number, blocks, takes });
    }

    /// Writes blocks to the ring, up to its end and on from its start.
    fn append(&mut self, blocks: u64, steps: &mut Vec<Step>) {
        let before_end = blocks.min(self.blocks - self.head);
        for part in [before_end, blocks - before_end] {
            if part > 0 {
                steps.push(Step::Write(self.first + self.head, part));
                self.advance(part);
            }
        }
    }

    const fn advance(&mut self, blocks: u64) {
        self.head += blocks;
        if self.head == self.blocks {
            self.head = 1;
        }
    }

    /// Writes the blocks of a transaction to their places, but those that a newer one has.
    fn checkpoint(&mut self, old: &Transaction, steps: &mut Vec<Step>) {
        self.used -= old.takes;
        for block in &old.blocks {
            if self.newest.get(block) != Some(&old.number) {
                continue;
            }
            self.newest.remove(block);
            if self.running.contains(block) {
                continue;
            }
            match steps.last_mut() {
                Some(Step::Write(first, blocks)) if *first + *blocks == *block => *blocks += 1,
                _ => steps.push(Step::Write(*block, 1)),
            }
        }
    }
}
