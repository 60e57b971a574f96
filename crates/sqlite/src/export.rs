//! Databases on devices, from the command line: made, named again, and copied to standard files.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use onefold_units::convert::{index64, u64_from};

use crate::backing::{self, Direct, Recovering};
use crate::blocks::Blocks;
use crate::device::{self, Device, Found, Pointer, WAL_BYTES_MIN};
use crate::error::DeviceError;
use crate::header::{self, HeaderBytes, Kind};
use crate::layout::BLOCK_BYTES;
use crate::recover::Aligned;
use crate::wal::Medium;

/// Bytes that are copied at once.
const CHUNK: usize = 1 << 20;

/// A disk with its control export.
#[derive(Clone, Copy, Debug)]
pub struct Disk<'a> {
    /// The disk: the file `disk` of FUSE, or a block device.
    pub disk: &'a Path,
    /// Its control export: `disk.ctl` of FUSE, or a block device of `NAME.ctl`.
    pub control: &'a Path,
}

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Bytes of the database.
    pub database_bytes: u64,
    /// Frames of the WAL up to the last commit.
    pub frames: u64,
}

/// Bytes of a WAL unless a number is given, and what of the disk it takes at most.
const WAL_BYTES: u64 = 256 << 20;
const WAL_SHARE: u64 = 4;

/// Makes an empty database on a disk, and the file `database` that names it. The WAL has `wal_bytes` bytes, or 256 MiB and not more than
/// a quarter of the disk. The disk loses what it held; one with a database is refused unless `is_forced`.
///
/// # Errors
/// Nothing has changed, unless writing to the disk failed.
pub fn create(
    database: &Path,
    disk: Disk<'_>,
    wal_bytes: Option<u64>,
    is_forced: bool,
) -> Result<(), DeviceError> {
    let blocks = Direct::open(disk.disk, disk.control)?;
    let failed = |source| DeviceError::File { what: "use", path: disk.disk.to_owned(), source };
    if let Found::Label(label) = device::look(&blocks).map_err(failed)?
        && !is_forced
    {
        return Err(DeviceError::Occupied { disk: disk.disk.to_owned(), found: label.id });
    }
    let bytes = blocks.bytes();
    let wal_bytes = wal_bytes.unwrap_or_else(|| WAL_BYTES.min(bytes / WAL_SHARE));
    let wal_bytes = wal_bytes.max(WAL_BYTES_MIN) / BLOCK_BYTES * BLOCK_BYTES;
    let expected = wal_bytes.saturating_mul(2);
    if bytes < expected {
        let disk = disk.disk.to_owned();
        return Err(DeviceError::TooSmall { disk, bytes, expected, wal_bytes });
    }
    let pointer = pointer(random_id().map_err(failed)?, disk)?;
    // The file comes first: it is refused if it is there, before the disk loses anything.
    backing::create(database, |out| out.write_all(pointer.to_string().as_bytes()))?;
    Device::format(blocks, pointer.id, wal_bytes).map(drop).map_err(failed)
}

/// Makes the file `database` for the database that a disk holds.
///
/// # Errors
/// Nothing has changed.
pub fn attach(database: &Path, disk: Disk<'_>) -> Result<(), DeviceError> {
    let blocks = Direct::open(disk.disk, disk.control)?;
    let failed = |source| DeviceError::File { what: "use", path: disk.disk.to_owned(), source };
    let id = match device::look(&blocks).map_err(failed)? {
        Found::Label(label) => label.id,
        Found::Damaged => return Err(DeviceError::Label { disk: disk.disk.to_owned() }),
        Found::Nothing => return Err(DeviceError::NoLabel { disk: disk.disk.to_owned() }),
    };
    let pointer = pointer(id, disk)?;
    device::open_disk(&pointer)?;
    backing::create(database, |out| out.write_all(pointer.to_string().as_bytes()))
}

/// Copies a database from its device to the new file `copy`, and its WAL, if it has commits, to a standard one beside it. Any SQLite
/// opens that. The database must not be open.
///
/// # Errors
/// The database is as it was.
pub fn export(database: &Path, copy: &Path) -> Result<Exported, DeviceError> {
    let file = Recovering::open(database)?;
    let no_pointer = || DeviceError::NoPointer { path: database.to_owned() };
    let pointer = Pointer::parse(&file.start()?).ok_or_else(no_pointer)??;
    let device = device::open_disk(&pointer)?;
    let failed = |source| DeviceError::File { what: "read", path: pointer.disk.clone(), source };
    let database_bytes = device.database_bytes().map_err(failed)?;
    let read = |buffer: &mut [u8], at| device.read_wal(buffer, at).map(|()| true);
    let mut start: HeaderBytes = [0; 32];
    read(&mut start, 0).map_err(failed)?;
    let wal = match header::kind(&start) {
        Kind::Aligned(layout) => Some(Aligned::new(start, layout)),
        Kind::Empty | Kind::Nothing | Kind::Foreign => None,
    };
    let whole = device.wal().bytes().unwrap_or(0);
    let frames = wal.as_ref().map_or(Ok(0), |wal| wal.committed(wal.frames(whole), read));
    let frames = frames.map_err(failed)?;
    // The WAL comes first: without it the copy would lack what was committed.
    if let Some(wal) = wal.filter(|_| frames > 0) {
        backing::create(&beside(copy), |out| wal.write(frames, read, out))?;
    }
    backing::create(copy, |out| copy_database(&device, database_bytes, out))?;
    Ok(Exported { database_bytes, frames })
}

/// A pointer that means the same in every folder.
fn pointer(id: u128, disk: Disk<'_>) -> Result<Pointer, DeviceError> {
    let [disk, control] = [disk.disk, disk.control].map(|path| {
        let failed = |source| DeviceError::File { what: "find", path: path.to_owned(), source };
        path.canonicalize().map_err(failed)
    });
    Pointer::new(id, &disk?, &control?)
}

fn copy_database(device: &Device, bytes: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut at = 0;
    while at < bytes {
        let count = index64((bytes - at).min(u64_from(CHUNK)));
        let there = device.database().read_at(&mut chunk[..count], at);
        there.map_err(|_| io::Error::other("the device cannot be read"))?;
        out.write_all(&chunk[..count])?;
        at += u64_from(count);
    }
    Ok(())
}

fn beside(copy: &Path) -> PathBuf {
    let mut path = copy.as_os_str().to_owned();
    path.push("-wal");
    path.into()
}

/// A number that no other database has.
fn random_id() -> io::Result<u128> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    Ok(u128::from_le_bytes(bytes).max(1))
}
