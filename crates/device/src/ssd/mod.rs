//! An emulated SSD in an image file, in real time.
//!
//! One lock guards the device; a request holds it while its bytes move. What has to be durable takes
//! a *ticket* under that lock, and then waits for a synchronisation of the file.
//!
//! 1. A ticket is covered by any synchronisation that begins after it was given out; what was
//!    acknowledged before a flush arrived was written before the flush has its ticket, on whatever
//!    connection it came (frontends.md, E1).
//! 2. Nobody holds the lock of the device while waiting for one, so other requests go on; all that
//!    wait for the same share one.
//! 3. What the file does not take waits in memory (`FileMedia`). Meanwhile reads go on, requests that change something or
//!    make it durable are refused before they do anything, and each of them tries the file again first.
//! 4. After a failed synchronisation nothing is changed until the device is opened again, and reads go on.
//! 5. Lifetime counters are saved before each synchronisation that a request waits for, and beside requests once a second.
//!    What the buffer has learnt is kept with them when the map has a new checkpoint.
//! 6. A request that waits for a synchronisation while the power is cut fails: tickets are of one life of the device.

mod control;
mod details;
mod hold;
mod open;
mod power;
mod remap;
mod snapshots;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onefold_format::Lifetime;
use onefold_ftl::FtlStats;
use onefold_ssd::{Command, Payload, Ssd};
use onefold_units::convert::u64_from;
use onefold_units::{Nanos, Op, Status};

pub use control::CONTROL_BYTES;
pub use details::SsdDetails;
pub use open::{OpenOptions, Opened};
pub use power::PowerCut;
pub use remap::MailboxBlock;
pub(crate) use snapshots::give_up;

use control::{Control, Slots};
use snapshots::Snapshots;

use crate::backing::Backing;
use crate::block::{BlockDevice, Due, Extent, RemapWatcher};
use crate::host_watch::HostWatch;
use crate::image::{Counting, DeviceError, FlashCounts, Image, Ledger, io_error};
use crate::media::{FileMedia, Ticket};

/// Most bytes that one question for an extent looks at, so that it holds the lock for microseconds.
const EXTENT_MAX: u64 = 1 << 30;

/// Time between two savings of the lifetime counters without a synchronisation.
const SAVE_COUNTS: Nanos = Nanos::new(1_000_000_000);

/// When requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// Not before the modelled device would.
    Model,
    /// At once.
    None,
}

struct State {
    /// `None` once the device is closed.
    ssd: Option<Ssd<FileMedia>>,
    image: Image,
    /// Power cuts since it was opened (invariant 6).
    life: u64,
    /// Time of the last command: submission times never decrease.
    now: Nanos,
    /// What people were told of the host.
    watch: HostWatch,
    counting: Counting,
    /// When the lifetime counters were saved last.
    counts_saved: Nanos,
    /// Checkpoints of the map when that was kept which the buffer has learnt.
    learnt_saved: u64,
}

/// What synchronisations of the file cover.
struct Synced {
    /// The last ticket.
    ticket: Ticket,
    ledger: Ledger,
}

struct Shared {
    state: Mutex<State>,
    /// Held during a synchronisation; taken before `state`.
    synced: Mutex<Synced>,
    /// The device is closed, or a panic left it in an unknown state.
    poisoned: AtomicBool,
    /// Whether requests wait for room on the host, and what wakes them early.
    waits_for_room: Mutex<bool>,
    wake: Condvar,
    backing: Arc<Backing>,
    size: u64,
    /// Bytes of the smallest flushed write that leaves nothing unused ([`SsdConfig::write_unit_bytes`]).
    unit_bytes: u32,
    uuid: [u8; 16],
    latency: Latency,
    start: Instant,
    unflushed: Unflushed,
    flush_ns: AtomicU64,
    recovery_ns: AtomicU64,
    /// Replies of the control export.
    slots: Slots,
    remap_watchers: Mutex<Vec<RemapWatcher>>,
    /// Taken before `state`, never while that is held.
    snapshots: Snapshots,
}

