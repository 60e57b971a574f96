//! The file under an image. The only module that names `std::fs::File`, so that every write and
//! every flush of a device passes here.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, FlockOperation};
use rustix::io::Errno;

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

/// An open file.
#[derive(Debug)]
pub(crate) struct Backing {
    file: File,
}

impl Backing {
    /// Makes a file that was not there before.
    pub(crate) fn create_new(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        Ok(Self { file })
    }

    pub(crate) fn open(path: &Path, access: Access) -> io::Result<Self> {
        let write = access == Access::Exclusive;
        Ok(Self { file: OpenOptions::new().read(true).write(write).open(path)? })
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

    /// Size in bytes, or `None` if it is not a regular file.
    pub(crate) fn size(&self) -> io::Result<Option<u64>> {
        let metadata = self.file.metadata()?;
        Ok(metadata.is_file().then_some(metadata.len()))
    }

    /// Where a regular file or a block device ends, in bytes.
    pub(crate) fn end(&self) -> io::Result<u64> {
        Ok(rustix::fs::seek(&self.file, rustix::fs::SeekFrom::End(0))?)
    }

    /// Bytes that the file takes on disk.
    pub(crate) fn allocated(&self) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        Ok(self.file.metadata()?.blocks() * 512)
    }

    pub(crate) fn set_size(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    pub(crate) fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    pub(crate) fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    /// Makes everything written so far durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
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
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, flags, offset, len) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Makes the entry of a new file in its directory durable.
pub(crate) fn sync_directory_of(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or_else(|| Path::new(".")))?.sync_all()
}
