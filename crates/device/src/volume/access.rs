//! The file or block device under a volume.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use onefold_volume::IoFailed;

use super::open::VolumeError;
use crate::backing::{Access, Backing};

/// An open and locked file.
pub(super) struct DirectFile {
    path: PathBuf,
    backing: Backing,
    bytes: AtomicU64,
}

impl DirectFile {
    pub(super) fn open(path: &Path, write: bool) -> Result<Self, VolumeError> {
        let access = if write { Access::Exclusive } else { Access::ReadOnly };
        let failed = |source| VolumeError::Io { path: path.to_owned(), action: "open", source };
        let backing = Backing::open(path, access).map_err(failed)?;
        if !backing.try_lock(access).map_err(failed)? {
            return Err(VolumeError::Busy { path: path.to_owned() });
        }
        let bytes = backing.end().map_err(failed)?;
        Ok(Self { path: path.to_owned(), backing, bytes: AtomicU64::new(bytes) })
    }

    pub(super) fn create(path: &Path, bytes: u64) -> Result<Self, VolumeError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => VolumeError::Exists { path: path.to_owned() },
            _ => VolumeError::Io { path: path.to_owned(), action: "create", source },
        };
        let backing = Backing::create_new(path).map_err(failed)?;
        backing.try_lock(Access::Exclusive).map_err(failed)?;
        backing.set_size(bytes).map_err(failed)?;
        crate::backing::sync_directory_of(path).map_err(failed)?;
        Ok(Self { path: path.to_owned(), backing, bytes: AtomicU64::new(bytes) })
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Whether it is a file, whose size can be set.
    pub(super) fn is_regular(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|metadata| metadata.is_file())
    }

    pub(super) fn set_bytes(&self, bytes: u64) -> Result<(), VolumeError> {
        let path = || self.path.clone();
        let failed = |source| VolumeError::Io { path: path(), action: "resize", source };
        self.backing.set_size(bytes).map_err(failed)?;
        self.backing.sync().map_err(failed)?;
        self.bytes.store(bytes, Ordering::Release);
        Ok(())
    }

    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        self.judge("read", self.backing.read_at(offset, bytes))
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        self.judge("write", self.backing.write_at(offset, bytes))
    }

    pub(super) fn flush(&self) -> Result<(), IoFailed> {
        self.judge("flush", self.backing.sync())
    }

    /// A hint: a file system or device that cannot do it keeps the blocks.
    pub(super) fn trim(&self, offset: u64, len: u64) -> Result<(), IoFailed> {
        self.judge("trim", self.backing.punch(offset, len).map(drop))
    }

    fn judge(&self, action: &str, result: io::Result<()>) -> Result<(), IoFailed> {
        result.map_err(|error| {
            tracing::error!(path = %self.path.display(), %error, action, "the backing failed");
            IoFailed
        })
    }
}
