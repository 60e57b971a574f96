//! A zoned volume of policy `dmz` in real time: on a zoned device with conventional zones, or on a regular one, whose space is the
//! cache, and a zoned one.
//!
//! One lock guards the engine ([`onefold_zoned::Volume`]) and the journal detector; nobody holds it while a device works.
//! What the engine asks for goes to one of two queues: writes and resets of sequential zones to one with a single thread,
//! because they have to get there in order, everything else to one that a few threads serve. Whoever brings a completion
//! back lets the engine go on.
//!
//! 1. A write is answered when its device has it; it is durable after the next flush, map and validity included.
//! 2. A call waits for the next completion while the engine has as many requests as it takes.
//! 3. A panic ends the volume: whoever waits gets an error, and so does every later call.
//! 4. The detector sees every write after the engine took it. It only says which chunk is pinned.

mod block_device;
mod cache;
mod check;
mod details;
mod devices;
mod error;
mod open;
mod state;
mod threads;

use std::sync::{Arc, MutexGuard, RwLock};
use std::time::Duration;

use onefold_units::Status;
use onefold_zoned::{Recovery, Refusal, Request};

use crate::driver::{Answer, Driven, Fallible, Fuse, Guarded, Jobs, Threads};
use crate::volume::{Layer, VolumeError};
use state::State;
use threads::Job;

pub use cache::DmzCache;
pub use check::DmzChecked;
pub use details::DmzDetails;
pub use devices::DmzDevices;
pub use error::DmzError;
pub use open::{DmzMade, DmzOpened, DmzOptions};

struct Shared {
    state: Guarded<State>,
    /// Writes and resets of sequential zones, in order.
    changes: Jobs<Job>,
    /// Everything else.
    others: Jobs<Job>,
    devices: DmzDevices,
    recovery: Recovery,
    took: Duration,
    uuid: [u8; 16],
    rewrite: RwLock<()>,
    size: u64,
    zone_blocks: u32,
}

/// A handle of a zoned volume; copies are the same volume.
///
/// Dropping all handles without [`DmzVolume::close`] is a power cut.
#[derive(Clone)]
pub struct DmzVolume {
    shared: Arc<Shared>,
    /// Ends them when it goes.
    _threads: Arc<Threads<Shared>>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Lets everything go on that can, and hands out what the engine asks for. Called after whatever happened.
    fn turn(&self, state: &mut State) {
        if state.fallen {
            return;
        }
        state.now = state.now.max(self.state.now());
        state.handle_timeouts();
        state.answer();
        state.look();
        while let Some(io) = state.volume.poll_io() {
            let job = Job::new(io, &state.volume);
            let in_order = state.is_sequential(&io);
            if in_order { self.changes.push(job) } else { self.others.push(job) }
        }
        let due = state.due().map(|at| self.state.instant(at));
        let tidy = self.devices.cache.as_ref().and_then(DmzCache::due);
        self.others.wake_at(due.into_iter().chain(tidy).min());
        self.state.tell_progress();
    }

    /// Has the engine carry out a request, and waits for its end. `seen` is called when the engine has taken it.
    fn carry_out(
        &self,
        request: Request,
        seen: impl FnOnce(&mut State),
    ) -> Result<Vec<u8>, Status> {
        let _fuse = Fuse(self);
        let answer = Answer::default();
        let mut state = self.state();
        while !state.fallen && state.is_full() {
            state = self.state.wait(state);
        }
        if state.fallen {
            return Err(Status::Poisoned);
        }
        let taken = state.submit(request, &answer);
        taken.map_err(|refusal| match refusal {
            Refusal::Busy => Status::Poisoned,
            Refusal::InvalidField => Status::InvalidField,
        })?;
        seen(&mut state);
        self.turn(&mut state);
        drop(state);
        answer.wait()
    }

    fn check_range(&self, offset: u64, len: u64) -> Result<(), Status> {
        let inside = len > 0 && offset.checked_add(len).is_some_and(|end| end <= self.size);
        if inside { Ok(()) } else { Err(Status::InvalidField) }
    }
}

impl Driven for Shared {
    fn stop(&self) {
        self.changes.close();
        self.others.close();
    }

    fn fall(&self) {
        self.state().fall();
        self.stop();
        self.state.tell_progress();
    }
}

impl Layer for DmzVolume {
    fn close(&self) -> Result<(), VolumeError> {
        Self::close(self).map_err(|error| VolumeError::Below(Box::new(error)))
    }
}

impl DmzVolume {
    /// Ends the volume in good order: reclaim is given up, everything is durable, and the next opening has nothing to put
    /// right. Requests have to be over; calls after that are answered with [`Status::Poisoned`].
    ///
    /// # Errors
    /// A device failed; what was flushed before is safe.
    pub fn close(&self) -> Result<(), DmzError> {
        let shared = &*self.shared;
        let mut state = shared.state();
        let now = state.now;
        if !state.fallen {
            state.volume.close(now);
        }
        // A device that takes no metadata is not waited for.
        let is_vain = |state: &State| state.volume.is_frozen() || state.volume.stalled().is_some();
        while !state.fallen && !is_vain(&state) && !state.volume.is_closed() {
            shared.turn(&mut state);
            state = shared.state.wait(state);
        }
        let closed = !state.fallen && state.volume.is_closed();
        state.fall();
        drop(state);
        shared.stop();
        if !closed {
            return Err(DmzError::Failed);
        }
        shared.devices.close()
    }
}
