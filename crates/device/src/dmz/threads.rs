//! What a zoned volume asks of its devices, done by a few threads.

use onefold_units::PAGE_BYTES;
use onefold_units::convert::{index, index64};
use onefold_zoned::{Io, IoFailed, IoKind, Volume};

use super::Shared;
use crate::driver::{Jobs, Threads, work};

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

/// Starts the threads of a volume.
pub(super) fn start(threads: &Threads<Shared>) -> std::io::Result<()> {
    threads.start("dmz-io-0".to_owned(), |shared| run(shared, &shared.changes))?;
    let others = |number| {
        threads.start(format!("dmz-io-{number}"), |shared: &Shared| run(shared, &shared.others))
    };
    (1..=THREADS).try_for_each(others)
}

fn run(shared: &Shared, jobs: &Jobs<Job>) {
    let due = || {
        if let Some(cache) = &shared.devices.cache {
            cache.tidy();
        }
        shared.turn(&mut shared.state());
    };
    work(jobs, due, |Job { io, mut bytes }| {
        let result = shared.devices.execute(&io, shared.zone_blocks, &mut bytes);
        shared.completed(&io, &bytes, result);
    });
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
