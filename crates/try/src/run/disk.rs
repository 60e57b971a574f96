//! The disk under a program: a sparse file. Power cuts happen on its tape, so nothing has to be durable here.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use onefold_device::observed::DeviceStats;
use onefold_device::{BlockDevice, Due, Extent};
use onefold_units::Status;
use onefold_units::convert::u64_from;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;

use crate::TryError;

/// A disk in a file.
#[derive(Debug)]
pub(super) struct FileDisk {
    file: File,
    bytes: u64,
}

impl FileDisk {
    /// The disk in a file that is there.
    pub(super) fn open(path: &Path) -> Result<Self, TryError> {
        let failed = TryError::io("open", path);
        let file = File::options().read(true).write(true).open(path).map_err(&failed)?;
        let bytes = file.metadata().map_err(&failed)?.len();
        Ok(Self { file, bytes })
    }

    fn expect_inside(&self, offset: u64, len: u64) -> Result<(), Status> {
        let end = offset.checked_add(len);
        end.filter(|end| *end <= self.bytes).map(drop).ok_or(Status::InvalidField)
    }
}

/// What the file system under the file said.
fn status(error: &io::Error) -> Status {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Status::NoSpace,
        _ => Status::MediaError,
    }
}

impl BlockDevice for FileDisk {
    fn size(&self) -> u64 {
        self.bytes
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        self.expect_inside(offset, u64_from(buf.len()))?;
        self.file.read_exact_at(buf, offset).map(|()| None).map_err(|error| status(&error))
    }

    fn write(&self, offset: u64, data: &[u8], _: bool) -> Result<Due, Status> {
        self.expect_inside(offset, u64_from(data.len()))?;
        self.file.write_all_at(data, offset).map(|()| None).map_err(|error| status(&error))
    }

    fn flush(&self) -> Result<Due, Status> {
        Ok(None)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.write_zeroes(offset, len, true, false)
    }

    fn write_zeroes(&self, offset: u64, len: u64, _: bool, _: bool) -> Result<Due, Status> {
        self.expect_inside(offset, len)?;
        if len == 0 {
            return Ok(None);
        }
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.file, hole, offset, len)
            .map(|()| None)
            .map_err(|error| status(&error.into()))
    }

    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
        self.expect_inside(offset, len)?;
        let run = |end: u64, mapped| Ok(Extent { len: end.min(offset + len) - offset, mapped });
        match seek(&self.file, SeekFrom::Data(offset)) {
            Ok(data) if data > offset => run(data, false),
            Ok(_) => run(seek(&self.file, SeekFrom::Hole(offset)).unwrap_or(self.bytes), true),
            Err(Errno::NXIO) => run(self.bytes, false),
            // Who does not know may not say that there is nothing.
            Err(_) => run(self.bytes, true),
        }
    }
}

impl DeviceStats for FileDisk {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        File::create(&path).unwrap().set_len(1 << 20).unwrap();
        let disk = FileDisk::open(&path).unwrap();
        assert_eq!(disk.extent(0, 1 << 20), Ok(Extent { len: 1 << 20, mapped: false }));
        disk.write(8192, &[7; 4096], false).unwrap();
        assert_eq!(disk.extent(0, 1 << 20), Ok(Extent { len: 8192, mapped: false }));
        assert_eq!(disk.extent(8192, 1 << 19), Ok(Extent { len: 4096, mapped: true }));
        let mut bytes = [1; 4096];
        disk.read(8192, &mut bytes).unwrap();
        assert_eq!(bytes, [7; 4096]);
        disk.trim(8192, 4096).unwrap();
        disk.read(8192, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 4096]);
        assert_eq!(disk.write(1 << 20, &[1], false), Err(Status::InvalidField));
        assert_eq!(disk.read(u64::MAX, &mut bytes), Err(Status::InvalidField));
    }
}
