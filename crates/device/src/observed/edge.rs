//! The log of what clients wrote, with data.

use onefold_units::convert::{index64, u64_from};

use crate::block::BlockDevice;
use crate::write_log::{Covered, WriteLog};

/// Bytes of zeroes that are logged in one entry.
const ZEROES_AT_ONCE: u64 = 1 << 20;

/// Puts requests into a log, in the order in which they completed. A request that failed is not there.
#[derive(Debug)]
pub(super) struct Edge(pub(super) WriteLog);

impl Edge {
    /// A write completed.
    pub(super) fn wrote(&self, device: &impl BlockDevice, offset: u64, data: &[u8], fua: bool) {
        let len = u64_from(data.len());
        let (start, end) = around(offset, len);
        if (start, end) == (offset, offset + len) {
            self.0.wrote(offset, data, fua);
            return;
        }
        // The rest of its first and last sector is what the device has there.
        let mut sectors = vec![0; index64(end - start)];
        if device.read(start, &mut sectors).is_err() {
            tracing::warn!(
                offset,
                len,
                "what is around this write cannot be read: zeroes are logged"
            );
        }
        let from = index64(offset - start);
        sectors[from..from + data.len()].copy_from_slice(data);
        self.0.wrote(start, &sectors, fua);
    }

    /// A range reads as zeroes now. There is no entry for a durable trim, so that is a write of zeroes.
    pub(super) fn zeroed(&self, device: &impl BlockDevice, offset: u64, len: u64, fua: bool) {
        if !fua && around(offset, len) == (offset, offset + len) {
            self.0.trimmed(offset, len);
            return;
        }
        let mut at = offset;
        while at < offset + len {
            let part = (offset + len - at).min(ZEROES_AT_ONCE);
            self.wrote(device, at, &vec![0; index64(part)], fua);
            at += part;
        }
    }

    pub(super) fn covered(&self) -> Covered {
        self.0.covered()
    }

    /// A flush ended.
    pub(super) fn flushed(&self, covered: Covered, is_done: bool) {
        if is_done {
            self.0.flushed(covered);
        } else {
            self.0.unflushed(covered);
        }
    }
}

/// The whole sectors around a range.
fn around(offset: u64, len: u64) -> (u64, u64) {
    let sector = u64::from(WriteLog::sector_bytes());
    (offset / sector * sector, (offset + len).div_ceil(sector) * sector)
}
