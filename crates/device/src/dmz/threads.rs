//! What a zoned volume asks of its devices, done by a few threads.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use onefold_units::PAGE_BYTES;
use onefold_units::convert::{index, index64};
use onefold_zoned::{Io, IoFailed, IoKind, Volume};

use super::Shared;
use crate::driver::{Fuse, Jobs, Next};

/// Threads for everything but changes of the zoned device: enough for the queue of a drive, and a flush beside it.
const THREADS: usize = 4;

/// A request to a device with its bytes.
pub(super) struct Job {
    io: Io,
    bytes: Vec<u8>,
}

impl Job {
    /// Copies what is to be written, so that nobody waits for the engine meanwhile.
    pub(super) fn new(io: Io, volume: &Volume) -> Self {
        let bytes = match io.kind {
            IoKind::Write => volume.buffer(io.id).to_vec(),
            IoKind::Read => vec![0; index(io.blocks) * index64(PAGE_BYTES)],
            IoKind::Flush | IoKind::Reset => Vec::new(),
        };
        Self { io, bytes }
    }
}

/// Ends the threads with the last handle.
pub(super) struct Threads {
    shared: Arc<Shared>,
    list: Mutex<Vec<JoinHandle<()>>>,
}

impl Threads {
    /// Starts the threads of a volume.
    pub(super) fn start(shared: &Arc<Shared>) -> std::io::Result<Self> {
        let threads = Self { shared: Arc::clone(shared), list: Mutex::default() };
        for number in 0..=THREADS {
            let shared = Arc::clone(shared);
            let work = move || {
                let jobs = if number == 0 { &shared.changes } else { &shared.others };
                work(&shared, jobs);
            };
            let thread =
                std::thread::Builder::new().name(format!("dmz-io-{number}")).spawn(work)?;
            threads.list.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        Ok(threads)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.stop();
        let list = std::mem::take(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in list {
            let _ = thread.join();
        }
    }
}

fn work(shared: &Shared, jobs: &Jobs<Job>) {
    let _fuse = Fuse(shared);
    loop {
        match jobs.next() {
            Next::Closed => return,
            Next::Timeout => {
                if let Some(cache) = &shared.devices.cache {
                    cache.tidy();
                }
                shared.turn(&mut shared.state());
            }
            Next::Job(Job { io, mut bytes }) => {
                let result = shared.devices.execute(&io, shared.zone_blocks, &mut bytes);
                shared.completed(&io, &bytes, result);
            }
        }
    }
}

impl Shared {
    fn completed(&self, io: &Io, bytes: &[u8], result: Result<(), IoFailed>) {
        let mut state = self.state();
        if state.fallen {
            return;
        }
        if io.kind == IoKind::Read {
            state.volume.buffer_mut(io.id).copy_from_slice(bytes);
        }
        let now = state.now;
        state.volume.completed(now, io.id, result);
        self.turn(&mut state);
    }
}
