//! What a volume has to hold.
//!
//! Two views that know nothing of each other. That of the host: which operations it gave, and which of them were reported
//! done before a flush. That of the backing: which operations are in the batch of which number. A recovered volume holds
//! exactly the batches up to some number (volume.md, section 10, I6), and for the host each block has an operation that is
//! not older than the last one that was promised to survive (I1, I2, I3, I7).

use std::collections::BTreeMap;

use onefold_format::volume::{BatchHeader, RecordList, Slot, Transaction};
use onefold_units::convert::{index, index64, u64_from};
use onefold_volume::{Done, unpack};

use super::disk::Disk;
use super::family::{FamilyChange, Snapshots};
use super::stamp::{BLOCK, read_stamp};

/// A change of a block: the operation, and what it wrote; 0 for a trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    lba: u64,
    op: u64,
}

/// The changes of a batch, in order.
#[derive(Clone, Debug)]
struct Batch {
    attempt: u16,
    changes: Vec<Change>,
}

/// A request that was not reported done.
#[derive(Clone, Debug)]
enum Request {
    Change {
        lba: u64,
        blocks: u64,
        fua: bool,
    },
    /// What was reported done before it was given.
    Flush {
        reports: usize,
    },
    Family(FamilyChange),
}

#[derive(Clone, Debug)]
pub(crate) struct Oracle {
    uuid: [u8; 16],
    /// Operations so far; each has a number from 1 on.
    ops: u64,
    /// What reads have to find.
    now: Vec<u64>,
    /// Operations on each block with what they left, oldest first, from the last one on that has to survive.
    history: Vec<Vec<(u64, u64)>>,
    requests: BTreeMap<u64, Request>,
    /// Changes that were reported done, in this order: operation, first block, blocks.
    reports: Vec<(u64, u64, u64)>,
    /// Those before have to survive.
    promised: usize,
    /// Tells apart what has to survive.
    promises: u64,
    /// What the batches up to `seq` left.
    base: Vec<u64>,
    seq: u64,
    batches: BTreeMap<u64, Batch>,
    pub(crate) snapshots: Snapshots,
    /// Requests that failed.
    pub(crate) failed: u64,
}

impl Oracle {
    pub(crate) fn new(uuid: [u8; 16], blocks: u64) -> Self {
        Self {
            uuid,
            ops: 0,
            now: vec![0; index64(blocks)],
            history: vec![vec![(0, 0)]; index64(blocks)],
            requests: BTreeMap::new(),
            reports: Vec::new(),
            promised: 0,
            promises: 0,
            base: vec![0; index64(blocks)],
            seq: 0,
            batches: BTreeMap::new(),
            snapshots: Snapshots::default(),
            failed: 0,
        }
    }

    /// The volume may grow to so many blocks.
    pub(crate) fn extend(&mut self, blocks: u64) {
        self.now.resize(index64(blocks), 0);
        self.base.resize(index64(blocks), 0);
        self.history.resize(index64(blocks), vec![(0, 0)]);
    }

    pub(crate) fn blocks(&self) -> u64 {
        u64_from(self.now.len())
    }

    /// What a read of a block has to find.
    pub(crate) fn now(&self, lba: u64) -> u64 {
        self.now[index64(lba)]
    }

    /// Changes whenever more has to survive.
    pub(crate) const fn promised(&self) -> u64 {
        self.promises
    }

    /// Whether every request was reported done.
    pub(crate) fn is_quiet(&self) -> bool {
        self.requests.is_empty()
    }

    /// The changes and flushes that were not answered.
    pub(crate) fn waiting(&self) -> Vec<u64> {
        let waits = |request: &Request| !matches!(request, Request::Family(_));
        self.requests.iter().filter(|(_, request)| waits(request)).map(|(tag, _)| *tag).collect()
    }

    /// The number for the next operation, which is its tag as well.
    pub(crate) const fn next_op(&self) -> u64 {
        self.ops + 1
    }

    fn begin(&mut self, request: Request) {
        self.ops += 1;
        self.requests.insert(self.ops, request);
    }

