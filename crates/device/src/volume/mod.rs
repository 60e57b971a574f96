//! A volume in real time, on a file, a block device, or an emulated SSD.
//!
//! One lock guards the volume; nobody holds it while the backing works. What the volume asks for goes to a queue that a
//! few threads serve; whoever brings a completion back lets the volume go on. Reads of the host are done by the thread that
//! asked.
//!
//! 1. A call that the volume refuses as busy waits for the next completion and asks again.
//! 2. With [`Acknowledge::Buffered`] a write is answered when the volume has copied it. A failure that comes later makes the
//!    next flush fail, and every call after it.

mod access;
mod backing;
mod details;
mod jobs;
mod members;
mod open;
mod unaligned;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onefold_units::{Lba, Nanos, PAGE_BYTES, Status};
use onefold_volume::{
    Frozen, IoFailed, MemberId, REQUEST_BLOCKS_MAX, Range, ReadPlan, Refusal, Volume,
};

use crate::block::{BlockDevice, Due, Extent};
use jobs::{Job, Jobs};

pub use backing::VolumeBacking;
pub use details::VolumeDetails;
pub use open::{Acknowledge, VolumeError, VolumeOpened, VolumeOptions, VolumeSpec};

/// Longest time that a busy call sleeps before it looks again.
const BUSY_WAIT: Duration = Duration::from_millis(100);

/// How a request that waits ended.
type Outcome = Arc<(Mutex<Option<Result<(), IoFailed>>>, Condvar)>;

struct State {
    volume: Volume,
    now: Nanos,
    next_tag: u64,
    waiting: BTreeMap<u64, Outcome>,
    /// A write that was answered failed afterwards.
    failed: bool,
    fill: members::Fill,
}

struct Shared {
    state: Mutex<State>,
    /// Something completed, so busy calls may ask again.
    progress: Condvar,
    jobs: Jobs,
    backing: VolumeBacking,
    /// Writes of whole blocks share it; those that read and rewrite have it alone.
    rewrite: RwLock<()>,
    size: u64,
    start: Instant,
    acknowledge: Acknowledge,
}

/// A handle of a member of a volume: its device, a snapshot, or a clone. Copies are the same member.
///
/// Dropping all handles without [`VolumeDevice::close`] is a power cut.
#[derive(Clone)]
pub struct VolumeDevice {
    shared: Arc<Shared>,
    member: MemberId,
    threads: Arc<Threads>,
}