/// What was acknowledged and not flushed.
#[derive(Default)]
struct Unflushed {
    writes: AtomicU64,
    bytes: AtomicU64,
}

impl Unflushed {
    fn add(&self, bytes: u64) {
        self.writes.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Writes and bytes by now.
    fn count(&self) -> (u64, u64) {
        (self.writes.load(Relaxed), self.bytes.load(Relaxed))
    }

    /// Those were flushed. Two flushes at once may have seen the same.
    fn subtract(&self, (writes, bytes): (u64, u64)) {
        for (count, less) in [(&self.writes, writes), (&self.bytes, bytes)] {
            let _ = count.fetch_update(Relaxed, Relaxed, |count| Some(count.saturating_sub(less)));
        }
    }

    /// Writes and bytes by now, which count no more.
    fn take(&self) -> (u64, u64) {
        (self.writes.swap(0, Relaxed), self.bytes.swap(0, Relaxed))
    }
}

/// A handle of an emulated SSD; copies are the same device.
///
/// Dropping all handles without [`SsdDevice::close`] is a power cut.
#[derive(Clone)]
pub struct SsdDevice {
    shared: Arc<Shared>,
}

impl SsdDevice {
    /// Identity of the device.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.shared.uuid
    }

    /// Ends the device in good order: everything is written, and the next opening has nothing to
    /// recover. Requests after that are answered with [`Status::Poisoned`].
    pub fn close(&self) -> Result<(), DeviceError> {
        let mut synced = self.shared.synced();
        let mut state = self.shared.state();
        let Some(mut ssd) = state.ssd.take() else { return Ok(()) };
        let path = state.image.path().to_owned();
        if self.shared.poisoned.load(Relaxed) {
            return Err(DeviceError::Poisoned { path });
        }
        let now = self.shared.now(state.now);
        self.shared.poisoned.store(true, Relaxed);
        let down = ssd.shut_down(now);
        let settled = ssd.ftl_mut().nand_mut().media_mut().settle();
        if let Err(held) = settled {
            return Err(DeviceError::Held { path, held });
        }
        down.map_err(|source| DeviceError::Close { path, source })?;
        let counters = state.counting.total(flash_counts(&ssd));
        let kept = state.image.keep(&ssd);
        state.image.end_use(&mut synced.ledger, &counters)?;
        kept.map_err(io_error(state.image.path(), "write the table of the buffer of"))
    }

    fn read_range(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        let command = Command::new(Op::Read, offset, u64_from(buf.len()));
        let mut state = self.shared.usable()?;
        let done = self.shared.submit(&mut state, &command, Payload::Read(buf));
        state.look();
        done
    }