    fn change(&mut self, lba: u64, blocks: u64, content: u64) {
        for lba in index64(lba)..index64(lba + blocks) {
            self.now[lba] = content;
            self.history[lba].push((self.ops, content));
        }
    }

    /// The volume took a write with the number that was next.
    pub(crate) fn wrote(&mut self, lba: u64, blocks: u64, fua: bool) {
        self.begin(Request::Change { lba, blocks, fua });
        self.change(lba, blocks, self.ops);
    }

    pub(crate) fn trimmed(&mut self, lba: u64, blocks: u64) {
        self.begin(Request::Change { lba, blocks, fua: false });
        self.change(lba, blocks, 0);
    }

    pub(crate) fn flushes(&mut self) {
        self.begin(Request::Flush { reports: self.reports.len() });
    }

    /// The volume took a change of its family.
    pub(crate) fn changes(&mut self, change: FamilyChange) {
        self.snapshots.asked(&change);
        self.begin(Request::Family(change));
    }

    /// Batches up to this one were durable when the volume was opened.
    pub(crate) const fn durable(&self) -> u64 {
        self.seq
    }

    /// A request was reported done.
    pub(crate) fn done(&mut self, done: Done) {
        let request = self.requests.remove(&done.tag).expect("reported done once");
        if done.result.is_err() {
            self.failed += 1;
            return;
        }
        match request {
            Request::Family(change) => self.snapshots.done(change),
            Request::Change { lba, blocks, fua } => {
                self.reports.push((done.tag, lba, blocks));
                if fua {
                    self.promise(done.tag, lba, blocks);
                }
            }
            Request::Flush { reports } => {
                for at in self.promised..reports {
                    let (op, lba, blocks) = self.reports[at];
                    self.promise(op, lba, blocks);
                }
                self.promised = self.promised.max(reports);
            }
        }
    }

