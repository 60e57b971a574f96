//! Two system calls that `rustix` has not: clones of ranges, and a look at locks of every process, this one too.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::ioctl::{Setter, ioctl, opcode};

use super::real::Real;
use crate::backing;

/// `struct file_clone_range`.
#[repr(C)]
struct CloneRange {
    source: i64,
    source_offset: u64,
    bytes: u64,
    offset: u64,
}

const FICLONERANGE: rustix::ioctl::Opcode = opcode::write::<CloneRange>(0x94, 13);

/// Makes `bytes` bytes of `target` from `offset` on share the blocks of `source` (FICLONERANGE).
pub(super) fn clone_range(
    source: impl AsFd,
    source_offset: u64,
    bytes: u64,
    target: BorrowedFd<'_>,
    offset: u64,
) -> Result<(), Errno> {
    let source = i64::from(source.as_fd().as_raw_fd());
    let range = CloneRange { source, source_offset, bytes, offset };
    // SAFETY: the operation takes exactly this structure, and keeps nothing of it.
    let setter = unsafe { Setter::<FICLONERANGE, CloneRange>::new(range) };
    // SAFETY: both descriptors are open, and no memory of the process changes but mappings of the file, which SQLite expects.
    unsafe { ioctl(target, setter) }
}

/// Place of the descriptor in `unixFile` of SQLite: behind three pointers, since 3.7 at least.
const DESCRIPTOR_AT: usize = 3 * size_of::<*const ()>();

/// The descriptor that SQLite itself has of a database, if it is found. A second one would drop the locks of SQLite when it is
/// closed, and SQLite has no call that tells its own. The number is believed only if it is a file of that path.
pub(super) fn descriptor<'a>(real: &'a Real, path: &Path) -> Option<BorrowedFd<'a>> {
    let at = real.as_ptr().cast::<RawFd>().wrapping_add(DESCRIPTOR_AT / size_of::<RawFd>());
    // SAFETY: the VFS `unix` has files of more than these 28 bytes, all written when it opened this one.
    let number = unsafe { at.read() };
    if number < 0 {
        return None;
    }
    // SAFETY: if it is a descriptor of this database, SQLite keeps it until the file is closed; all others are only looked at.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    let found = rustix::fs::fstat(descriptor).ok()?;
    let expected = rustix::fs::stat(path).ok()?;
    (found.st_dev == expected.st_dev && found.st_ino == expected.st_ino).then_some(descriptor)
}

/// A constant as `struct flock` has it.
const fn short(value: i32) -> i16 {
    let [low, high, ..] = value.to_le_bytes();
    i16::from_le_bytes([low, high])
}

/// The byte of the shared memory's file that every connection keeps locked for reading (`UNIX_SHM_DMS`).
const LIVE_BYTE: i64 = 128;

/// Files of shared memory that were looked at, by device and inode. They stay open: to close one would drop the locks that a
/// connection of this process without the extension may have on it.
static LOOKED_AT: Mutex<BTreeMap<(u64, u64), OwnedFd>> = Mutex::new(BTreeMap::new());

/// Whether a connection of any process has this shared memory open.
pub(super) fn is_live(shared_memory: &Path) -> io::Result<bool> {
    let mut files = LOOKED_AT.lock().unwrap_or_else(PoisonError::into_inner);
    let found = match std::fs::metadata(shared_memory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        found => found?,
    };
    let known = files.entry((found.dev(), found.ino()));
    let file = match known {
        Entry::Occupied(file) => file.into_mut(),
        Entry::Vacant(place) => place.insert(backing::open(shared_memory)?),
    };
    let mut lock = libc::flock {
        l_type: short(libc::F_WRLCK),
        l_whence: short(libc::SEEK_SET),
        l_start: LIVE_BYTE,
        l_len: 1,
        l_pid: 0,
    };
    // A lock of an open file, unlike one of a process, is told of locks of this process too.
    // SAFETY: the descriptor is open, and the structure outlives the call.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(i32::from(lock.l_type) != libc::F_UNLCK)
}
