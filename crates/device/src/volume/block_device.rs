//! A member of a volume as a block device: requests at any byte become calls of the engine.

use std::cell::Cell;
use std::sync::RwLock;
use std::time::Instant;

use onefold_units::convert::{index64, u64_from};
use onefold_units::{Lba, Op, PAGE_BYTES, Status};
use onefold_volume::{Engine, MemberId, REQUEST_BLOCKS_MAX, Range, ReadPlan};

use super::{Driver, State, VolumeDevice, refused};
use crate::block::{BlockDevice, Due, Extent, SizeWatcher};
use crate::driver::{Refused, WholeBlocks};

thread_local! {
    /// Memory of the plan of the last read, which the next one uses again.
    static PLAN: Cell<ReadPlan> = Cell::default();
}

impl BlockDevice for VolumeDevice {
    fn size(&self) -> u64 {
        self.size.get()
    }

    fn watch_size(&self, watcher: SizeWatcher) {
        self.size.watch(watcher);
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        self.check_range(offset, u64_from(buf.len()))?;
        self.blocks().read_bytes(offset, buf).map(|()| None)
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<Due, Status> {
        self.check_range(offset, u64_from(data.len()))?;
        let write = || self.blocks().write_bytes(offset, data, fua);
        self.driver.when_there_is_space(write).map(|()| None)
    }

    fn flush(&self) -> Result<Due, Status> {
        let begin = Instant::now();
        let (driver, is_watched) = (&*self.driver, self.member == MemberId::DEVICE);
        let flush = || {
            let ((), flushed) = driver.ask_and_wait(|state, tag| {
                let taken = state.engine.volume.flush(tag).map_err(refused);
                if is_watched && taken.is_ok() {
                    driver.saw_flush(state);
                }
                taken
            })?;
            Ok(flushed?)
        };
        driver.when_there_is_space(flush)?;
        driver.state().engine.flush_time = begin.elapsed();
        Ok(None)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.check_range(offset, len)?;
        let zero = || self.blocks().zero_bytes(offset, len);
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

    fn stop_waiting(&self) {
        self.driver.stop_waiting();
    }

    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
        self.check_range(offset, len)?;
        let (from, end) = (offset / PAGE_BYTES, (offset + len).div_ceil(PAGE_BYTES));
        let range = Range { lba: Lba::new(from), blocks: end - from };
        let (mapped, blocks) =
            self.driver.ask(|state, _| mapped_of(&mut *state.engine.volume, self.member, range))?;
        let bytes = (from + blocks) * PAGE_BYTES - offset;
        Ok(Extent { len: bytes.min(len), mapped })
    }

    /// Writes that are answered from memory wait only while the volume is busy, or full.
    fn waits(&self, op: Op) -> bool {
        matches!(op, Op::Read | Op::Flush)
            || self.driver.shared.writes_wait
            || self.driver.waits_for_space()
    }
}

impl VolumeDevice {
    fn blocks(&self) -> Blocks<'_> {
        Blocks { driver: &self.driver, member: self.member }
    }
}

/// A member of a volume, as whole blocks.
pub(super) struct Blocks<'a> {
    pub(super) driver: &'a Driver,
    pub(super) member: MemberId,
}

