//! One pass of a workload over many cells, spread over threads.
//!
//! The caller's thread makes the blocks; each worker owns some of the cells and runs every block
//! through all of them, so that a block is in its cache for all but the first. Cells share nothing:
//! their numbers depend neither on the number of threads nor on who is faster.

use std::mem::take;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::offline::Kept;
use crate::StudyError;
use crate::cell::Cell;
use crate::stream::{BLOCK, Block, MappedEntries, Mix, State};

/// Blocks that may wait for one worker.
const QUEUE: usize = 4;

/// Where a pass runs, and who watches it.
pub(super) struct Pass<'a> {
    pub(super) threads: usize,
    pub(super) interrupt: Option<&'a AtomicBool>,
    pub(super) progress: &'a dyn Fn(&Mix),
}

fn is_set(flag: Option<&AtomicBool>) -> bool {
    flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// A workload on its way through its cells.
pub(super) struct Stage {
    pub(super) mix: Mix,
    /// What is mapped, if some cell asks.
    pub(super) map: Option<MappedEntries>,
    /// Who keeps the requests for later.
    pub(super) kept: Vec<Kept>,
    pub(super) cells: Vec<Cell>,
}

impl Stage {
    /// Whether further requests would change anything.
    fn is_alive(&self) -> bool {
        !self.kept.is_empty() || self.cells.iter().any(Cell::is_alive)
    }
}

/// Runs the requests up to the end of the warm-up, then those up to the end, through all cells.
/// False if it was interrupted.
pub(super) fn pass(pass: &Pass<'_>, stage: &mut Stage) -> Result<bool, StudyError> {
    if !stage.is_alive() {
        return Ok(true);
    }
    let cells = take(&mut stage.cells);
    let threads = pass.threads.clamp(1, cells.len().max(1));
    let mut shares: Vec<Vec<(usize, Cell)>> = (0..threads).map(|_| Vec::new()).collect();
    for (at, cell) in cells.into_iter().enumerate() {
        // Neighbours differ in size, not in policy: dealt out in turn, the work is nearly even.
        shares[at % threads].push((at, cell));
    }
    let interrupt = pass.interrupt;
    thread::scope(|scope| {
        let (mut senders, mut workers) = (Vec::new(), Vec::new());
        for share in shares {
            let (sender, receiver) = sync_channel(QUEUE);
            senders.push(sender);
            workers.push(scope.spawn(move || work(interrupt, share, &receiver)));
        }
        let complete = produce(pass, stage, &senders);
        drop(senders);
        let mut cells = Vec::new();
        for worker in workers {
            cells.extend(worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        cells.sort_unstable_by_key(|(at, _)| *at);
        stage.cells = cells.into_iter().map(|(_, cell)| cell).collect();
        // Only now is it known that no cell left a block out.
        Ok(complete? && !is_set(interrupt))
    })
}

fn work(
    interrupt: Option<&AtomicBool>,
    mut cells: Vec<(usize, Cell)>,
    blocks: &Receiver<Arc<Block>>,
) -> Vec<(usize, Cell)> {
    for block in blocks {
        // Cells of an interrupted pass are not looked at, so nobody waits for those behind.
        for (_, cell) in cells.iter_mut().take_while(|_| !is_set(interrupt)) {
            cell.run(&block);
        }
    }
    cells
}

/// Makes blocks until the warm-up or the stream ends, true, or somebody interrupts, false.
fn produce(
    pass: &Pass<'_>,
    stage: &mut Stage,
    senders: &[SyncSender<Arc<Block>>],
) -> Result<bool, StudyError> {
    let warming = stage.mix.is_warming();
    loop {
        if is_set(pass.interrupt) {
            return Ok(false);
        }
        let mut block = Block::with_capacity(BLOCK);
        let reached = stage.mix.fill(&mut block, stage.map.as_mut())?;
        for kept in &mut stage.kept {
            kept.add(&block, warming);
        }
        let block = Arc::new(block);
        for sender in senders {
            // A worker that is gone shows when it is joined.
            let _ = sender.send(Arc::clone(&block));
        }
        (pass.progress)(&stage.mix);
        if reached != State::More {
            return Ok(true);
        }
    }
}
