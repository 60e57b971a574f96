//! A volume in real time, on a file, a block device, or an emulated SSD.
//!
//! One lock guards the volume; nobody holds it while the backing works. What the volume asks for goes to the thread that
//! owns an `io_uring` ([`owner`]), or where there is none to a queue that a few threads serve ([`jobs`]); whoever brings a
//! completion back lets the volume go on. Reads of the host that lie in one place are done by the thread that asked.
//!
//! 1. A call that the volume refuses as busy waits for the next completion and asks again.
//! 2. A panic ends the volume: what it was doing is half done. Whoever waits gets an error, and so does every later call ([`fuse`]).
//! 3. The detector of journals sees every write after the volume took it ([`watch`]).
//! 4. With [`onefold_volume::Acknowledge::Buffered`] a write is answered when the volume has copied it. What the backing does not take later stays in
//!    memory until it does; a flush before that fails.

mod access;
mod backing;
mod bell;
mod block_device;
mod contents;
mod details;
mod disk_zones;
mod error;
mod faults;
mod fill;
mod fuse;
mod inbox;
mod io_mode;
mod jobs;
mod journals;
mod kernel;
mod label;
mod members;
mod modes;
mod open;
mod options;
mod owner;
mod patience;
mod refusals;
mod replay;
mod resize;
mod scatter;
mod scrub;
mod size;
mod space;
mod spec;
mod stalls;
mod state;
mod summed;
mod unit;
mod watch;
mod zones;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
use std::time::{Duration, Instant};

use onefold_units::Status;
use onefold_volume::{Frozen, IoFailed, IoKind, MemberId, Recovery, Refusal};

use crate::driver::{Answer, Driven, Fuse, Guarded, Jobs, Threads};
pub use backing::{Layer, VolumeBacking};
use bell::Bell;
pub use details::{LogDetails, MAP_PAGE_BYTES, VolumeDetails};
pub use error::VolumeError;
pub use io_mode::IoMode;
use jobs::Job;
pub use journals::{JournalDetails, Journals};
pub use open::VolumeOpened;
pub use options::{OnFull, VolumeIo, VolumeOptions};
pub use replay::Replayed;
pub use resize::VolumeResize;
use size::Size;
pub use spec::VolumeSpec;
pub(crate) use spec::random_uuid;
use state::State;

/// How long closing waits for a backing that takes no writes, after changes are refused.
const CLOSE_PATIENCE: Duration = Duration::from_secs(10);

/// What is known since the volume was opened.
struct Opening {
    uuid: [u8; 16],
    io: IoMode,
    remaps: bool,
    recovery: Recovery,
    took: Duration,
}

struct Shared {
    state: Guarded<State>,
    /// The detector has something to do.
    watched: Condvar,
    jobs: Jobs<Job>,
    /// Wakes the owner of the ring; `None` where threads do the I/O.
    bell: Option<Arc<Bell>>,
    /// Trims, and resets and finishes of zones, take a thread although there is a ring, which knows trims of files only.
    thread_manages: bool,
    opening: Opening,
    backing: VolumeBacking,
    /// Writes of whole blocks share it; those that read and rewrite have it alone.
    rewrite: RwLock<()>,
    /// Those of members that somebody has a handle of.
    sizes: Mutex<BTreeMap<MemberId, Arc<Size>>>,
    writes_wait: bool,
    /// Blocks that the volume takes at once.
    write_blocks_max: u32,
    /// Writes for which there is no space wait for some.
    waits_for_space: AtomicBool,
}

/// A handle of a member of a volume: its device, a snapshot, or a clone. Copies are the same member.
///
/// Dropping all handles without [`VolumeDevice::close`] is a power cut.
#[derive(Clone)]
pub struct VolumeDevice {
    shared: Arc<Shared>,
    member: MemberId,
    size: Arc<Size>,
    /// Ends them when it goes.
    _threads: Arc<Threads<Shared>>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn tick(&self, state: &mut State) {
        state.now = state.now.max(self.state.now());
    }

