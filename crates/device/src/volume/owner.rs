//! The thread that owns the backing of a volume: all its requests go through one ring.
//!
//! Differs from volume.md, section 1, and from what issue 5 calls one owner thread: the engine is
//! not run by this thread alone. A front end calls and waits, so a write of 4 KiB would have to go
//! to another thread and back, 12 to 29 us on the machine of docs/volume-numbers.md, for 1 us of
//! work. So whoever calls does what the engine has to do for it, under its lock, and this thread
//! does all I/O, keeps the time and takes in what is over.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use onefold_volume::IoFailed;

use super::access::DirectFile;
use super::bell::Bell;
use super::kernel::{Over, Ring};
use super::{Driver, State};
use crate::driver::Fuse;

/// Starts the owner.
pub(super) fn start(
    driver: &Arc<Driver>,
    file: &Arc<DirectFile>,
    bell: &Arc<Bell>,
) -> io::Result<JoinHandle<()>> {
    let (sender, receiver) = sync_channel(1);
    let (driver, file, bell) = (Arc::clone(driver), Arc::clone(file), Arc::clone(bell));
    let run = move || own(&driver, file, bell, &sender);
    let thread = thread::Builder::new().name("volume".into()).spawn(run)?;
    receiver.recv().map_err(io::Error::other)??;
    Ok(thread)
}

/// A ring belongs to the thread that made it, so it is made here.
fn own(
    driver: &Arc<Driver>,
    file: Arc<DirectFile>,
    bell: Arc<Bell>,
    made: &SyncSender<io::Result<()>>,
) {
    let ring = Ring::new(file, bell, Arc::clone(driver));
    let (mut ring, result) = match ring {
        Ok(ring) => (ring, Ok(())),
        Err(error) => {
            let _ = made.send(Err(error));
            return;
        }
    };
    let _ = made.send(result);
    // Declared behind the ring, so that it goes first: nobody waits for what is under way then.
    let _fuse = Fuse(&**driver);
    let mut longest = Some(Duration::ZERO);
    loop {
        if let Err(error) = ring.wait(longest) {
            tracing::error!(%error, "the kernel does not serve the volume any more; open it again");
            return driver.stop();
        }
        let mut state = driver.state();
        state.engine.inbox.asleep = false;
        for over in ring.take() {
            match over {
                // What the volume was doing is half done.
                Over::Volume(..) if state.over => {}
                Over::Volume(io, result) => {
                    let now = state.now;
                    state.engine.volume.completed(now, io.id, result);
                }
                Over::Host(read, result) => read.answer(result),
            }
        }
        if state.engine.inbox.closed {
            // What was not started is lost, as in a power cut; what was is waited for.
            state.engine.inbox.reads.drain(..).for_each(|read| read.answer(Err(IoFailed::Error)));
            if ring.is_idle() {
                return;
            }
            longest = None;
            continue;
        }
        let wake = driver.turn(&mut state);
        hand_out(&mut ring, &mut state);
        (state.engine.inbox.asleep, state.engine.inbox.until) = (true, wake);
        drop(state);
        longest = wake.map(|wake| wake.saturating_duration_since(Instant::now()));
    }
}

fn hand_out(ring: &mut Ring<Arc<Driver>>, state: &mut State) {
    while ring.has_room(1)
        && let Some(io) = state.engine.inbox.requests.pop_front()
    {
        ring.start(&mut *state.engine.volume, io);
    }
    while let Some(read) = state.engine.inbox.reads.front()
        && ring.has_room(read.pieces().len())
        && let Some(read) = state.engine.inbox.reads.pop_front()
    {
        ring.gather(read);
    }
}
