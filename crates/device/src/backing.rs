//! The file under an image. The only module that names `std::fs::File`, so that every write and
//! every flush of a device passes here.

#[cfg(test)]
pub(crate) mod chaos;

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use onefold_units::IoFailed;
use onefold_units::convert::index;
use onefold_volume::Buffer;
use rustix::fs::{AtFlags, FallocateFlags, FlockOperation, OFlags, StatxFlags};
use rustix::io::{Errno, ReadWriteFlags};

/// Zeroes written at once where holes cannot be punched.
const ZEROES: [u8; 16_384] = [0; 16_384];

/// How an image is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To serve it: nobody else may have it open.
    Exclusive,
    /// To look at it: others may look, too.
    ReadOnly,
}

/// Alignment of memory and offsets that direct access never asks more than.
const ALIGN: usize = 4096;

thread_local! {
    /// Aligned memory between direct access and callers whose memory is not.
    static BOUNCE: RefCell<Buffer> = RefCell::new(Buffer::default());
}

/// An open file.
#[derive(Debug)]
pub(crate) struct Backing {
    file: File,
    /// Bytes that memory has to be a multiple of, once access is direct.
    direct: OnceLock<usize>,
    /// Error number of the synchronisation that failed, if one did ([`Backing::sync_for_good`]).
    unsynced: Mutex<Option<i32>>,
    #[cfg(test)]
    pub(crate) chaos: Mutex<Option<chaos::Chaos>>,
}

impl Backing {
    fn new(file: File) -> Self {
        Self {
            file,
            direct: OnceLock::new(),
            unsynced: Mutex::default(),
            #[cfg(test)]
            chaos: Mutex::default(),
        }
    }

    /// Makes a file that was not there before.
    pub(crate) fn create_new(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        Ok(Self::new(file))
    }

    pub(crate) fn open(path: &Path, access: Access) -> io::Result<Self> {
        let write = access == Access::Exclusive;
        let mut options = OpenOptions::new();
        options.read(true).write(write);
        // A block device that is mounted or part of another one is busy then (open(2)).
        if write && std::fs::metadata(path)?.file_type().is_block_device() {
            options.custom_flags(OFlags::EXCL.bits().cast_signed());
        }
        let file = options.open(path)?;
        Ok(Self::new(file))
    }

    /// Takes the lock that goes with `access`. `false` if somebody holds one that excludes it. The
    /// lock ends with the process, however that ends.
    pub(crate) fn try_lock(&self, access: Access) -> io::Result<bool> {
        let operation = match access {
            Access::Exclusive => FlockOperation::NonBlockingLockExclusive,
            Access::ReadOnly => FlockOperation::NonBlockingLockShared,
        };
        match rustix::fs::flock(&self.file, operation) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the lock up before the last reference to the file goes, of which an `io_uring` may hold one for a while.
    pub(crate) fn unlock(&self) -> io::Result<()> {
        Ok(rustix::fs::flock(&self.file, FlockOperation::Unlock)?)
    }

    /// Size in bytes, or `None` if it is not a regular file.
    pub(crate) fn size(&self) -> io::Result<Option<u64>> {
        let metadata = self.file.metadata()?;
        Ok(metadata.is_file().then_some(metadata.len()))
    }

    /// Where a regular file or a block device ends, in bytes.
    pub(crate) fn end(&self) -> io::Result<u64> {
        Ok(rustix::fs::seek(&self.file, rustix::fs::SeekFrom::End(0))?)
    }

    /// The parts of the first `bytes` of a file that are not holes, as far as the file system tells.
    pub(crate) fn data(&self, bytes: u64) -> Vec<Range<u64>> {
        let seek = |to| rustix::fs::seek(&self.file, to);
        let mut parts = Vec::new();
        let mut at = 0;
        while at < bytes {
            let begin = match seek(rustix::fs::SeekFrom::Data(at)) {
                // No data from here to the end.
                Err(Errno::NXIO) => break,
                Ok(begin) => begin.max(at),
                // Who does not know may not say that there is none.
                Err(_) => at,
            };
            let end = seek(rustix::fs::SeekFrom::Hole(begin)).unwrap_or(bytes).min(bytes);
            if end <= begin {
                break;
            }
            parts.push(begin..end);
            at = end;
        }
        parts
    }

    /// Bytes that the file takes on disk.
    pub(crate) fn allocated(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.blocks() * 512)
    }

