//! A zoned volume as a block device.

use std::sync::RwLock;

use onefold_journal::Write;
use onefold_units::convert::{index64, narrow, u64_from};
use onefold_units::{Op, PAGE_BYTES, Status};
use onefold_zoned::Request;

use super::{DmzVolume, Shared};
use crate::block::{BlockDevice, Due, Extent};
use crate::driver::WholeBlocks;

/// Most blocks of one request to the engine (32 MiB): a longer one is several.
const BLOCKS_MAX: u64 = 8192;

impl WholeBlocks for Shared {
    fn read_blocks(&self, lba: u64, buffer: &mut [u8]) -> Result<(), Status> {
        let mut at = lba;
        for piece in buffer.chunks_mut(index64(BLOCKS_MAX * PAGE_BYTES)) {
            let blocks = u64_from(piece.len()) / PAGE_BYTES;
            let request = Request::Read { lba: at, blocks: narrow(blocks) };
            piece.copy_from_slice(&self.carry_out(request, |_| ())?);
            at += blocks;
        }
        Ok(())
    }

    fn write_blocks(&self, lba: u64, data: &[u8], fua: bool) -> Result<(), Status> {
        let mut at = lba;
        for piece in data.chunks(index64(BLOCKS_MAX * PAGE_BYTES)) {
            let blocks = u64_from(piece.len()) / PAGE_BYTES;
            let request =
                Request::Write { lba: at, blocks: narrow(blocks), fua, data: piece.to_vec() };
            let (at_byte, bytes) = (at * PAGE_BYTES, u64_from(piece.len()));
            let write = Write { at: at_byte, bytes, data: Some(piece), fua };
            self.carry_out(request, |state| state.detector.handle_write(state.now, &write))?;
            at += blocks;
        }
        Ok(())
    }

    fn zero_blocks(&self, lba: u64, blocks: u64) -> Result<(), Status> {
        let (mut at, end) = (lba, lba + blocks);
        while at < end {
            let blocks = (end - at).min(u64::from(u32::MAX));
            let request = Request::Discard { lba: at, blocks: narrow(blocks) };
            let (from, bytes) = (at * PAGE_BYTES, blocks * PAGE_BYTES);
            self.carry_out(request, |state| state.detector.handle_trim(state.now, from, bytes))?;
            at += blocks;
        }
        Ok(())
    }

    fn rewrite(&self) -> &RwLock<()> {
        &self.rewrite
    }
}

impl BlockDevice for DmzVolume {
    fn size(&self) -> u64 {
        self.shared.size
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        self.shared.check_range(offset, u64_from(buf.len()))?;
        self.shared.read_bytes(offset, buf).map(|()| None)
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<Due, Status> {
        self.shared.check_range(offset, u64_from(data.len()))?;
        self.shared.write_bytes(offset, data, fua).map(|()| None)
    }

    fn flush(&self) -> Result<Due, Status> {
        let seen = |state: &mut super::State| state.detector.handle_flush(state.now);
        self.shared.carry_out(Request::Flush, seen).map(|_| None)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.shared.check_range(offset, len)?;
        self.shared.zero_bytes(offset, len).map(|()| None)
    }

    fn write_zeroes(
        &self,
        offset: u64,
        len: u64,
        _may_unmap: bool,
        fua: bool,
    ) -> Result<Due, Status> {
        self.trim(offset, len)?;
        if fua { self.flush() } else { Ok(None) }
    }

    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
        self.shared.check_range(offset, len)?;
        let (from, end) = (offset / PAGE_BYTES, (offset + len).div_ceil(PAGE_BYTES));
        let (mapped, blocks) = self.shared.state().volume.mapped(from, end - from);
        let bytes = (from + blocks) * PAGE_BYTES - offset;
        Ok(Extent { len: bytes.min(len), mapped })
    }

    fn waits(&self, _: Op) -> bool {
        true
    }
}