    fn change<'a>(
        &self,
        command: &Command,
        payload: impl Fn() -> Payload<'a>,
    ) -> Result<Due, Status> {
        let shared = &*self.shared;
        shared.when_there_is_room(|| {
            if command.fua {
                return shared.submit_durably(command, payload());
            }
            let mut state = shared.admit()?;
            let done = shared.submit(&mut state, command, payload());
            state.look();
            done
        })
    }

    /// Notes that bytes were acknowledged that no flush has covered.
    fn unflushed(&self, bytes: u64, fua: bool) {
        if !fua {
            self.shared.unflushed.add(bytes);
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|broken| {
            // A panic left the device in an unknown state: as after an error of the file.
            self.poisoned.store(true, Relaxed);
            broken.into_inner()
        })
    }

    fn usable(&self) -> Result<MutexGuard<'_, State>, Status> {
        let state = self.state();
        if self.poisoned.load(Relaxed) { Err(Status::Poisoned) } else { Ok(state) }
    }

    fn now(&self, last: Nanos) -> Nanos {
        let now = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Nanos::new(now).max(last)
    }

    fn is_inside(&self, offset: u64, len: u64) -> bool {
        len > 0 && offset.checked_add(len).is_some_and(|end| end <= self.size)
    }

    fn submit(
        &self,
        state: &mut State,
        command: &Command,
        payload: Payload<'_>,
    ) -> Result<Due, Status> {
        let now = self.tick(state);
        let done = state.ssd()?.submit(now, command, payload).map_err(|error| error.status());
        match &done {
            Ok(_) => state.counting.done(command.op, command.len),
            Err(Status::MediaError) if command.op == Op::Read => {
                state.counting.host.failed_reads += 1;
            }
            Err(_) => {}
        }
        self.save_counts(state);
        Ok(self.due(done?.at))
    }

    /// Saves the lifetime counters, if that is due. A synchronisation that is under way has saved them (invariant 5).
    fn save_counts(&self, state: &mut State) {
        if state.now.saturating_sub(state.counts_saved) < SAVE_COUNTS {
            return;
        }
        let Ok(mut synced) = self.synced.try_lock() else { return };
        state.save_counts(&mut synced.ledger);
    }

    /// The time of the next command.
    fn tick(&self, state: &mut State) -> Nanos {
        state.now = self.now(state.now);
        state.now
    }

    /// When a command may be answered that the model completes at `at`.
    fn due(&self, at: Nanos) -> Due {
        match self.latency {
            Latency::Model => self.start.checked_add(Duration::from_nanos(at.get())),
            Latency::None => None,
        }
    }

    /// Executes a flush or a FUA write and waits until what it wrote is durable.
    fn submit_durably(&self, command: &Command, payload: Payload<'_>) -> Result<Due, Status> {
        self.durably(|state| self.submit(state, command, payload))
    }

    /// Does what ends with a flush of the FTL, and waits until that is durable.
    fn durably<T, E: From<Status>>(
        &self,
        work: impl FnOnce(&mut State) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut state = self.admit()?;
        state.media()?.postpone_sync();
        let done = work(&mut state);
        let media = state.media()?;
        // A flush promises nothing of what is still in memory.
        let drained = media.drain().map_err(|held| E::from(held.status()));
        let done = match drained.and(done) {
            Ok(done) => done,
            Err(error) => {
                media.sync_after_all();
                state.look();
                return Err(error);
            }
        };
        let (ticket, mark) = media.begin_sync();
        let life = state.life;
        drop(state);
        let synced = self.sync_file(ticket);
        let mut state = self.state();
        if state.life != life {
            return Err(Status::MediaError.into());
        }
        let media = state.media()?;
        let ended = match synced {
            Ok(()) => {
                media.synced(ticket, mark);
                Ok(done)
            }
            Err(error) => {
                media.sync_failed(&error);
                Err(Status::MediaError.into())
            }
        };
        state.look();
        ended
    }

    /// Waits until a synchronisation covers `ticket` (invariants 1 and 2).
    fn sync_file(&self, ticket: Ticket) -> std::io::Result<()> {
        let mut synced = self.synced();
        if synced.ticket >= ticket {
            return Ok(());
        }
        // Everything that waits for the lock by now has its ticket and is covered.
        let mut state = self.state();
        let newest = state.media().map_or(ticket, |media| media.newest_ticket());
        state.save_counts(&mut synced.ledger);
        drop(state);
        self.backing.sync_for_good()?;
        synced.ticket = newest;
        synced.ledger.synced();
        Ok(())
    }

    fn remap_watchers(&self) -> MutexGuard<'_, Vec<RemapWatcher>> {
        // A watcher is there or not.
        self.remap_watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn synced(&self) -> MutexGuard<'_, Synced> {
        self.synced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flush(&self) -> Result<Due, Status> {
        let begin = Instant::now();
        let covered = self.unflushed.count();
        let command = Command::new(Op::Flush, 0, 0);
        let result = self.when_there_is_room(|| self.submit_durably(&command, Payload::None));
        if result.is_ok() {
            self.unflushed.subtract(covered);
        }
        let took = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.flush_ns.store(took, Relaxed);
        result
    }
}

impl State {
    fn ssd(&mut self) -> Result<&mut Ssd<FileMedia>, Status> {
        self.ssd.as_mut().ok_or(Status::Poisoned)
    }

