//! A block device in memory, with the allocation state of every page.

use std::sync::RwLock;

use onefold_device::observed::DeviceStats;
use onefold_device::{BlockDevice, Due, Extent};
use onefold_units::Status;

const PAGE: u64 = 4096;

struct Inner {
    bytes: Vec<u8>,
    mapped: Vec<bool>,
}

/// Bytes and one bit per page.
pub(crate) struct MemoryDevice {
    size: u64,
    inner: RwLock<Inner>,
}

impl MemoryDevice {
    /// A device that is all zeroes and holes.
    pub(crate) fn new(size: u64) -> Self {
        let bytes = vec![0; usize::try_from(size).unwrap()];
        let mapped = vec![false; usize::try_from(size.div_ceil(PAGE)).unwrap()];
        Self { size, inner: RwLock::new(Inner { bytes, mapped }) }
    }

    fn range(&self, offset: u64, len: u64) -> Result<std::ops::Range<usize>, Status> {
        let end = offset.checked_add(len).filter(|end| *end <= self.size);
        let end = end.ok_or(Status::InvalidField)?;
        Ok(usize::try_from(offset).unwrap()..usize::try_from(end).unwrap())
    }
}

impl DeviceStats for MemoryDevice {}

impl BlockDevice for MemoryDevice {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        let range = self.range(offset, buf.len() as u64)?;
        buf.copy_from_slice(&self.inner.read().unwrap().bytes[range]);
        Ok(None)
    }

    fn write(&self, offset: u64, data: &[u8], _fua: bool) -> Result<Due, Status> {
        let range = self.range(offset, data.len() as u64)?;
        let mut inner = self.inner.write().unwrap();
        let pages = range.start / 4096..range.end.div_ceil(4096);
        inner.bytes[range].copy_from_slice(data);
        inner.mapped[pages].fill(true);
        Ok(None)
    }

    fn flush(&self) -> Result<Due, Status> {
        Ok(None)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.write_zeroes(offset, len, true, false)
    }

    fn write_zeroes(&self, offset: u64, len: u64, unmap: bool, _: bool) -> Result<Due, Status> {
        let range = self.range(offset, len)?;
        let mut inner = self.inner.write().unwrap();
        let whole = range.start.div_ceil(4096)..(range.end / 4096);
        let touched = range.start / 4096..range.end.div_ceil(4096);
        inner.bytes[range].fill(0);
        if !unmap {
            inner.mapped[touched].fill(true);
        } else if whole.start < whole.end {
            inner.mapped[whole].fill(false);
        }
        Ok(None)
    }

    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
        let range = self.range(offset, len)?;
        let inner = self.inner.read().unwrap();
        let mapped = inner.mapped[range.start / 4096];
        let mut end = (range.start / 4096 + 1) * 4096;
        while end < range.end && inner.mapped[end / 4096] == mapped {
            end += 4096;
        }
        Ok(Extent { len: (end.min(range.end) - range.start) as u64, mapped })
    }
}
