//! A zoned volume as a block device.

use std::sync::RwLock;

use onefold_units::convert::{index64, narrow, u64_from};
use onefold_units::{Op, PAGE_BYTES, Status};
use onefold_zoned::Request;

use super::DmzVolume;
use super::state::Served;
use crate::block::{BlockDevice, Due, Extent};
use crate::driver::{Driver, WholeBlocks};

/// Most blocks of one request to the engine (32 MiB): a longer one is several.
const BLOCKS_MAX: u64 = 8192;

impl WholeBlocks for Driver<Served> {
    fn read_blocks(&self, lba: u64, buffer: &mut [u8]) -> Result<(), Status> {
        let mut at = lba;
        for piece in buffer.chunks_mut(index64(BLOCKS_MAX * PAGE_BYTES)) {
            let blocks = u64_from(piece.len()) / PAGE_BYTES;
            let request = || Request::Read { lba: at, blocks: narrow(blocks) };
            let ((), read) =
                self.ask_and_wait(|state, tag| state.engine.submit(state.now, tag, request))?;
            piece.copy_from_slice(&read?);
            at += blocks;
        }
        Ok(())
    }

    fn write_blocks(&self, lba: u64, data: &[u8], fua: bool) -> Result<(), Status> {
        let mut at = lba;
        for piece in data.chunks(index64(BLOCKS_MAX * PAGE_BYTES)) {
            let blocks = u64_from(piece.len()) / PAGE_BYTES;
            let request =
                || Request::Write { lba: at, blocks: narrow(blocks), fua, data: piece.to_vec() };
            let ((), written) = self.ask_and_wait(|state, tag| {
                let taken = state.engine.submit(state.now, tag, request);
                taken.map(|()| self.saw_write(state, at, piece, fua))
            })?;
            written?;
            at += blocks;
        }
        Ok(())
    }

    fn zero_blocks(&self, lba: u64, blocks: u64) -> Result<(), Status> {
        let (mut at, end) = (lba, lba + blocks);
        while at < end {
            let blocks = (end - at).min(u64::from(u32::MAX));
            let request = || Request::Discard { lba: at, blocks: narrow(blocks) };
            let ((), zeroed) = self.ask_and_wait(|state, tag| {
                let taken = state.engine.submit(state.now, tag, request);
                taken.map(|()| self.saw_trim(state, at, blocks))
            })?;
            zeroed?;
            at += blocks;
        }
        Ok(())
    }

    fn rewrite(&self) -> &RwLock<()> {
        self.rewrite()
    }
}

impl DmzVolume {
    fn check_range(&self, offset: u64, len: u64) -> Result<(), Status> {
        let size = self.driver.shared.size;
        let inside = len > 0 && offset.checked_add(len).is_some_and(|end| end <= size);
        if inside { Ok(()) } else { Err(Status::InvalidField) }
    }
}

impl BlockDevice for DmzVolume {
    fn size(&self) -> u64 {
        self.driver.shared.size
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        self.check_range(offset, u64_from(buf.len()))?;
        self.driver.read_bytes(offset, buf).map(|()| None)
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<Due, Status> {
        self.check_range(offset, u64_from(data.len()))?;
        let write = || self.driver.write_bytes(offset, data, fua);
        self.driver.when_there_is_space(write).map(|()| None)
    }

    fn flush(&self) -> Result<Due, Status> {
        let flush = || {
            let ((), flushed) = self.driver.ask_and_wait(|state, tag| {
                let taken = state.engine.submit(state.now, tag, || Request::Flush);
                taken.map(|()| self.driver.saw_flush(state))
            })?;
            flushed.map(drop)
        };
        self.driver.when_there_is_space(flush).map(|()| None)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.check_range(offset, len)?;
        let zero = || self.driver.zero_bytes(offset, len);
        self.driver.when_there_is_space(zero).map(|()| None)
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
        self.check_range(offset, len)?;
        let (from, end) = (offset / PAGE_BYTES, (offset + len).div_ceil(PAGE_BYTES));
        let (mapped, blocks) = self.driver.state().engine.volume.mapped(from, end - from);
        let bytes = (from + blocks) * PAGE_BYTES - offset;
        Ok(Extent { len: bytes.min(len), mapped })
    }

    fn stop_waiting(&self) {
        self.driver.stop_waiting();
    }

    fn waits(&self, _: Op) -> bool {
        true
    }
}