    /// Lets the volume go on and hands out what it asks for and what it has done. Called after whatever happened. Gives the
    /// time when it has to be called again although nothing did.
    fn turn(&self, state: &mut State) -> Option<Instant> {
        if state.fallen {
            return None;
        }
        self.tick(state);
        state.volume.pump(state.now);
        while let Some(io) = state.volume.poll_io() {
            let manages = !matches!(io.kind, IoKind::Read | IoKind::Write | IoKind::Flush);
            if self.bell.is_none() || (self.thread_manages && manages) {
                self.jobs.push(Job::new(io, &*state.volume));
            } else {
                state.inbox.requests.push_back(io);
            }
        }
        let timeout = state.volume.poll_timeout();
        let wake = timeout.map(|at| self.state.instant(at));
        match &self.bell {
            Some(bell) if state.inbox.has_to_wake(wake) => bell.ring(),
            Some(_) => {}
            None => self.jobs.wake_at(wake),
        }
        while let Some(done) = state.volume.poll_done() {
            // Where nobody waits, what was taken stays in memory until it is written, or the volume takes no changes any more.
            state.waiting.end(done.tag, done.result);
        }
        state.fill.look(&*state.volume);
        state.tell_damage();
        let State { volume, faults_told, .. } = &mut *state;
        faults_told.tell(&**volume);
        // Without anybody who waits it would still be a system call.
        if state.busy > 0 {
            self.state.tell_progress();
        }
        wake
    }

    /// Sleeps until something completes, but not for long.
    fn wait<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.busy += 1;
        let mut state = self.state.wait(state);
        state.busy -= 1;
        state
    }

    /// A job came back.
    fn completed(&self, job: &Job, result: Result<(), IoFailed>) {
        let mut state = self.state();
        if state.fallen {
            return;
        }
        let (id, now) = (job.io.id, state.now);
        job.give_back(&mut *state.volume);
        state.volume.completed(now, id, result);
        self.turn(&mut state);
    }

    /// Asks the volume until it is not busy.
    fn ask<T>(
        &self,
        mut what: impl FnMut(&mut State, u64) -> Result<T, Refusal>,
    ) -> Result<(T, u64), Status> {
        let _fuse = Fuse(self);
        let mut state = self.state();
        let mut since = None;
        loop {
            if state.fallen {
                return Err(Status::Poisoned);
            }
            let tag = state.waiting.tag();
            match what(&mut state, tag) {
                Ok(done) => {
                    state.waiting.taken();
                    if let Some(since) = since {
                        state.stalls.note(Instant::elapsed(&since));
                    }
                    return Ok((done, tag));
                }
                Err(Refusal::Busy) => {}
                Err(refusal) => return Err(status(refusal)),
            }
            since.get_or_insert_with(Instant::now);
            self.turn(&mut state);
            state = self.wait(state);
        }
    }

    /// Asks the volume for something that it reports when it is done, and waits for that.
    fn ask_and_wait<T>(
        &self,
        mut what: impl FnMut(&mut State, u64) -> Result<T, Refusal>,
    ) -> Result<T, Status> {
        let answer = Answer::default();
        let (done, _) = self.ask(|state, tag| {
            let done = what(state, tag)?;
            state.waiting.expect(tag, &answer);
            self.turn(state);
            Ok(done)
        })?;
        answer.wait()?;
        Ok(done)
    }
}

/// What a refusal is to a client.
fn status(refusal: Refusal) -> Status {
    match refusal {
        // Front ends serve snapshots read-only, so nobody learns it from this.
        Refusal::InvalidField | Refusal::NoMember | Refusal::WriteProtected => Status::InvalidField,
        Refusal::NoSpace => Status::NoSpace,
        Refusal::MediaError => Status::MediaError,
        Refusal::Backing(why) => why.into(),
        Refusal::Busy | Refusal::ReadOnly => Status::Poisoned,
    }
}

impl Layer for VolumeDevice {
    fn close(&self) -> Result<(), VolumeError> {
        Self::close(self)
    }
}

impl VolumeDevice {
    /// Ends the volume in good order: the next opening has nothing to recover. Later calls are answered with [`Status::Poisoned`].
    ///
    /// # Errors
    /// The backing failed, or took no writes for ten seconds after changes were refused; what was flushed before is safe.
    pub fn close(&self) -> Result<(), VolumeError> {
        let shared = &*self.shared;
        shared.stop_waiting();
        let mut state = shared.state();
        if !state.fallen {
            state.volume.close();
        }
        let mut stalled = None;
        while state.volume.frozen().is_none() && !state.fallen {
            shared.turn(&mut state);
            state = shared.wait(state);
            let since =
                state.volume.stalled().and_then(|_| stalled.or_else(|| Some(Instant::now())));
            stalled = since;
            if since.is_some_and(|since| since.elapsed() > CLOSE_PATIENCE) {
                break;
            }
        }
        let closed = state.volume.frozen() == Some(Frozen::Closed) && !state.fallen;
        drop(state);
        shared.stop();
        if !closed {
            return Err(VolumeError::Failed);
        }
        shared.backing.close()
    }
}
