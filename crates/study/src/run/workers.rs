//! One pass of a workload over many cells, spread over threads.
//!
//! The caller's thread makes the blocks; each worker owns some of the cells and runs every block
//! through all of them, so that a block is in its cache for all but the first. Cells share nothing:
//! their numbers depend neither on the number of threads nor on who is faster.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::offline::Kept;
use crate::StudyError;
use crate::cell::Cell;
use crate::service::Service;
use crate::stream::{BLOCK, Block, MappedEntries, Mix, State};

/// Blocks that may wait for one worker.
const QUEUE: usize = 4;

/// What a pass needs besides requests and cells.
pub(super) struct Pass<'a> {
    pub(super) service: &'a Service,
    pub(super) threads: usize,
    /// Entries of the device, if some cell asks what is mapped.
    pub(super) map_entries: Option<u32>,
    /// Who keeps the requests for later.
    pub(super) kept: &'a mut [Kept],
    pub(super) interrupt: Option<&'a AtomicBool>,
    pub(super) progress: &'a dyn Fn(&Mix),
}

enum Message {
    Block(Arc<Block>),
    EndOfWarmUp,
}

/// Runs all requests through all cells and gives the cells back in their order. `None` if it was
/// interrupted.
pub(super) fn pass(
    pass: &mut Pass<'_>,
    mix: Mix,
    cells: Vec<Cell>,
) -> Result<Option<Vec<Cell>>, StudyError> {
    let threads = pass.threads.clamp(1, cells.len().max(1));
    let mut shares: Vec<Vec<(usize, Cell)>> = (0..threads).map(|_| Vec::new()).collect();
    for (at, cell) in cells.into_iter().enumerate() {
        // Neighbours differ in size, not in policy: dealt out in turn, the work is nearly even.
        shares[at % threads].push((at, cell));
    }
    let service = pass.service;
    thread::scope(|scope| {
        let (mut senders, mut workers) = (Vec::new(), Vec::new());
        for share in shares {
            let (sender, receiver) = sync_channel(QUEUE);
            senders.push(sender);
            workers.push(scope.spawn(move || work(share, &receiver, service)));
        }
        let complete = produce(pass, mix, &senders);
        drop(senders);
        let mut cells = Vec::new();
        for worker in workers {
            cells.extend(worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        cells.sort_unstable_by_key(|(at, _)| *at);
        Ok(complete?.then(|| cells.into_iter().map(|(_, cell)| cell).collect()))
    })
}

fn work(
    mut cells: Vec<(usize, Cell)>,
    messages: &Receiver<Message>,
    service: &Service,
) -> Vec<(usize, Cell)> {
    for message in messages {
        for (_, cell) in &mut cells {
            match &message {
                Message::Block(block) => cell.run(block, service),
                Message::EndOfWarmUp => cell.end_warm_up(),
            }
        }
    }
    cells
}

/// Makes blocks until the stream ends, true, or somebody interrupts, false.
fn produce(
    pass: &mut Pass<'_>,
    mut mix: Mix,
    senders: &[SyncSender<Message>],
) -> Result<bool, StudyError> {
    let mut map = pass.map_entries.map(MappedEntries::new);
    // A worker that is gone shows when it is joined.
    let send = |message: &dyn Fn() -> Message| {
        for sender in senders {
            let _ = sender.send(message());
        }
    };
    let mut warming = true;
    loop {
        if pass.interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Ok(false);
        }
        let mut block = Block::with_capacity(BLOCK);
        let state = mix.fill(&mut block, map.as_mut())?;
        for kept in pass.kept.iter_mut() {
            kept.add(&block, warming);
        }
        let block = Arc::new(block);
        send(&|| Message::Block(Arc::clone(&block)));
        (pass.progress)(&mix);
        match state {
            State::More => {}
            State::Warm => {
                warming = false;
                send(&|| Message::EndOfWarmUp);
            }
            State::End => return Ok(true),
        }
    }
}