/// Ends the threads with the last handle.
struct Threads {
    shared: Arc<Shared>,
    list: Mutex<Vec<JoinHandle<()>>>,
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.jobs.close();
        let list = std::mem::take(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in list {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the volume go on and hands out what it asks for and what it has done. Called after whatever happened.
    fn turn(&self, state: &mut State) {
        let elapsed = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        state.now = state.now.max(Nanos::new(elapsed));
        state.volume.pump(state.now);
        while let Some(io) = state.volume.poll_io() {
            self.jobs.push(Job::new(io, &state.volume));
        }
        let timeout = state.volume.poll_timeout();
        self.jobs.wake_at(timeout.map(|at| self.start + Duration::from_nanos(at.get())));
        while let Some(done) = state.volume.poll_done() {
            match state.waiting.remove(&done.tag) {
                Some(outcome) => {
                    *outcome.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(done.result);
                    outcome.1.notify_one();
                }
                None => state.failed |= done.result.is_err(),
            }
        }
        state.fill.look(&state.volume);
        self.progress.notify_all();
    }

    /// A job came back.
    fn completed(&self, job: &Job, result: Result<(), IoFailed>) {
        let mut state = self.state();
        let (id, now) = (job.io.id, state.now);
        job.give_back(&mut state.volume);
        state.volume.completed(now, id, result);
        self.turn(&mut state);
    }

    /// Asks the volume until it is not busy.
    fn ask<T>(
        &self,
        mut what: impl FnMut(&mut State, u64) -> Result<T, Refusal>,
    ) -> Result<(T, u64), Status> {
        let mut state = self.state();
        loop {
            if state.failed {
                return Err(Status::Poisoned);
            }
            let tag = state.next_tag;
            match what(&mut state, tag) {
                Ok(done) => {
                    state.next_tag += 1;
                    return Ok((done, tag));
                }
                Err(Refusal::Busy) => {}
                Err(refusal) => return Err(status(refusal)),
            }
            self.turn(&mut state);
            let waited = self.progress.wait_timeout(state, BUSY_WAIT);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Asks the volume for something that it reports when it is done, and waits for that.
    fn ask_and_wait<T>(
        &self,
        mut what: impl FnMut(&mut State, u64) -> Result<T, Refusal>,
    ) -> Result<T, Status> {
        let outcome: Outcome = Arc::default();
        let (done, _) = self.ask(|state, tag| {
            let done = what(state, tag)?;
            state.waiting.insert(tag, Arc::clone(&outcome));
            self.turn(state);
            Ok(done)
        })?;
        let mut result = outcome.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *result {
                Some(Ok(())) => return Ok(done),
                Some(Err(IoFailed)) => return Err(Status::MediaError),
                None => result = outcome.1.wait(result).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Writes whole blocks.
    fn write_blocks(
        &self,
        member: MemberId,
        lba: u64,
        data: &[u8],
        fua: bool,
    ) -> Result<(), Status> {
        let most =
            usize::try_from(u64::from(REQUEST_BLOCKS_MAX) * PAGE_BYTES).unwrap_or(usize::MAX);
        let mut at = lba;
        for piece in data.chunks(most) {
            let blocks = u64::try_from(piece.len()).unwrap_or(u64::MAX) / PAGE_BYTES;
            let range = Range { lba: Lba::new(at), blocks };
            let write = |state: &mut State, tag| {
                state.volume.write_to(member, tag, range, Some(piece), fua)
            };
            if fua || self.acknowledge == Acknowledge::Complete {
                self.ask_and_wait(write)?;
            } else {
                self.ask(|state, tag| {
                    write(state, tag)?;
                    self.turn(state);
                    Ok(())
                })?;
            }
            at += blocks;
        }
        Ok(())
    }

    /// Reads whole blocks. A block whose checksum is wrong is read once more before the read fails.
    fn read_blocks(&self, member: MemberId, lba: u64, buffer: &mut [u8]) -> Result<(), Status> {
        let most =
            usize::try_from(u64::from(REQUEST_BLOCKS_MAX) * PAGE_BYTES).unwrap_or(usize::MAX);
        let mut plan = ReadPlan::default();
        let mut at = lba;
        for piece in buffer.chunks_mut(most) {
            let blocks = u64::try_from(piece.len()).unwrap_or(u64::MAX) / PAGE_BYTES;
            let range = Range { lba: Lba::new(at), blocks };
            self.ask(|state, _| {
                state.volume.read_from(member, range, Some(&mut *piece), &mut plan)
            })?;
            if !plan.runs().is_empty() {
                let done = self.backing.fetch(&plan, piece);
                let mut state = self.state();
                state.volume.end_read(&plan);
                if let Err(damaged) = done {
                    state.volume.count_crc_errors(damaged.into());
                    return Err(Status::MediaError);
                }
            }
            at += blocks;
        }
        Ok(())
    }

    /// Unmaps whole blocks.
    fn trim_blocks(&self, member: MemberId, lba: u64, blocks: u64) -> Result<(), Status> {
        let (mut at, end) = (lba, lba + blocks);
        while at < end {
            let range = Range { lba: Lba::new(at), blocks: end - at };
            let (taken, _) = self.ask(|state, tag| {
                let taken = state.volume.trim_of(member, tag, range)?;
                self.turn(state);
                Ok(taken)
            })?;
            at += taken;
        }
        Ok(())
    }

    fn check_range(&self, offset: u64, len: u64) -> Result<(), Status> {
        let inside = len > 0 && offset.checked_add(len).is_some_and(|end| end <= self.size);
        if inside { Ok(()) } else { Err(Status::InvalidField) }
    }
}

fn status(refusal: Refusal) -> Status {
    match refusal {
        // Front ends serve snapshots read-only, so nobody learns it from this.
        Refusal::InvalidField | Refusal::NoMember | Refusal::WriteProtected => Status::InvalidField,
        Refusal::NoSpace => Status::NoSpace,
        Refusal::MediaError => Status::MediaError,
        Refusal::Busy | Refusal::ReadOnly => Status::Poisoned,
    }
}

impl VolumeDevice {
    /// Ends the volume in good order: the next opening has nothing to recover. Calls after that are answered with
    /// [`Status::Poisoned`].
    ///
    /// # Errors
    /// The backing failed; what was flushed before is safe.
    pub fn close(&self) -> Result<(), VolumeError> {
        let shared = &*self.shared;
        let mut state = shared.state();
        state.volume.close();
        while state.volume.frozen().is_none() {
            shared.turn(&mut state);
            let waited = shared.progress.wait_timeout(state, BUSY_WAIT);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let closed = state.volume.frozen() == Some(Frozen::Closed) && !state.failed;
        drop(state);
        self.threads.shared.jobs.close();
        if !closed {
            return Err(VolumeError::Failed);
        }
        shared.backing.close()
    }
}

impl BlockDevice for VolumeDevice {
    fn size(&self) -> u64 {
        self.shared.size
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        self.shared.read(self.member, offset, buf).map(|()| None)
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<Due, Status> {
        self.shared.write(self.member, offset, data, fua).map(|()| None)
    }

    fn flush(&self) -> Result<Due, Status> {
        self.shared.ask_and_wait(|state, tag| state.volume.flush(tag)).map(|()| None)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.shared.zero(self.member, offset, len).map(|()| None)
    }

    fn write_zeroes(
        &self,
        offset: u64,
        len: u64,
        _may_unmap: bool,
        fua: bool,
    ) -> Result<Due, Status> {
        self.shared.zero(self.member, offset, len)?;
        if fua { self.flush() } else { Ok(None) }
    }

    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
        self.shared.check_range(offset, len)?;
        let (from, end) = (offset / PAGE_BYTES, (offset + len).div_ceil(PAGE_BYTES));
        let range = Range { lba: Lba::new(from), blocks: end - from };
        let ((mapped, blocks), _) =
            self.shared.ask(|state, _| state.volume.mapped_of(self.member, range))?;
        let bytes = (from + blocks) * PAGE_BYTES - offset;
        Ok(Extent { len: bytes.min(len), mapped })
    }
}
