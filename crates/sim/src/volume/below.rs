//! The device below a volume.

use std::collections::BTreeMap;

use onefold_format::volume::{BlockError, VolumeLabel};
use onefold_ftl::{RemapOptions, RemapRange};
use onefold_nand::Delay;
use onefold_ssd::zns::ZoneAction;
use onefold_units::convert::{index, narrow, u64_from};
use onefold_units::{Location, Lpn, Nanos, Op, ZoneId};
use onefold_volume::{
    Backing, Engine, Io, IoFailed, IoKind, MountError, Relocation, Stream, ZoneReport, read_label,
};

use super::command::DeviceError;
use super::device::Device;
use crate::SimError;
use crate::used::{ReadBlock, Used};

const BLOCK: u64 = 4096;

/// How a command of the volume ended, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Answer {
    pub(crate) at: u64,
    pub(crate) delay: Delay,
    pub(crate) failed: bool,
}

/// The device below a volume, with the bytes that the volume reads again.
pub(crate) struct Below {
    pub(crate) device: Device,
    /// Where the volume begins, in blocks.
    offset: u64,
    /// Headers and what checkpoints write, by block, without zeroes at their ends.
    kept: BTreeMap<u64, Box<[u8]>>,
    /// What the device held before. Of blocks written or trimmed since it may be older than what a volume would find: it reads no block
    /// of the log that is not a header of its own.
    before: Option<ReadBlock>,
}

impl Below {
    pub(crate) const fn new(device: Device, offset: u64) -> Self {
        Self { device, offset, kept: BTreeMap::new(), before: None }
    }

    /// A drive that was used before, and the volume at its beginning.
    pub(crate) fn used(used: Used) -> Self {
        let device = Device::Blocks(Box::new(used.ssd));
        Self { before: Some(used.read), ..Self::new(device, 0) }
    }

    /// The label of the volume that a drive was found with; `None` if it has none.
    pub(crate) fn label(&mut self) -> Result<Option<VolumeLabel>, SimError> {
        let blocks = self.device.blocks_mut().map_or(0, |ssd| ssd.capacity() / BLOCK);
        match read_label(self, blocks) {
            Ok(label) => Ok(Some(label)),
            Err(MountError::Label(BlockError::NotOurs)) => Ok(None),
            Err(source) => Err(SimError::VolumeMount { what: "opened", source }),
        }
    }

    /// The drive alone.
    pub(crate) fn into_device(self) -> Device {
        self.device
    }

    /// Submits a command over blocks of the volume.
    pub(crate) fn submit(
        &mut self,
        now: u64,
        (op, stream): (Op, u16),
        at: u64,
        blocks: u64,
    ) -> Result<Answer, DeviceError> {
        let (at, blocks) = if op == Op::Flush { (0, 0) } else { (self.offset + at, blocks) };
        let done = self.device.submit(Nanos::new(now), (op, stream), at, blocks)?;
        Ok(Answer { at: done.at.get(), delay: done.delay, failed: false })
    }

    /// Resets or finishes the zone of a request.
    fn manage(&mut self, now: u64, zone: ZoneId, action: ZoneAction) -> Answer {
        match self.device.manage(Nanos::new(now), zone, action) {
            Ok(done) => Answer { at: done.at.get(), delay: done.delay, failed: false },
            Err(_) => Answer { at: now, delay: Delay::None, failed: true },
        }
    }

    /// Carries out what a volume asks for. A failure of the device is the volume's to handle.
    pub(crate) fn execute(&mut self, now: u64, volume: &mut dyn Engine, io: Io) -> Answer {
        let at = u64::from(io.at.raw());
        let stream = volume.as_log().and_then(|log| log.stream(io.id)).map_or(0, Stream::code);
        let op = match io.kind {
            IoKind::Read => {
                if !self.load(at, volume.buffer_mut(io.id)) {
                    return Answer { at: now, delay: Delay::None, failed: true };
                }
                Op::Read
            }
            IoKind::Write => {
                // A buffer may be longer than its batch; without bytes of blocks it is the header alone.
                let bytes = volume.buffer(io.id);
                self.keep(at, io.blocks.into(), &bytes[..bytes.len().min(index(io.blocks) * 4096)]);
                Op::Write
            }
            IoKind::Flush => Op::Flush,
            IoKind::Trim => {
                self.forget(at, io.blocks.into());
                Op::Trim
            }
            IoKind::Remap => {
                self.forget(at, io.blocks.into());
                return self.remap(now, &volume.relocations(io.id));
            }
            IoKind::Reset => {
                self.forget(at, io.blocks.into());
                return self.manage(now, io.zone(), ZoneAction::Reset);
            }
            IoKind::Finish => return self.manage(now, io.zone(), ZoneAction::Finish),
            IoKind::Report => {
                let told = self.zone(io.zone()).map(|zone| volume.zone_reported(io.id, zone));
                return Answer { at: now, delay: Delay::None, failed: told.is_err() };
            }
        };
        let answer = self.submit(now, (op, stream.into()), at, io.blocks.into());
        answer.unwrap_or(Answer { at: now, delay: Delay::None, failed: true })
    }

