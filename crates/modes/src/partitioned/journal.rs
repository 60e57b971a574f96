//! Transactions that are not committed, and the overlay over the tables.
//!
//! 1. The overlay has every block that a transaction in here changes: where it lies now, and where
//!    the tables say. Reads search it first, so that they see what was acknowledged (volume.md,
//!    section 3, V1).
//! 2. Transactions are committed in order, one at a time; the tables change only then.

use std::collections::{BTreeMap, VecDeque};

use onefold_format::volume::{Pair, TRANSACTION_PAIRS_MAX, Transaction};
use onefold_units::convert::u64_from;
use onefold_units::{Location, Nanos, Seq};

use super::tables::Change;

/// Transactions that wait to be committed before requests of the host have to wait.
const CLOSED_MAX: usize = 4;

#[derive(Debug)]
pub(super) struct Open {
    pub(super) seq: u64,
    /// Log or map file.
    pub(super) file: u32,
    pub(super) changes: Vec<(u32, Change)>,
    /// Pieces of data that were not written yet.
    pub(super) outstanding: u32,
    /// When its first change came.
    since: Nanos,
}

impl Open {
    const fn new(seq: u64) -> Self {
        Self { seq, file: 0, changes: Vec::new(), outstanding: 0, since: Nanos::ZERO }
    }

    /// As it stands in the log.
    pub(super) fn transaction(&self, incarnation: u32) -> Transaction {
        let pair = |(lba, change): &(u32, Change)| Pair {
            lba: *lba,
            to: match change {
                Change::Write { to } | Change::Move { to, .. } => Location::new(*to),
                Change::Trim => Location::UNMAPPED,
            },
        };
        Transaction {
            seq: Seq::new(self.seq),
            incarnation,
            file: onefold_units::convert::low16(self.file.into()),
            pairs: self.changes.iter().map(pair).collect(),
        }
    }
}

/// A block with changes that are not committed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overlaid {
    /// Where it lies; `None` after a TRIM.
    pub(super) now: Option<u32>,
    /// Where the tables say it lies.
    pub(super) base: Option<u32>,
    /// The last transaction that changes it.
    pub(super) seq: u64,
}

#[derive(Debug)]
pub(super) struct Journal {
    pub(super) open: Open,
    /// Those that wait, the oldest first.
    pub(super) closed: VecDeque<Open>,
    pub(super) overlay: BTreeMap<u32, Overlaid>,
    /// Everything up to this transaction is durable.
    pub(super) durable: u64,
    /// Who waits for a transaction to be durable: its number, and the tag.
    pub(super) waiters: Vec<(u64, u64)>,
    /// Pairs of a transaction at most.
    pairs_max: usize,
}

impl Journal {
    pub(super) fn new(durable: u64, pairs_max: usize) -> Self {
        Self {
            open: Open::new(durable + 1),
            closed: VecDeque::new(),
            overlay: BTreeMap::new(),
            durable,
            waiters: Vec::new(),
            pairs_max: pairs_max.clamp(1, TRANSACTION_PAIRS_MAX),
        }
    }

    /// The last transaction that has a change.
    pub(super) fn last(&self) -> u64 {
        self.open.seq - u64::from(self.open.changes.is_empty())
    }

    /// Pairs that still fit the open transaction.
    pub(super) fn room(&self) -> usize {
        self.pairs_max - self.open.changes.len()
    }

    /// Whether transactions may be closed on behalf of the host.
    pub(super) fn has_room(&self) -> bool {
        self.closed.len() < CLOSED_MAX
    }

    /// Ends the open transaction.
    pub(super) fn close(&mut self) {
        if !self.open.changes.is_empty() {
            let next = Open::new(self.open.seq + 1);
            self.closed.push_back(std::mem::replace(&mut self.open, next));
        }
    }

    /// Adds a change of a block that the tables say lies at `base`, if it is not in the overlay.
    pub(super) fn push(&mut self, now: Nanos, lba: u32, base: Option<u32>, change: Change) {
        if self.open.changes.is_empty() {
            self.open.since = now;
        }
        self.open.changes.push((lba, change));
        let to = match change {
            Change::Write { to } | Change::Move { to, .. } => Some(to),
            Change::Trim => None,
        };
        let seq = self.open.seq;
        let entry = self.overlay.entry(lba).or_insert(Overlaid { now: to, base, seq });
        (entry.now, entry.seq) = (to, seq);
        if self.room() == 0 {
            self.close();
        }
    }

    /// A piece of data of a transaction was written.
    pub(super) fn data_over(&mut self, seq: u64) {
        let all = self.closed.iter_mut().chain([&mut self.open]);
        for transaction in all.filter(|transaction| transaction.seq == seq) {
            transaction.outstanding -= 1;
        }
    }

    /// When the open transaction is closed although it is not full (volume.md, section 3, V3).
    pub(super) fn deadline(&self, age: Nanos) -> Option<Nanos> {
        (!self.open.changes.is_empty()).then(|| self.open.since + age)
    }

    /// Bytes of the overlay, nodes of its tree left out, and of changes that are not committed.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let changes = self.closed.iter().chain([&self.open]).map(|one| one.changes.capacity());
        (
            u64_from(self.overlay.len() * size_of::<(u32, Overlaid)>()),
            u64_from(changes.sum::<usize>() * size_of::<(u32, Change)>()),
        )
    }

    /// Whether somebody waits for the open transaction.
    pub(super) fn is_wanted(&self) -> bool {
        self.waiters.iter().any(|(seq, _)| *seq >= self.open.seq)
    }
}
