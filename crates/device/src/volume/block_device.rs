//! A member of a volume as a block device: requests at any byte become calls of the engine.

use std::cell::Cell;
use std::sync::RwLock;
use std::sync::atomic::Ordering;
use std::time::Instant;

use onefold_units::convert::{index64, u64_from};
use onefold_units::{Lba, Op, PAGE_BYTES, Status};
use onefold_volume::{Engine, MemberId, REQUEST_BLOCKS_MAX, Range, ReadPlan, Refusal};

use super::{Shared, State, VolumeDevice};
use crate::block::{BlockDevice, Due, Extent, SizeWatcher};
use crate::driver::WholeBlocks;

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
        self.shared.when_there_is_space(write).map(|()| None)
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
        let zero = || self.blocks().zero_bytes(offset, len);
        self.shared.when_there_is_space(zero).map(|()| None)
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

impl VolumeDevice {
    fn blocks(&self) -> Blocks<'_> {
        Blocks { shared: &self.shared, member: self.member }
    }
}

/// A member of a volume, as whole blocks.
pub(super) struct Blocks<'a> {
    pub(super) shared: &'a Shared,
    pub(super) member: MemberId,
}

impl WholeBlocks for Blocks<'_> {
    /// A block whose checksum is wrong is read once more before the read fails.
    fn read_blocks(&self, lba: u64, buffer: &mut [u8]) -> Result<(), Status> {
        let Self { shared, member } = *self;
        let mut plan = PLAN.take();
        let mut at = lba;
        for piece in buffer.chunks_mut(bytes_of(REQUEST_BLOCKS_MAX)) {
            let range = range_of(at, piece);
            shared
                .ask(|state, _| read_from(&mut *state.volume, member, range, piece, &mut plan))?;
            if !plan.runs().is_empty() {
                let done = shared.fetch(&plan, piece);
                let mut state = shared.state();
                state.volume.end_read(&plan);
                if let Err(damaged) = done {
                    state.volume.count_crc_errors(damaged.into());
                    return Err(Status::MediaError);
                }
            }
            at += range.blocks;
        }
        PLAN.set(plan);
        Ok(())
    }

    fn write_blocks(&self, lba: u64, data: &[u8], fua: bool) -> Result<(), Status> {
        let Self { shared, member } = *self;
        let mut at = lba;
        for piece in data.chunks(bytes_of(shared.write_blocks_max)) {
            let range = range_of(at, piece);
            let write = |state: &mut State, tag| {
                write_to(&mut *state.volume, member, tag, range, piece, fua)?;
                shared.saw_write(state, member, range.lba, piece, fua);
                Ok(())
            };
            if fua || shared.writes_wait {
                shared.ask_and_wait(write)?;
            } else {
                shared.ask(|state, tag| {
                    write(state, tag)?;
                    shared.turn(state);
                    Ok(())
                })?;
            }
            at += range.blocks;
        }
        Ok(())
    }

    fn zero_blocks(&self, lba: u64, blocks: u64) -> Result<(), Status> {
        let Self { shared, member } = *self;
        let (mut at, end) = (lba, lba + blocks);
        while at < end {
            let range = Range { lba: Lba::new(at), blocks: end - at };
            let (taken, _) = shared.ask(|state, tag| {
                let taken = trim_of(&mut *state.volume, member, tag, range)?;
                shared.saw_trim(state, member, at, taken);
                shared.turn(state);
                Ok(taken)
            })?;
            at += taken;
        }
        Ok(())
    }

    fn rewrite(&self) -> &RwLock<()> {
        &self.shared.rewrite
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
) -> Result<(), Refusal> {
    match volume.as_log_mut() {
        Some(volume) => volume.write_to(member, tag, range, Some(data), fua),
        None => volume.write(tag, range, Some(data), fua),
    }
}

/// A read of a member.
fn read_from(
    volume: &mut dyn Engine,
    member: MemberId,
    range: Range,
    buffer: &mut [u8],
    plan: &mut ReadPlan,
) -> Result<(), Refusal> {
    match volume.as_log_mut() {
        Some(volume) => volume.read_from(member, range, Some(buffer), plan),
        None => volume.read(range, Some(buffer), plan),
    }
}

/// A trim of a member.
fn trim_of(
    volume: &mut dyn Engine,
    member: MemberId,
    tag: u64,
    range: Range,
) -> Result<u64, Refusal> {
    match volume.as_log_mut() {
        Some(volume) => volume.trim_of(member, tag, range),
        None => volume.trim(tag, range),
    }
}

/// Whether the first block of a range of a member is mapped, and how many are alike.
fn mapped_of(
    volume: &mut dyn Engine,
    member: MemberId,
    range: Range,
) -> Result<(bool, u64), Refusal> {
    match volume.as_log_mut() {
        Some(volume) => volume.mapped_of(member, range),
        None => volume.mapped(range),
    }
}