    fn media(&mut self) -> Result<&mut FileMedia, Status> {
        Ok(self.ssd()?.ftl_mut().nand_mut().media_mut())
    }

    /// The lifetime counters by now; `None` once the device is closed.
    fn lifetime(&self) -> Option<Lifetime> {
        Some(self.counting.total(flash_counts(self.ssd.as_ref()?)))
    }

    /// Saves the lifetime counters if the file takes changes. It tells everybody else if it does not.
    fn save_counts(&mut self, ledger: &mut Ledger) {
        let Ok(None) = self.media().map(|media| media.held()) else { return };
        self.counts_saved = self.now;
        if let Some(counters) = self.lifetime() {
            let _ = ledger.save(&counters);
        }
        self.save_learnt();
    }

    /// Keeps what the buffer has learnt, if the map has a new checkpoint. A file that does not take it has an older one.
    fn save_learnt(&mut self) {
        let Some(ssd) = &self.ssd else { return };
        let checkpoints = ssd.ftl().stats().checkpoints;
        if self.learnt_saved != checkpoints {
            self.learnt_saved = checkpoints;
            let _ = self.image.keep(ssd);
        }
    }
}

fn flash_counts(ssd: &Ssd<FileMedia>) -> FlashCounts {
    let FtlStats { programs, erases, media_failures, .. } = ssd.ftl().stats();
    FlashCounts { programs, erases, media_failures }
}

impl SsdDevice {
    /// Writes to one of the drive's streams (`ftl.streams`). Those that it does not have are its last.
    pub(crate) fn write_to_stream(
        &self,
        offset: u64,
        data: &[u8],
        stream: u16,
    ) -> Result<Due, Status> {
        self.put(Command { stream, ..Command::new(Op::Write, offset, u64_from(data.len())) }, data)
    }

    fn put(&self, command: Command, data: &[u8]) -> Result<Due, Status> {
        let due = self.change(&command, || Payload::Write(data))?;
        self.unflushed(command.len, command.fua);
        Ok(due)
    }
}

impl BlockDevice for SsdDevice {
    fn size(&self) -> u64 {
        self.shared.size
    }

    fn unit_bytes(&self) -> u64 {
        self.shared.unit_bytes.into()
    }

    fn watch_remaps(&self, watcher: RemapWatcher) {
        self.shared.remap_watchers().push(watcher);
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        self.read_range(offset, buf)
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<Due, Status> {
        self.put(Command { fua, ..Command::new(Op::Write, offset, u64_from(data.len())) }, data)
    }

    fn flush(&self) -> Result<Due, Status> {
        self.shared.flush()
    }

    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.change(&Command::new(Op::Trim, offset, len), || Payload::None)
    }

    /// The device deallocates whole units whether or not it may: they read as zeroes either way,
    /// and space is set aside by capacity, not by allocation.
    fn write_zeroes(
        &self,
        offset: u64,
        len: u64,
        _may_unmap: bool,
        fua: bool,
    ) -> Result<Due, Status> {
        let command = Command::new(Op::WriteZeroes, offset, len);
        let due = self.change(&command, || Payload::Zeroes)?;
        if fua { Ok(due.max(self.flush()?)) } else { Ok(due) }
    }

    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
        if !self.shared.is_inside(offset, len) {
            return Err(Status::InvalidField);
        }
        let state = self.shared.usable()?;
        let ssd = state.ssd.as_ref().ok_or(Status::Poisoned)?;
        let (mapped, len) = ssd.extent(offset, len.min(EXTENT_MAX));
        Ok(Extent { len, mapped })
    }

    fn waits(&self, op: Op) -> bool {
        op != Op::Read && self.shared.waits_for_room()
    }

    fn stop_waiting(&self) {
        self.shared.stop_waiting();
    }

    fn control(&self) -> Option<Box<dyn BlockDevice>> {
        Some(Box::new(Control(self.clone())))
    }
}
