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
//! 3. After a failed access to the file the device answers `Poisoned` until it is opened again.

mod control;
mod details;
mod open;
mod remap;
mod snapshots;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onefold_ftl::FtlError;
use onefold_nand::MediaError;
use onefold_ssd::{Command, Payload, Ssd, SsdError};
use onefold_units::convert::u64_from;
use onefold_units::{Nanos, Op, Status};

pub use control::CONTROL_BYTES;
pub use details::SsdDetails;
pub use open::{OpenOptions, Opened};
pub use remap::MailboxBlock;
pub(crate) use snapshots::give_up;

use control::{Control, Slots};
use snapshots::Snapshots;

use crate::backing::Backing;
use crate::block::{BlockDevice, Due, Extent};
use crate::image::{DeviceError, Image};
use crate::media::{FileMedia, Ticket};

/// Most bytes that one question for an extent looks at, so that it holds the lock for microseconds.
const EXTENT_MAX: u64 = 1 << 30;

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
    /// Time of the last command: submission times never decrease.
    now: Nanos,
}

struct Shared {
    state: Mutex<State>,
    /// The last ticket that a synchronisation of the file covers.
    synced: Mutex<Ticket>,
    poisoned: AtomicBool,
    backing: Arc<Backing>,
    size: u64,
    uuid: [u8; 16],
    latency: Latency,
    start: Instant,
    host_written: AtomicU64,
    unflushed: AtomicU64,
    flush_ns: AtomicU64,
    recovery: Duration,
    /// Replies of the control export.
    slots: Slots,
    /// Taken before `state`, never while that is held.
    snapshots: Snapshots,
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
        let mut state = self.shared.state();
        let Some(mut ssd) = state.ssd.take() else { return Ok(()) };
        let path = state.image.path().to_owned();
        if self.shared.poisoned.load(Relaxed) {
            return Err(DeviceError::Poisoned { path });
        }
        let now = self.shared.now(state.now);
        self.shared.poisoned.store(true, Relaxed);
        let down = ssd.shut_down(now).and_then(|()| {
            ssd.ftl_mut().nand_mut().media_mut().settle().map_err(|e| FtlError::from(e).into())
        });
        down.map_err(|source| DeviceError::Close { path, source })?;
        state.image.write_label(true)
    }

    fn submit(&self, command: &Command, payload: Payload<'_>) -> Result<Due, Status> {
        let shared = &*self.shared;
        let due = if command.fua {
            shared.submit_durably(command, payload)?
        } else {
            shared.submit(&mut *shared.usable()?, command, payload)?
        };
        if command.op == Op::Write {
            shared.host_written.fetch_add(command.len, Relaxed);
        }
        Ok(due)
    }

    /// Notes that bytes were acknowledged that no flush has covered.
    fn unflushed(&self, bytes: u64, fua: bool) {
        if !fua {
            self.shared.unflushed.fetch_add(bytes, Relaxed);
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
        let done = state.ssd()?.submit(now, command, payload);
        Ok(self.due(done.map_err(|error| self.judge(&error))?.at))
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

    /// The status of an error; poisons the device if its file failed.
    fn judge(&self, error: &SsdError) -> Status {
        if let SsdError::Ftl(FtlError::Media(MediaError::Backing { .. })) = error {
            self.poison(error);
        }
        error.status()
    }

    fn poison(&self, error: &dyn std::fmt::Display) {
        if !self.poisoned.swap(true, Relaxed) {
            tracing::error!(%error, "the image file failed; the device stops until it is reopened");
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
        let mut state = self.usable()?;
        state.media()?.postpone_sync();
        let done = work(&mut state);
        let (ticket, mark) = state.media()?.begin_sync();
        let done = done?;
        drop(state);
        let synced = self.sync_file(ticket);
        let mut state = self.state();
        let media = state.media()?;
        let ended = match synced {
            Ok(()) => media.synced(ticket, mark),
            Err(error) => Err(media.fail(&error)),
        };
        match ended {
            Ok(()) => Ok(done),
            Err(error) => {
                self.poison(&error);
                Err(Status::MediaError.into())
            }
        }
    }

    /// Waits until a synchronisation covers `ticket` (invariants 1 and 2).
    fn sync_file(&self, ticket: Ticket) -> std::io::Result<()> {
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        if *synced >= ticket {
            return Ok(());
        }
        // Everything that waits for the lock by now has its ticket and is covered.
        let newest = self.state().media().map_or(ticket, |media| media.newest_ticket());
        self.backing.sync()?;
        *synced = newest;
        Ok(())
    }

    fn flush(&self) -> Result<Due, Status> {
        let begin = Instant::now();
        let covered = self.unflushed.load(Relaxed);
        let result = self.submit_durably(&Command::new(Op::Flush, 0, 0), Payload::None);
        match &result {
            Ok(_) => {
                // Two flushes at once may have seen the same bytes.
                let less = |bytes: u64| Some(bytes.saturating_sub(covered));
                let _ = self.unflushed.fetch_update(Relaxed, Relaxed, less);
            }
            // What is durable is unknown from now on (frontends.md, E7).
            Err(status) => self.poison(&format_args!("a flush failed with {status:?}")),
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
}

impl BlockDevice for SsdDevice {
    fn size(&self) -> u64 {
        self.shared.size
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        let len = u64_from(buf.len());
        self.submit(&Command::new(Op::Read, offset, len), Payload::Read(buf))
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<Due, Status> {
        let len = u64_from(data.len());
        let command = Command { fua, ..Command::new(Op::Write, offset, len) };
        let due = self.submit(&command, Payload::Write(data))?;
        self.unflushed(len, fua);
        Ok(due)
    }

    fn flush(&self) -> Result<Due, Status> {
        self.shared.flush()
    }

    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.submit(&Command::new(Op::Trim, offset, len), Payload::None)
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
        let due = self.submit(&command, Payload::Zeroes)?;
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

    fn control(&self) -> Option<Box<dyn BlockDevice>> {
        Some(Box::new(Control(self.clone())))
    }
}
