//! What only `unsafe` reaches of the kernel: `io_uring`, BLKDISCARD, and the zones of block devices. The only such module of this
//! crate.
//!
//! 1. The kernel reads and writes the memory of a request from [`Ring::start`] until its completion was taken, so that
//!    memory must neither go nor move, and nobody else may write it. The engine promises that of its requests
//!    ([`onefold_volume::Io`]); buffers of reads of the host belong to the ring meanwhile.
//! 2. A ring ends only when nothing is under way, and holds on to what owns the volume until then. One that the kernel does
//!    not serve any more cannot know: what its requests may still use is never freed.
//! 3. The kernel is asked again while it has no memory, but not for ever: then the request fails, or the ring is over.

#![expect(
    unsafe_code,
    reason = "io_uring and ioctl(2) take bare pointers; the invariants above are kept here"
)]

mod bulk;
mod discard;
mod zones;

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use onefold_units::PAGE_BYTES;
use onefold_units::convert::{index, index64, u32_from, u64_from};
use onefold_volume::{Buffer, Engine, Io, IoFailed, IoKind};
use rustix::io::Errno;

use super::access::DirectFile;
use super::bell::Bell;
use super::refusals::Refusals;
use super::scatter::Scatter;

pub(super) use bulk::read_all;
pub(super) use discard::discard;
pub(super) use zones::{
    BlkZone, BlkZoneReport, REPORT_ZONES, finish_zones, report_zones, reset_zones,
};

/// Requests under way at most. A volume has some dozens of its own, so there is always room for all 255 pieces of the
/// longest read of the host soon.
const DEPTH: u32 = 512;

/// What comes back when the owner was rung for. Slots have smaller numbers.
const RUNG: u64 = u64::MAX;

/// Whose request it is.
#[derive(Clone, Copy)]
enum Origin {
    Volume(Io),
    /// A piece of the read in that place.
    Host(usize),
}

/// A request under way. Transfers may come in parts.
struct Slot {
    origin: Origin,
    kind: IoKind,
    offset: u64,
    address: *mut u8,
    left: usize,
    refusals: Refusals,
}

/// A read of the host with several pieces.
struct Gathering {
    read: Scatter,
    buffer: Buffer,
    pieces: usize,
    result: Result<(), IoFailed>,
}

/// What is over.
pub(super) enum Over {
    Volume(Io, Result<(), IoFailed>),
    Host(Scatter, Result<Buffer, IoFailed>),
}

/// Requests to one file. Used by the thread that made it.
pub(super) struct Ring<K> {
    uring: IoUring,
    file: Arc<DirectFile>,
    bell: Arc<Bell>,
    rung: Box<[u8; 8]>,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    reads: Vec<Option<Gathering>>,
    over: Vec<Over>,
    in_flight: u32,
    refusals: Refusals,
    /// The kernel does not serve it any more.
    broken: Option<io::Error>,
    /// Owns the volume (invariant 2).
    keep: Option<K>,
}

/// A ring that only its thread uses spares the kernel interrupts and locks; before Linux 6.1 there is none.
fn build() -> io::Result<IoUring> {
    let special = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(2 * DEPTH)
        .build(DEPTH);
    let uring = special.or_else(|_| IoUring::builder().setup_cqsize(2 * DEPTH).build(DEPTH))?;
    let params = uring.params();
    if !params.is_feature_ext_arg() || !params.is_feature_nodrop() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "it is older than Linux 5.11"));
    }
    Ok(uring)
}

/// Whether this process may have a ring: containers often forbid it.
pub(super) fn is_available() -> io::Result<()> {
    build().map(drop)
}

impl<K> Ring<K> {
    pub(super) fn new(file: Arc<DirectFile>, bell: Arc<Bell>, keep: K) -> io::Result<Self> {
        let mut ring = Self {
            uring: build()?,
            file,
            bell,
            rung: Box::default(),
            slots: Vec::new(),
            free: Vec::new(),
            reads: Vec::new(),
            over: Vec::new(),
            in_flight: 0,
            refusals: Refusals::default(),
            broken: None,
            keep: Some(keep),
        };
        ring.listen();
        Ok(ring)
    }

    /// Whether a request of so many pieces finds room. One place is the bell's.
    pub(super) fn has_room(&self, pieces: usize) -> bool {
        index(self.in_flight) + pieces < index(DEPTH)
    }

