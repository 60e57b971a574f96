//! Reads of the host that lie in several places of the backing.
//!
//! What was written at random and is read in order lies in as many places as it has blocks. One after the other that
//! takes as many latencies; through the ring all are under way at once. A read of one place is carried out by the thread
//! that asks: to hand it over would take longer than the device.

use std::ops::Range;

use onefold_units::PAGE_BYTES;
use onefold_units::convert::{index, index64};
use onefold_volume::{Buffer, IoFailed, ReadPlan, ReadRun};

use super::Driver;
use crate::driver::Answer;

/// What became of a read.
type Found = Answer<Result<Buffer, IoFailed>>;

/// A read of several places.
pub(super) struct Scatter {
    runs: Vec<ReadRun>,
    len: usize,
    found: Found,
}

fn bytes_of(run: &ReadRun) -> Range<usize> {
    let block = index64(PAGE_BYTES);
    index(run.block) * block..index(run.block + run.blocks) * block
}

impl Scatter {
    /// The runs of a plan for a request of `len` bytes.
    pub(super) fn new(runs: Vec<ReadRun>, len: usize) -> (Self, Found) {
        let found = Found::default();
        (Self { runs, len, found: found.clone() }, found)
    }

    /// Bytes of the request.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Byte offset in the backing and place in the request of each run.
    pub(super) fn pieces(&self) -> impl ExactSizeIterator<Item = (u64, Range<usize>)> {
        self.runs.iter().map(|run| (u64::from(run.at.raw()) * PAGE_BYTES, bytes_of(run)))
    }

    /// Tells whoever waits.
    pub(super) fn answer(self, result: Result<Buffer, IoFailed>) {
        self.found.give(result);
    }
}

impl Driver {
    /// Reads what a plan says. Gives the number of blocks that stay damaged.
    pub(super) fn fetch(&self, plan: &ReadPlan, request: &mut [u8]) -> Result<(), u32> {
        if self.shared.bell.is_none() || plan.runs().len() < 2 {
            return self.shared.backing.fetch(plan, request);
        }
        let (read, found) = Scatter::new(plan.runs().to_vec(), request.len());
        let mut state = self.state();
        if state.engine.inbox.closed {
            drop(state);
            return self.shared.backing.fetch(plan, request);
        }
        state.engine.inbox.reads.push_back(read);
        if let Some(bell) = &self.shared.bell
            && state.engine.inbox.has_to_wake(None)
        {
            bell.ring();
        }
        drop(state);
        match receive(&found, plan, request) {
            Ok(()) if plan.complete(request).is_empty() => Ok(()),
            // Read once more, one after the other.
            _ => self.shared.backing.fetch(plan, request),
        }
    }
}

/// Waits for the end of a read and copies what it found to its places in the request.
fn receive(found: &Found, plan: &ReadPlan, request: &mut [u8]) -> Result<(), IoFailed> {
    let buffer = found.wait()?;
    for run in plan.runs() {
        let range = bytes_of(run);
        request[range.clone()].copy_from_slice(&buffer.bytes()[range]);
    }
    Ok(())
}
