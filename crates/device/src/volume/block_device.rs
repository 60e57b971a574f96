//! A member of a volume as a block device.

use std::sync::atomic::Ordering;
use std::time::Instant;

use onefold_units::convert::u64_from;
use onefold_units::{Lba, Op, PAGE_BYTES, Status};
use onefold_volume::Range;

use super::VolumeDevice;
use super::members::mapped_of;
use crate::block::{BlockDevice, Due, Extent, SizeWatcher};

impl BlockDevice for VolumeDevice {
    fn size(&self) -> u64 {
        self.size.get()
    }

    fn watch_size(&self, watcher: SizeWatcher) {
        self.size.watch(watcher);
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        self.check_range(offset, u64_from(buf.len()))?;
        self.shared.read(self.member, offset, buf).map(|()| None)
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<Due, Status> {
        self.check_range(offset, u64_from(data.len()))?;
        self.shared.write(self.member, offset, data, fua).map(|()| None)
    }

    fn flush(&self) -> Result<Due, Status> {
        let begin = Instant::now();
        self.shared.ask_and_wait(|state, tag| {
            state.volume.flush(tag)?;
            self.shared.saw_flush(state, self.member);
            Ok(())
        })?;
        self.shared.state().flush_time = begin.elapsed();
        Ok(None)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.check_range(offset, len)?;
        self.shared.zero(self.member, offset, len).map(|()| None)
    }

    fn write_zeroes(
        &self,
        offset: u64,
        len: u64,
        _may_unmap: bool,
        fua: bool,
    ) -> Result<Due, Status> {
        self.check_range(offset, len)?;
        self.shared.zero(self.member, offset, len)?;
        if fua { self.flush() } else { Ok(None) }
    }

    fn stop_waiting(&self) {
        self.shared.stop_waiting();
    }

    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
        self.check_range(offset, len)?;
        let (from, end) = (offset / PAGE_BYTES, (offset + len).div_ceil(PAGE_BYTES));
        let range = Range { lba: Lba::new(from), blocks: end - from };
        let ((mapped, blocks), _) =
            self.shared.ask(|state, _| mapped_of(&mut *state.volume, self.member, range))?;
        let bytes = (from + blocks) * PAGE_BYTES - offset;
        Ok(Extent { len: bytes.min(len), mapped })
    }

    /// Writes that are answered from memory wait only while the volume is busy, or full.
    fn waits(&self, op: Op) -> bool {
        matches!(op, Op::Read | Op::Flush)
            || self.shared.writes_wait
            || self.shared.waits_for_space.load(Ordering::Relaxed)
    }
}