    /// Whether nothing is under way.
    pub(super) const fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    /// Starts a request of the volume that is kept with this ring.
    pub(super) fn start(&mut self, volume: &mut dyn Engine, io: Io) {
        let len = index(io.blocks) * index64(PAGE_BYTES);
        let address = match io.kind {
            IoKind::Read => volume.buffer_mut(io.id)[..len].as_mut_ptr(),
            // The kernel only reads it.
            IoKind::Write => volume.buffer(io.id)[..len].as_ptr().cast_mut(),
            IoKind::Flush | IoKind::Trim => std::ptr::null_mut(),
            // Files cannot remap, so the volume copies; zones are managed by a thread.
            IoKind::Remap | IoKind::Reset | IoKind::Finish | IoKind::Report => {
                return self.end(Origin::Volume(io), Err(IoFailed::Error));
            }
        };
        let offset = u64::from(io.at.raw()) * PAGE_BYTES;
        let (origin, refusals) = (Origin::Volume(io), Refusals::default());
        self.begin(Slot { origin, kind: io.kind, offset, address, left: len, refusals });
    }

    /// Starts all pieces of a read of the host.
    pub(super) fn gather(&mut self, read: Scatter) {
        let mut buffer = Buffer::new(read.len());
        let bytes = buffer.bytes_mut();
        let place = self.reads.iter().position(Option::is_none).unwrap_or(self.reads.len());
        let piece = |(offset, part): (u64, std::ops::Range<usize>)| {
            let (origin, part) = (Origin::Host(place), &mut bytes[part]);
            let (address, left) = (part.as_mut_ptr(), part.len());
            Slot {
                origin,
                kind: IoKind::Read,
                offset,
                address,
                left,
                refusals: Refusals::default(),
            }
        };
        let slots: Vec<Slot> = read.pieces().map(piece).collect();
        let gathering = Some(Gathering { read, buffer, pieces: slots.len(), result: Ok(()) });
        match self.reads.get_mut(place) {
            Some(free) => *free = gathering,
            None => self.reads.push(gathering),
        }
        for slot in slots {
            self.begin(slot);
        }
    }

    fn begin(&mut self, slot: Slot) {
        if self.file.is_to_fail() {
            return self.end(slot.origin, Err(IoFailed::Error));
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let entry = self.entry(&slot, number);
        self.slots[number] = Some(slot);
        self.in_flight += 1;
        self.push(&entry);
    }

    fn entry(&self, slot: &Slot, number: usize) -> squeue::Entry {
        let file = Fd(self.file.as_fd().as_raw_fd());
        let len = u32_from(slot.left);
        let entry = match slot.kind {
            IoKind::Read => opcode::Read::new(file, slot.address, len).offset(slot.offset).build(),
            IoKind::Write => {
                opcode::Write::new(file, slot.address.cast_const(), len).offset(slot.offset).build()
            }
            IoKind::Flush => {
                opcode::Fsync::new(file).flags(io_uring::types::FsyncFlags::DATASYNC).build()
            }
            IoKind::Remap | IoKind::Reset | IoKind::Finish | IoKind::Report => {
                unreachable!("`start` refuses it")
            }
            IoKind::Trim => {
                let mode =
                    rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
                let mode = mode.bits().cast_signed();
                opcode::Fallocate::new(file, u64_from(slot.left))
                    .offset(slot.offset)
                    .mode(mode)
                    .build()
            }
        };
        entry.user_data(u64_from(number))
    }

    /// Waits for the bell.
    fn listen(&mut self) {
        let bell = Fd(self.bell.as_fd().as_raw_fd());
        let entry = opcode::Read::new(bell, self.rung.as_mut_ptr(), 8).build().user_data(RUNG);
        self.push(&entry);
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the memory and the file of the entry live until its completion was taken (invariants 1 and 2).
        while self.broken.is_none() && unsafe { self.uring.submission().push(entry) }.is_err() {
            // The queue is full: what is in it goes to the kernel.
            let submitted = self.uring.submit();
            self.note(submitted);
        }
    }

    /// Takes in how the kernel answered: where it is short of memory nothing is lost, and it is asked again (invariant 3).
    fn note(&mut self, submitted: io::Result<usize>) {
        let Err(error) = submitted else {
            self.refusals = Refusals::default();
            return;
        };
        match Errno::from_io_error(&error) {
            Some(Errno::TIME | Errno::INTR) => self.refusals = Refusals::default(),
            _ if self.refusals.are_too_many() => self.broken = Some(error),
            _ => {}
        }
    }

    /// Sends what was started, and waits until something is over, the bell rings or the time has come.
    ///
    /// # Errors
    /// The kernel does not serve the ring any more. What was started will never be over.
    pub(super) fn wait(&mut self, longest: Option<Duration>) -> io::Result<()> {
        if let Some(error) = &self.broken {
            return Err(io::Error::new(error.kind(), format!("io_uring_enter(2): {error}")));
        }
        if !self.over.is_empty() {
            return Ok(());
        }
        let timeout = longest
            .map(|longest| Timespec::new().sec(longest.as_secs()).nsec(longest.subsec_nanos()));
        let args = match &timeout {
            Some(timeout) => SubmitArgs::new().timespec(timeout),
            None => SubmitArgs::new(),
        };
        let submitted = self.uring.submitter().submit_with_args(1, &args);
        self.note(submitted);
        Ok(())
    }

    /// Takes all that is over.
    pub(super) fn take(&mut self) -> std::vec::Drain<'_, Over> {
        let entries: Vec<(u64, i32)> =
            self.uring.completion().map(|entry| (entry.user_data(), entry.result())).collect();
        for (number, result) in entries {
            if number == RUNG {
                self.listen();
            } else {
                self.completed(index64(number), result);
            }
        }
        self.over.drain(..)
    }