    /// Remaps blocks, which are mapping units of the device. What it would have to copy it is to leave to the volume.
    fn remap(&mut self, now: u64, list: &[Relocation]) -> Answer {
        let lpn = |at: Location| Lpn::new(narrow(self.offset + u64::from(at.raw())));
        let range =
            |one: &Relocation| RemapRange { dst: lpn(one.to), src: lpn(one.from), len: one.blocks };
        let ranges: Vec<_> = list.iter().map(range).collect();
        let options = RemapOptions { no_fallback: true, ..RemapOptions::default() };
        let mut answer = Answer { at: now, delay: Delay::None, failed: false };
        let Some(ssd) = self.device.blocks_mut() else { return Answer { failed: true, ..answer } };
        for part in ranges.chunks(index(ssd.remap_caps().max_ranges)) {
            match ssd.remap(Nanos::new(now), part, options) {
                Ok(done) => {
                    answer.at = answer.at.max(done.at.get());
                    answer.failed |= done.outcomes.iter().any(|outcome| outcome.skipped > 0);
                }
                Err(_) => answer.failed = true,
            }
        }
        answer
    }

    fn forget(&mut self, at: u64, blocks: u64) {
        while let Some((&block, _)) = self.kept.range(at..at + blocks).next() {
            self.kept.remove(&block);
        }
    }

    fn keep(&mut self, at: u64, blocks: u64, bytes: &[u8]) {
        self.forget(at, blocks);
        for (block, bytes) in (at..).zip(bytes.chunks(4096)) {
            let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            if len > 0 {
                self.kept.insert(block, bytes[..len].into());
            }
        }
    }

    /// Whether all of it could be read.
    fn load(&mut self, at: u64, bytes: &mut [u8]) -> bool {
        let mut there = true;
        for (block, bytes) in (at..).zip(bytes.chunks_mut(4096)) {
            match (self.kept.get(&block), &mut self.before) {
                (None, Some(read)) => there &= read(self.offset + block, bytes),
                (kept, _) => {
                    let kept = kept.map_or(&[][..], |kept| kept);
                    bytes[..kept.len()].copy_from_slice(kept);
                    bytes[kept.len()..].fill(0);
                }
            }
        }
        there
    }
}

/// For making and opening the volume, before the device has a clock.
impl Backing for Below {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        if self.load(at, bytes) { Ok(()) } else { Err(IoFailed::Error) }
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        let blocks = u64_from(bytes.len()) / BLOCK;
        self.keep(at, blocks, bytes);
        self.submit(0, (Op::Write, 0), at, blocks).map(|_| ()).map_err(|_| IoFailed::Error)
    }

    fn zones(&mut self) -> Result<Option<ZoneReport>, IoFailed> {
        Ok(self.device.report())
    }

    fn reset(&mut self, zone: ZoneId) -> Result<(), IoFailed> {
        if let Some(report) = self.device.report() {
            let blocks = u64::from(report.zone_blocks);
            self.forget(u64::from(zone.raw()) * blocks, blocks);
        }
        if self.manage(0, zone, ZoneAction::Reset).failed { Err(IoFailed::Error) } else { Ok(()) }
    }

    fn finish(&mut self, zone: ZoneId) -> Result<(), IoFailed> {
        if self.manage(0, zone, ZoneAction::Finish).failed { Err(IoFailed::Error) } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), IoFailed> {
        self.submit(0, (Op::Flush, 0), 0, 0).map(|_| ()).map_err(|_| IoFailed::Error)
    }

    fn trim(&mut self, at: u64, blocks: u64) -> Result<(), IoFailed> {
        self.forget(at, blocks);
        self.submit(0, (Op::Trim, 0), at, blocks).map(|_| ()).map_err(|_| IoFailed::Error)
    }
}
