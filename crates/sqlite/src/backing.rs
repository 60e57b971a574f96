//! Files that the VFS opens beside those of SQLite. The only module of the library that knows `File`.
//!
//! Closing a file drops the POSIX locks that its process has on it, so nobody else opens the database file a second time. On a
//! WAL there are none: SQLite locks the shared memory.

#![expect(clippy::disallowed_types, reason = "the one module that opens files")]

mod direct;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use onefold_units::convert::u64_from;
use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::io::Errno;

use crate::error::{DeviceError, RecoverError};

use crate::layout::BLOCK_BYTES;

pub(crate) use direct::Direct;

/// Opens a file to look at its locks.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(File::open(path)?.into())
}

/// A WAL, for what SQLite's own handle cannot do: locks among processes that use the extension, and clones.
#[derive(Debug)]
pub(crate) struct WalFile {
    file: File,
}

impl WalFile {
    /// Opens a WAL that exists.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: OpenOptions::new().read(true).open(path)? })
    }

    /// Keeps others from deciding on the header, or writing it, until the guard goes. The lock belongs to this open file: it
    /// also works among connections of one process.
    pub(crate) fn lock(&self) -> io::Result<HeaderLock<'_>> {
        rustix::io::retry_on_intr(|| flock(&self.file, FlockOperation::LockExclusive))?;
        Ok(HeaderLock(self))
    }

    /// Fills `buffer`.
    pub(crate) fn read(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, at)
    }
}

impl AsFd for WalFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The right to decide on the header of a WAL.
#[derive(Debug)]
pub(crate) struct HeaderLock<'a>(&'a WalFile);

impl Drop for HeaderLock<'_> {
    fn drop(&mut self) {
        // Cannot fail for a lock that is held; closing the file would end it as well.
        let _ = flock(&self.0.file, FlockOperation::Unlock);
    }
}

/// A database that is being recovered: nobody else has it open.
#[derive(Debug)]
pub(crate) struct Recovering {
    path: PathBuf,
    /// Holds the lock.
    database: File,
}

/// The WAL of a database that is being recovered.
#[derive(Debug)]
pub(crate) struct OldWal(File);

impl OldWal {
    /// Fills `buffer`, with zeroes behind the end. `false` if the file ended before.
    pub(crate) fn read(&self, buffer: &mut [u8], at: u64) -> io::Result<bool> {
        let mut done = 0;
        while done < buffer.len() {
            match self.0.read_at(&mut buffer[done..], at + u64_from(done)) {
                Ok(0) => {
                    buffer[done..].fill(0);
                    return Ok(false);
                }
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    pub(crate) fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

/// An error about a file.
fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecoverError {
    let path = path.to_owned();
    move |source| RecoverError::File { what, path, source }
}

impl Recovering {
    /// Opens a database and locks every byte: those of SQLite's locks are among them.
    pub(crate) fn open(database: &Path) -> Result<Self, RecoverError> {
        let path = fs::canonicalize(database).map_err(failed("open", database))?;
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(failed("open", &path))?;
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path, database: file }),
            Err(Errno::AGAIN | Errno::ACCESS) => Err(RecoverError::InUse { database: path }),
            Err(error) => Err(failed("lock", &path)(error.into())),
        }
    }

    /// The start of the file, up to 4 KiB.
    pub(crate) fn start(&self) -> Result<Vec<u8>, RecoverError> {
        let mut start = Vec::new();
        let read = (&self.database).take(BLOCK_BYTES).read_to_end(&mut start);
        read.map(|_| start).map_err(failed("read", &self.path))
    }

    /// Path of the WAL.
    pub(crate) fn wal_path(&self) -> PathBuf {
        self.beside("-wal")
    }

    /// The WAL, if there is one.
    pub(crate) fn wal(&self) -> Result<Option<OldWal>, RecoverError> {
        match File::open(self.wal_path()) {
            Ok(file) => Ok(Some(OldWal(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("open", &self.wal_path())(error)),
        }
    }

    /// Removes the WAL and its shared memory.
    pub(crate) fn remove_wal(&self) -> Result<(), RecoverError> {
        fs::remove_file(self.wal_path()).map_err(failed("remove", &self.wal_path()))?;
        self.sync_folder()?;
        self.remove_memory()
    }

    /// Replaces the WAL by what `write` writes, in one step.
    pub(crate) fn replace_wal(
        &self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), RecoverError> {
        let path = self.beside("-wal-standard");
        let written =
            self.write_synced(&path, write).and_then(|()| fs::rename(&path, self.wal_path()));
        if let Err(error) = written {
            // What is not whole must not stay; the first error is the one to tell.
            let _ = fs::remove_file(&path);
            return Err(failed("write", &path)(error));
        }
        self.sync_folder()?;
        self.remove_memory()
    }

    /// Writes a file with the rights of the WAL, and syncs it.
    fn write_synced(
        &self,
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        let old = fs::metadata(self.wal_path())?;
        file.set_permissions(old.permissions())?;
        std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()))?;
        let mut out = BufWriter::new(&file);
        write(&mut out)?;
        out.flush()?;
        file.sync_all()
    }

    fn sync_folder(&self) -> Result<(), RecoverError> {
        let folder = self.path.parent().unwrap_or_else(|| Path::new("/"));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(failed("sync", folder))
    }

    /// The shared memory belongs to the aligned WAL.
    fn remove_memory(&self) -> Result<(), RecoverError> {
        let path = self.beside("-wal-shm");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(ending);
        path.into()
    }
}

/// Makes a file that is not there, and syncs it and its name.
pub(crate) fn create(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), DeviceError> {
    let failed = |what: &'static str| {
        let path = path.to_owned();
        move |source| DeviceError::File { what, path, source }
    };
    let opened = OpenOptions::new().write(true).create_new(true).open(path);
    let file = opened.map_err(failed("create"))?;
    let mut out = BufWriter::new(&file);
    let written = write(&mut out).and_then(|()| out.flush()).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // What is not whole must not stay; the first error is the one to tell.
        let _ = fs::remove_file(path);
        return Err(failed("write")(error));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("sync the folder of"))
}