    /// Bytes that the file system under a regular file still has for whoever runs this process.
    pub(crate) fn free(&self) -> io::Result<u64> {
        let found = rustix::fs::fstatvfs(&self.file)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    pub(crate) fn set_size(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    /// Goes around the page cache from now on, where the file system can do that for whole blocks of 4 KiB. What is read
    /// or written then has to be made of such blocks.
    pub(crate) fn go_direct(&self) -> io::Result<()> {
        let flags = rustix::fs::fcntl_getfl(&self.file)?;
        let statx = rustix::fs::statx(&self.file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
        let known = statx.ok().filter(|statx| statx.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
        let (memory, offset) = match known {
            Some(statx) => (index(statx.stx_dio_mem_align), index(statx.stx_dio_offset_align)),
            // Before Linux 6.1 nobody tells.
            None => (ALIGN, ALIGN),
        };
        if memory == 0 || memory > ALIGN || offset == 0 || offset > ALIGN {
            return Err(Errno::OPNOTSUPP.into());
        }
        rustix::fs::fcntl_setfl(&self.file, flags | OFlags::DIRECT)?;
        let mut first = Buffer::new(ALIGN);
        if let Err(error) = self.file.read_at(first.bytes_mut(), 0) {
            rustix::fs::fcntl_setfl(&self.file, flags)?;
            return Err(error);
        }
        let _ = self.direct.set(memory);
        Ok(())
    }

    /// Whether access goes around the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        self.direct.get().is_some()
    }

    /// Whether memory has to be copied to an aligned place first.
    fn is_misaligned(&self, bytes: &[u8]) -> bool {
        self.direct.get().is_some_and(|align| !bytes.as_ptr().addr().is_multiple_of(*align))
    }

    pub(crate) fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        #[cfg(test)]
        self.disturb_read()?;
        if !self.is_misaligned(bytes) {
            return self.file.read_exact_at(bytes, offset);
        }
        bounce(bytes.len(), |aligned| {
            self.file.read_exact_at(aligned, offset)?;
            bytes.copy_from_slice(aligned);
            Ok(())
        })
    }

    pub(crate) fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        self.disturb_write(offset, bytes)?;
        if !self.is_misaligned(bytes) {
            return self.file.write_all_at(bytes, offset);
        }
        bounce(bytes.len(), |aligned| {
            aligned.copy_from_slice(bytes);
            self.file.write_all_at(aligned, offset)
        })
    }

    /// As [`Self::write_at`], and what was written is durable when it returns; what was written elsewhere need not be.
    pub(crate) fn write_durable_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        self.disturb_write(offset, bytes)?;
        if self.is_misaligned(bytes) {
            return bounce(bytes.len(), |aligned| {
                aligned.copy_from_slice(bytes);
                self.put_durable(offset, aligned)
            });
        }
        self.put_durable(offset, bytes)
    }

    fn put_durable(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (mut at, mut left) = (offset, bytes);
        while !left.is_empty() {
            let part = [io::IoSlice::new(left)];
            match rustix::io::pwritev2(&self.file, &part, at, ReadWriteFlags::DSYNC) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    at += onefold_units::convert::u64_from(written);
                    left = &left[written..];
                }
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                    self.file.write_all_at(left, at)?;
                    return self.file.sync_data();
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Major and minor number, if it is a block device.
    pub(crate) fn device_number(&self) -> io::Result<Option<(u32, u32)>> {
        let metadata = self.file.metadata()?;
        let number = metadata.rdev();
        let is_block_device = metadata.file_type().is_block_device();
        Ok(is_block_device.then(|| (rustix::fs::major(number), rustix::fs::minor(number))))
    }

    /// Makes everything written so far durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        #[cfg(test)]
        if self.disturb_sync()? {
            return Ok(());
        }
        self.file.sync_data()
    }

    /// Makes everything written so far durable. Once that has failed, it fails for whoever asks: the operating system may
    /// have dropped what it could not write, and tells only the first who asks after that.
    pub(crate) fn sync_for_good(&self) -> io::Result<()> {
        let mut unsynced = self.unsynced.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = *unsynced {
            return Err(io::Error::from_raw_os_error(number));
        }
        let synced = self.sync();
        if let Err(error) = &synced {
            *unsynced = Some(error.raw_os_error().unwrap_or(0));
        }
        synced
    }

    /// Makes a range read as zeroes and gives its blocks back where the file system can do that.
    pub(crate) fn zero(&self, offset: u64, len: u64) -> io::Result<()> {
        if len == 0 || self.punch(offset, len)? {
            return Ok(());
        }
        let end = offset + len;
        let mut at = offset;
        while at < end {
            let chunk = (end - at).min(onefold_units::convert::u64_from(ZEROES.len()));
            self.write_at(at, &ZEROES[..onefold_units::convert::index64(chunk)])?;
            at += chunk;
        }
        Ok(())
    }

    /// Gives the blocks of a range back. `false` if the file system cannot.
    pub(crate) fn punch(&self, offset: u64, len: u64) -> io::Result<bool> {
        #[cfg(test)]
        self.disturb_write(offset, &vec![0; onefold_units::convert::index64(len)])?;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, flags, offset, len) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Backing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// What a failure of the host means to whoever asked: one without room is told from one that failed.
pub(crate) fn failure(error: &io::Error) -> IoFailed {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => IoFailed::NoSpace,
        _ => IoFailed::Error,
    }
}

/// Lends aligned memory of the thread.
fn bounce<T>(len: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    BOUNCE.with_borrow_mut(|buffer| {
        if buffer.bytes().len() < len {
            *buffer = Buffer::new(len);
        }
        work(&mut buffer.bytes_mut()[..len])
    })
}

/// Makes the entry of a new file in its directory durable.
pub(crate) fn sync_directory_of(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or_else(|| Path::new(".")))?.sync_all()
}
