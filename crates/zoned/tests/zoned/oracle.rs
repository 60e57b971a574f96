//! What a volume has to hold: for each block the operations on it, from the last one on that has to survive.

use std::collections::BTreeSet;

use onefold_units::convert::{index64, u64_from};

use crate::disk::BLOCK;

/// Fills blocks with the stamp of operation `op`.
pub(crate) fn stamped(op: u64, lba: u64, blocks: u32) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK * index64(blocks.into())];
    for (lba, block) in (lba..).zip(bytes.chunks_mut(BLOCK)) {
        for word in block.chunks_mut(16) {
            word[..8].copy_from_slice(&op.to_le_bytes());
            word[8..].copy_from_slice(&lba.to_le_bytes());
        }
    }
    bytes
}

/// What block [`stamp`] gives for one that no operation left there.
pub(crate) const FOREIGN: u64 = u64::MAX;

/// The operation that wrote a block, 0 for zeroes, [`FOREIGN`] if it is another block's or a mixture.
pub(crate) fn stamp(block: &[u8], lba: u64) -> u64 {
    let op = u64::from_le_bytes(block[..8].try_into().expect("8 bytes"));
    let expected = if op == 0 { vec![0; BLOCK] } else { stamped(op, lba, 1) };
    if block == expected { op } else { FOREIGN }
}

#[derive(Clone, Debug)]
pub(crate) struct Oracle {
    /// Per block: operation and what it left, oldest first; the first one has to survive.
    history: Vec<Vec<(u64, u64)>>,
    /// Operations reported done, with their blocks.
    reported: Vec<(u64, u64, u32)>,
    pub(crate) ops: u64,
    /// Operations that are under way or failed: their blocks are as before or as after.
    pub(crate) unsure: BTreeSet<u64>,
}

impl Oracle {
    pub(crate) fn new(blocks: u64) -> Self {
        let history = vec![vec![(0, 0)]; index64(blocks)];
        Self { history, reported: Vec::new(), ops: 0, unsure: BTreeSet::new() }
    }

    /// A write, or a discard.
    pub(crate) fn change(&mut self, lba: u64, blocks: u32, writes: bool) -> u64 {
        self.ops += 1;
        let left = if writes { self.ops } else { 0 };
        for lba in lba..lba + u64::from(blocks) {
            self.history[index64(lba)].push((self.ops, left));
        }
        self.ops
    }

    /// What a read that is given now finds.
    pub(crate) fn now(&self, lba: u64) -> u64 {
        self.history[index64(lba)].last().expect("never empty").1
    }

    /// What a read may find that was given after operation `last`.
    pub(crate) fn allowed(&self, lba: u64, last: u64) -> Vec<u64> {
        let mut found = Vec::new();
        let before = self.history[index64(lba)].iter().rev().filter(|(op, _)| *op <= last);
        for (op, left) in before {
            found.push(*left);
            if !self.unsure.contains(op) {
                break;
            }
        }
        found
    }

    pub(crate) fn report(&mut self, op: u64, lba: u64, blocks: u32) {
        self.reported.push((op, lba, blocks));
    }

    /// Operations reported done so far.
    pub(crate) fn reports(&self) -> usize {
        self.reported.len()
    }

    /// The first `reports` operations reported done have to survive from now on.
    pub(crate) fn promise(&mut self, reports: usize) {
        for (op, lba, blocks) in self.reported.clone().into_iter().take(reports) {
            self.promise_one(op, lba, blocks);
        }
    }

    /// This operation has to survive from now on, or a later one on its blocks.
    pub(crate) fn promise_one(&mut self, op: u64, lba: u64, blocks: u32) {
        for lba in lba..lba + u64::from(blocks) {
            let history = &mut self.history[index64(lba)];
            let at = history.iter().position(|(other, _)| *other == op);
            history.drain(..at.unwrap_or(0));
        }
    }

    /// After a power cut each block is as some operation left it that is not older than the last one promised.
    pub(crate) fn recovered(&mut self, lba: u64, found: u64) -> Result<(), String> {
        let history = &mut self.history[index64(lba)];
        if !history.iter().any(|(_, left)| *left == found) {
            return Err(format!("block {lba} holds {found}, expected one of {history:?}"));
        }
        *history = vec![(0, found)];
        Ok(())
    }

    pub(crate) fn blocks(&self) -> u64 {
        u64_from(self.history.len())
    }
}
