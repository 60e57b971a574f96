//! The device below a volume.

use std::collections::BTreeMap;

use onefold_ftl::{RemapOptions, RemapRange};
use onefold_nand::{Delay, NullMedia};
use onefold_ssd::{Command, Payload, Ssd, SsdError};
use onefold_units::convert::{index, narrow, u64_from};
use onefold_units::{Location, Lpn, Nanos, Op};
use onefold_volume::{Backing, Engine, Io, IoFailed, IoKind, Relocation, Stream};

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
    pub(crate) ssd: Ssd<NullMedia>,
    /// Where the volume begins, in blocks.
    offset: u64,
    /// Headers and what checkpoints write, by block, without zeroes at their ends.
    kept: BTreeMap<u64, Box<[u8]>>,
}

impl Below {
    pub(crate) const fn new(ssd: Ssd<NullMedia>, offset: u64) -> Self {
        Self { ssd, offset, kept: BTreeMap::new() }
    }

    /// Submits a command over blocks of the volume.
    pub(crate) fn submit(
        &mut self,
        now: u64,
        (op, stream): (Op, u16),
        at: u64,
        blocks: u64,
    ) -> Result<Answer, SsdError> {
        let (offset, len) =
            if op == Op::Flush { (0, 0) } else { ((self.offset + at) * BLOCK, blocks * BLOCK) };
        let command = Command { stream, ..Command::new(op, offset, len) };
        let done = self.ssd.submit(Nanos::new(now), &command, Payload::None)?;
        Ok(Answer { at: done.at.get(), delay: done.delay, failed: false })
    }

    /// Carries out what a volume asks for. A failure of the device is the volume's to handle.
    pub(crate) fn execute(&mut self, now: u64, volume: &mut dyn Engine, io: Io) -> Answer {
        let at = u64::from(io.at.raw());
        let stream = volume.as_log().and_then(|log| log.stream(io.id)).map_or(0, Stream::code);
        let op = match io.kind {
            IoKind::Read => {
                self.load(at, volume.buffer_mut(io.id));
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
            // A volume on zones does not run here yet.
            IoKind::Reset | IoKind::Finish => {
                return Answer { at: now, delay: Delay::None, failed: true };
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
        for part in ranges.chunks(index(self.ssd.remap_caps().max_ranges)) {
            match self.ssd.remap(Nanos::new(now), part, options) {
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

    fn load(&self, at: u64, bytes: &mut [u8]) {
        for (block, bytes) in (at..).zip(bytes.chunks_mut(4096)) {
            let kept = self.kept.get(&block).map_or(&[][..], |kept| kept);
            bytes[..kept.len()].copy_from_slice(kept);
            bytes[kept.len()..].fill(0);
        }
    }
}

/// For making and opening the volume, before the device has a clock.
impl Backing for Below {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        self.load(at, bytes);
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        let blocks = u64_from(bytes.len()) / BLOCK;
        self.keep(at, blocks, bytes);
        self.submit(0, (Op::Write, 0), at, blocks).map(|_| ()).map_err(|_| IoFailed)
    }

    fn flush(&mut self) -> Result<(), IoFailed> {
        self.submit(0, (Op::Flush, 0), 0, 0).map(|_| ()).map_err(|_| IoFailed)
    }

    fn trim(&mut self, at: u64, blocks: u64) -> Result<(), IoFailed> {
        self.forget(at, blocks);
        self.submit(0, (Op::Trim, 0), at, blocks).map(|_| ()).map_err(|_| IoFailed)
    }
}