    /// An operation survives from now on: what came before it does not matter any more.
    fn promise(&mut self, op: u64, lba: u64, blocks: u64) {
        let one = op << 40 ^ lba << 16 ^ blocks;
        self.promises = self.promises.wrapping_add(one.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for history in &mut self.history[index64(lba)..index64(lba + blocks)] {
            let from = history.iter().rposition(|(of, _)| *of <= op).unwrap_or(0);
            history.drain(..from);
        }
    }

    /// The volume sends bytes to its backing.
    pub(crate) fn sent(&mut self, at: u64, bytes: &[u8], disk: &Disk) {
        if let Ok(transaction) =
            Transaction::decode(&bytes[..BLOCK], &self.uuid, onefold_units::convert::low32(at))
        {
            self.committed(&transaction, disk);
            return;
        }
        let Ok(batch) = BatchHeader::decode(&bytes[..BLOCK], &self.uuid, at) else { return };
        let mut changes = Vec::new();
        for trim in &batch.trims {
            let end = (trim.lba.raw() + trim.blocks).min(self.blocks());
            changes.extend((trim.lba.raw()..end).map(|lba| Change { lba, op: 0 }));
        }
        if matches!(batch.records, RecordList::Data(_)) {
            let mut block = [0; BLOCK];
            let written = batch.located(0).filter(|(_, version)| version.source.is_none());
            for (place, version) in written {
                let (behind, slot) = if batch.places.is_empty() {
                    (place.raw(), Slot::WHOLE)
                } else {
                    Slot::split(place)
                };
                let from = index(behind) * BLOCK;
                assert!(unpack(&bytes[from..from + BLOCK], slot, &mut block), "a whole pack");
                let lba = version.lba.raw();
                let op = read_stamp(&block, lba).expect("a batch holds what the host wrote");
                changes.push(Change { lba, op });
            }
        }
        let (seq, attempt) = (batch.header.seq.raw(), batch.header.attempt);
        assert!(seq > self.seq, "batch {seq} has a number that was given out before");
        if let Some(old) = self.batches.get(&seq) {
            // One that failed is sent again to its place, or as another attempt to another one.
            assert!(
                old.attempt <= attempt,
                "batch {seq} is sent as attempt {attempt} after {}",
                old.attempt
            );
            assert!(old.changes == changes, "batch {seq} is sent again with other content");
        }
        self.batches.insert(seq, Batch { attempt, changes });
    }

    /// The log block of a transaction is sent, so what it names was written before.
    fn committed(&mut self, transaction: &Transaction, disk: &Disk) {
        let seq = transaction.seq.raw();
        let change = |pair: &onefold_format::volume::Pair| {
            let lba = u64::from(pair.lba);
            let op = if pair.to.is_block() {
                read_stamp(&disk.get(pair.to.raw().into())[..], lba)
                    .expect("a transaction names what the host wrote")
            } else {
                0
            };
            Change { lba, op }
        };
        let changes: Vec<Change> = transaction.pairs.iter().map(change).collect();
        assert!(seq > self.seq, "transaction {seq} has a number that was given out before");
        if let Some(old) = self.batches.get(&seq) {
            assert!(old.changes == changes, "transaction {seq} is sent again with other content");
        }
        self.batches.insert(seq, Batch { attempt: 0, changes });
    }

    /// What the batches up to `seq` leave.
    pub(crate) fn state_at(&self, seq: u64) -> Vec<u64> {
        let mut state = self.base.clone();
        for change in self.batches.range(..=seq).flat_map(|(_, batch)| &batch.changes) {
            state[index64(change.lba)] = change.op;
        }
        state
    }

    /// Checks what a recovered volume holds, block by block, if it says that it has the batches up to `seq`. `None` where
    /// a block was not looked at.
    pub(crate) fn check(&self, seq: u64, found: &[Option<u64>]) -> Result<(), String> {
        if seq < self.seq {
            return Err(format!("recovered up to batch {seq}, and {} was durable", self.seq));
        }
        let state = self.state_at(seq);
        for (lba, found) in found.iter().enumerate() {
            let Some(found) = found else { continue };
            let history = &self.history[lba];
            if !history.iter().any(|(_, content)| content == found) {
                return Err(format!(
                    "block {lba} has operation {found}, and could have {history:?} (I1)"
                ));
            }
            if state[lba] != *found {
                let expected = state[lba];
                let written = self.batches_of(lba);
                return Err(format!(
                    "block {lba} has operation {found}, not {expected}, at batch {seq} after {}; it is in batches {written:?} (I6)",
                    self.seq
                ));
            }
        }
        Ok(())
    }

    /// Whether a block may hold this, after a power cut, for all that the host was promised.
    pub(crate) fn may_hold(&self, lba: u64, content: u64) -> bool {
        self.history[index64(lba)].iter().any(|(_, held)| *held == content)
    }

    /// What is known of a block, for messages.
    pub(crate) fn tell(&self, lba: u64) -> String {
        let lba = index64(lba);
        format!(
            "it could have {:?}, and is in batches {:?}",
            self.history[lba],
            self.batches_of(lba)
        )
    }

    /// The batches that change a block, and the operations.
    fn batches_of(&self, lba: usize) -> Vec<(u64, u16, u64)> {
        let of = |(seq, batch): (&u64, &Batch)| {
            let (seq, attempt) = (*seq, batch.attempt);
            let own =
                batch.changes.clone().into_iter().filter(move |change| index64(change.lba) == lba);
            own.map(move |change| (seq, attempt, change.op)).collect::<Vec<_>>()
        };
        self.batches.iter().flat_map(of).collect()
    }

    /// Power is back, and the volume holds the batches up to `seq`. These are durable, and nothing else is.
    pub(crate) fn recovered(&mut self, seq: u64) {
        self.base = self.state_at(seq);
        self.now.clone_from(&self.base);
        self.seq = seq;
        self.batches.clear();
        self.requests.clear();
        self.reports.clear();
        self.promised = 0;
        let ops = self.ops;
        for (history, now) in self.history.iter_mut().zip(&self.now) {
            *history = vec![(ops, *now)];
        }
    }
}