impl WholeBlocks for Blocks<'_> {
    /// A block whose checksum is wrong is read once more before the read fails.
    fn read_blocks(&self, lba: u64, buffer: &mut [u8]) -> Result<(), Status> {
        let Self { driver, member } = *self;
        let mut plan = PLAN.take();
        let mut at = lba;
        for piece in buffer.chunks_mut(bytes_of(REQUEST_BLOCKS_MAX)) {
            let range = range_of(at, piece);
            driver.ask(|state, _| {
                read_from(&mut *state.engine.volume, member, range, piece, &mut plan)
            })?;
            if !plan.runs().is_empty() {
                let done = driver.fetch(&plan, piece);
                let mut state = driver.state();
                state.engine.volume.end_read(&plan);
                if let Err(damaged) = done {
                    state.engine.volume.count_crc_errors(damaged.into());
                    return Err(Status::MediaError);
                }
            }
            at += range.blocks;
        }
        PLAN.set(plan);
        Ok(())
    }

    fn write_blocks(&self, lba: u64, data: &[u8], fua: bool) -> Result<(), Status> {
        let Self { driver, member } = *self;
        let mut at = lba;
        for piece in data.chunks(bytes_of(driver.shared.write_blocks_max)) {
            let range = range_of(at, piece);
            let write = |state: &mut State, tag| {
                let taken = write_to(&mut *state.engine.volume, member, tag, range, piece, fua);
                if member == MemberId::DEVICE && taken.is_ok() {
                    driver.saw_write(state, at, piece, fua);
                }
                taken
            };
            if fua || driver.shared.writes_wait {
                driver.ask_and_wait(write)?.1?;
            } else {
                driver.ask(|state, tag| write(state, tag).map(|()| driver.turn(state)))?;
            }
            at += range.blocks;
        }
        Ok(())
    }

    fn zero_blocks(&self, lba: u64, blocks: u64) -> Result<(), Status> {
        let Self { driver, member } = *self;
        let (mut at, end) = (lba, lba + blocks);
        while at < end {
            let range = Range { lba: Lba::new(at), blocks: end - at };
            let taken = driver.ask(|state, tag| {
                let taken = trim_of(&mut *state.engine.volume, member, tag, range)?;
                if member == MemberId::DEVICE {
                    driver.saw_trim(state, at, taken);
                }
                driver.turn(state);
                Ok(taken)
            })?;
            at += taken;
        }
        Ok(())
    }

    fn rewrite(&self) -> &RwLock<()> {
        self.driver.rewrite()
    }
}

/// Bytes of so many blocks.
fn bytes_of(blocks: u32) -> usize {
    index64(u64::from(blocks) * PAGE_BYTES)
}

/// The blocks of a piece of a request that begins at block `at`.
fn range_of(at: u64, piece: &[u8]) -> Range {
    Range { lba: Lba::new(at), blocks: u64_from(piece.len()) / PAGE_BYTES }
}

/// A write of a member. Volumes of the modes `sung` and `han` have none but the device.
fn write_to(
    volume: &mut dyn Engine,
    member: MemberId,
    tag: u64,
    range: Range,
    data: &[u8],
    fua: bool,
) -> Result<(), Refused<Status>> {
    let taken = match volume.as_log_mut() {
        Some(volume) => volume.write_to(member, tag, range, Some(data), fua),
        None => volume.write(tag, range, Some(data), fua),
    };
    taken.map_err(refused)
}

/// A read of a member.
fn read_from(
    volume: &mut dyn Engine,
    member: MemberId,
    range: Range,
    buffer: &mut [u8],
    plan: &mut ReadPlan,
) -> Result<(), Refused<Status>> {
    let taken = match volume.as_log_mut() {
        Some(volume) => volume.read_from(member, range, Some(buffer), plan),
        None => volume.read(range, Some(buffer), plan),
    };
    taken.map_err(refused)
}

/// A trim of a member.
fn trim_of(
    volume: &mut dyn Engine,
    member: MemberId,
    tag: u64,
    range: Range,
) -> Result<u64, Refused<Status>> {
    let taken = match volume.as_log_mut() {
        Some(volume) => volume.trim_of(member, tag, range),
        None => volume.trim(tag, range),
    };
    taken.map_err(refused)
}

/// Whether the first block of a range of a member is mapped, and how many are alike.
fn mapped_of(
    volume: &mut dyn Engine,
    member: MemberId,
    range: Range,
) -> Result<(bool, u64), Refused<Status>> {
    let mapped = match volume.as_log_mut() {
        Some(volume) => volume.mapped_of(member, range),
        None => volume.mapped(range),
    };
    mapped.map_err(refused)
}