    fn completed(&mut self, number: usize, result: i32) {
        let Some(mut slot) = self.slots[number].take() else { return };
        self.free.push(number);
        self.in_flight -= 1;
        let moved = usize::try_from(result).unwrap_or(0);
        let again = [Errno::AGAIN, Errno::INTR].iter().any(|errno| -errno.raw_os_error() == result);
        let transfers = matches!(slot.kind, IoKind::Read | IoKind::Write);
        if transfers && moved > 0 && moved < slot.left {
            slot.offset += u64_from(moved);
            slot.address = slot.address.wrapping_add(moved);
            slot.left -= moved;
            slot.refusals = Refusals::default();
            return self.begin(slot);
        }
        if again && !slot.refusals.are_too_many() {
            return self.begin(slot);
        }
        let result = match result {
            // Nothing is behind the end of the file.
            0 if transfers => Err(io::ErrorKind::UnexpectedEof.into()),
            0.. => Ok(()),
            _ => Err(io::Error::from_raw_os_error(-result)),
        };
        let result = self.judge(&slot, result);
        self.end(slot.origin, result);
    }

    fn judge(&self, slot: &Slot, result: io::Result<()>) -> Result<(), IoFailed> {
        match (slot.kind, result) {
            // A hint: a file system that cannot do it keeps the blocks.
            (IoKind::Trim, Err(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
            (IoKind::Read, result) => self.file.judge("read", result),
            (IoKind::Write, result) => self.file.judge("write", result),
            (IoKind::Flush, result) => self.file.judge("flush", result),
            (IoKind::Trim, result) => self.file.judge("trim", result),
            (IoKind::Remap | IoKind::Reset | IoKind::Finish | IoKind::Report, _) => {
                Err(IoFailed::Error)
            }
        }
    }

    fn end(&mut self, origin: Origin, result: Result<(), IoFailed>) {
        let place = match origin {
            Origin::Volume(io) => return self.over.push(Over::Volume(io, result)),
            Origin::Host(place) => place,
        };
        let Some(gathering) = self.reads[place].as_mut() else { return };
        gathering.result = gathering.result.and(result);
        gathering.pieces -= 1;
        if gathering.pieces == 0
            && let Some(Gathering { read, buffer, result, .. }) = self.reads[place].take()
        {
            self.over.push(Over::Host(read, result.map(|()| buffer)));
        }
    }
}

impl<K> Drop for Ring<K> {
    /// Waits for all that is under way (invariant 2).
    fn drop(&mut self) {
        while self.in_flight > 0 && self.wait(None).is_ok() {
            for over in self.take() {
                if let Over::Host(read, _) = over {
                    read.answer(Err(IoFailed::Error));
                }
            }
        }
        if self.in_flight == 0 {
            return;
        }
        std::mem::forget((self.keep.take(), std::mem::take(&mut self.rung)));
        for Gathering { read, buffer, .. } in self.reads.drain(..).flatten() {
            std::mem::forget(buffer);
            read.answer(Err(IoFailed::Error));
        }
    }
}

#[cfg(test)]
mod tests;
