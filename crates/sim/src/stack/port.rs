//! A port of a layer: the place below as the layer sees it.

use std::collections::BTreeMap;

use onefold_ftl::{RemapOptions, RemapRange};
use onefold_nand::Delay;
use onefold_ssd::HostStats;
use onefold_ssd::zns::ZoneAction;
use onefold_units::convert::{index, narrow};
use onefold_units::{Lba, Location, Lpn, Nanos, Op, ZoneId};
use onefold_volume::{Range, Relocation};

use super::At;
use super::command::DeviceError;
use super::device::Device;
use super::layer::{Answer, Asked, Layer, Lower};
use crate::used::ReadBlock;

const BLOCK: usize = 4096;

/// A port. It keeps the bytes that the layer reads again, since no place below does.
pub(crate) struct Port {
    /// The place below.
    pub(crate) below: At,
    /// Where the layer begins there, in blocks.
    offset: u64,
    /// Headers and map pages, by block, without zeroes at their ends.
    kept: BTreeMap<u64, Box<[u8]>>,
    /// What the place held before. Of blocks written or trimmed since it may be older than what a
    /// volume would find: a volume reads no block of the log that is not a header of its own.
    before: Option<ReadBlock>,
    /// What the place below was asked for.
    pub(crate) asked: HostStats,
}

impl Port {
    pub(crate) fn new(below: At, offset: u64) -> Self {
        Self { below, offset, kept: BTreeMap::new(), before: None, asked: HostStats::default() }
    }

    /// A port to a place that was used before.
    pub(crate) fn used(below: At, before: ReadBlock) -> Self {
        Self { before: Some(before), ..Self::new(below, 0) }
    }

    /// Drops the bytes of a layer that does not read again.
    pub(crate) fn drop_bytes(&mut self) {
        self.kept.clear();
    }

    /// The place of a block below.
    pub(crate) const fn at(&self, block: u64) -> u64 {
        self.offset + block
    }

    /// Keeps or gives the bytes of a request. `false`: they cannot be read.
    pub(crate) fn bytes(&mut self, layer: &mut dyn Layer, lower: &Lower) -> bool {
        match lower.what {
            Asked::Read(range) => return self.load(range.lba.raw(), layer.buffer_mut(lower.id)),
            Asked::Write(range, _) => {
                // A buffer may be longer than its batch; without bytes of blocks it is the header.
                let bytes = layer.buffer(lower.id);
                let len = bytes.len().min(index(narrow(range.blocks)) * BLOCK);
                self.keep(range, &bytes[..len]);
            }
            Asked::Trim(range) => self.forget(range),
            Asked::Remap => layer.moves(lower.id).iter().for_each(|one| {
                let lba = Lba::new(one.to.raw().into());
                self.forget(Range { lba, blocks: one.blocks.into() });
            }),
            // Only a device knows how long a zone is that is reset.
            Asked::Reset(_)
            | Asked::Extents { .. }
            | Asked::Flush
            | Asked::Finish(_)
            | Asked::Report(_) => {}
        }
        true
    }

    /// Carries a request out on a device.
    ///
    /// # Errors
    /// The device refused a read for a request from above. One that it could not read is answered.
    pub(crate) fn execute(
        &mut self,
        now: u64,
        (layer, lower): (&mut dyn Layer, &Lower),
        device: &mut Device,
    ) -> Result<Answer, DeviceError> {
        if !self.bytes(layer, lower) {
            return Ok(Answer::failed(now));
        }
        let answer = match lower.what {
            Asked::Extents { .. } => match self.read_extents(now, layer, lower, device) {
                Err(error) if !error.is_unreadable() => return Err(error),
                answer => answer,
            },
            Asked::Read(range) => self.submit(now, (Op::Read, 0), range, device),
            Asked::Write(range, stream) => self.submit(now, (Op::Write, stream), range, device),
            Asked::Trim(range) => self.submit(now, (Op::Trim, 0), range, device),
            Asked::Flush => self.flush(now, device),
            Asked::Remap => return Ok(self.remap(now, &layer.moves(lower.id), device)),
            Asked::Reset(zone) => return Ok(self.reset(now, zone, device)),
            Asked::Finish(zone) => return Ok(manage(now, zone, ZoneAction::Finish, device)),
            Asked::Report(zone) => {
                let status = device.report().map(|report| report.status(zone.raw()));
                let Some(status) = status else { return Ok(Answer::failed(now)) };
                layer.zone_told(lower.id, status);
                return Ok(Answer { at: now, delay: Delay::None, failed: false });
            }
        };
        Ok(answer.unwrap_or_else(|_| Answer::failed(now)))
    }

    fn read_extents(
        &mut self,
        now: u64,
        layer: &dyn Layer,
        lower: &Lower,
        device: &mut Device,
    ) -> Result<Answer, DeviceError> {
        let mut whole: Option<Answer> = None;
        for run in layer.extents(lower.id) {
            let lba = Lba::new(run.at.raw().into());
            let range = Range { lba, blocks: run.blocks.into() };
            let answer = self.submit(now, (Op::Read, 0), range, device)?;
            whole = Some(whole.map_or(answer, |whole| whole.joined(answer)));
        }
        Ok(whole.unwrap_or(Answer { at: now, delay: Delay::None, failed: false }))
    }

    /// Submits a command over blocks of the layer.
    pub(crate) fn submit(
        &mut self,
        now: u64,
        (op, stream): (Op, u16),
        range: Range,
        device: &mut Device,
    ) -> Result<Answer, DeviceError> {
        self.asked.count(op, range.blocks);
        let at = self.offset + range.lba.raw();
        let done = device.submit(Nanos::new(now), (op, stream), at, range.blocks)?;
        Ok(Answer { at: done.at.get(), delay: done.delay, failed: false })
    }

    pub(crate) fn flush(&mut self, now: u64, device: &mut Device) -> Result<Answer, DeviceError> {
        self.asked.count(Op::Flush, 0);
        let done = device.submit(Nanos::new(now), (Op::Flush, 0), 0, 0)?;
        Ok(Answer { at: done.at.get(), delay: done.delay, failed: false })
    }

    /// Resets a zone, and forgets what was in it.
    pub(crate) fn reset(&mut self, now: u64, zone: ZoneId, device: &mut Device) -> Answer {
        if let Some(blocks) = device.zone_blocks() {
            let first = u64::from(zone.raw()) * u64::from(blocks);
            self.forget(Range { lba: Lba::new(first), blocks: blocks.into() });
        }
        manage(now, zone, ZoneAction::Reset, device)
    }

    /// Remaps blocks, which are mapping units of the device. What the device would have to copy is
    /// left to the layer.
    fn remap(&self, now: u64, list: &[Relocation], device: &mut Device) -> Answer {
        let lpn = |at: Location| Lpn::new(narrow(self.offset + u64::from(at.raw())));
        let range =
            |one: &Relocation| RemapRange { dst: lpn(one.to), src: lpn(one.from), len: one.blocks };
        let ranges: Vec<_> = list.iter().map(range).collect();
        let options = RemapOptions { no_fallback: true, ..RemapOptions::default() };
        let mut answer = Answer { at: now, delay: Delay::None, failed: false };
        let Some(ssd) = device.blocks_mut() else { return Answer::failed(now) };
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

    pub(crate) fn forget(&mut self, Range { lba, blocks }: Range) {
        let at = lba.raw();
        while let Some((&block, _)) = self.kept.range(at..at + blocks).next() {
            self.kept.remove(&block);
        }
    }

    pub(crate) fn keep(&mut self, range: Range, bytes: &[u8]) {
        self.forget(range);
        for (block, bytes) in (range.lba.raw()..).zip(bytes.chunks(BLOCK)) {
            let len = len_without_zeroes(bytes);
            if len > 0 {
                self.kept.insert(block, bytes[..len].into());
            }
        }
    }

    /// Whether all of it could be read.
    pub(crate) fn load(&mut self, at: u64, bytes: &mut [u8]) -> bool {
        let mut there = true;
        for (block, bytes) in (at..).zip(bytes.chunks_mut(BLOCK)) {
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

/// Length without the zeroes at the end. Most of a header is that, so they are passed in pieces.
fn len_without_zeroes(bytes: &[u8]) -> usize {
    let is_zero = |piece: &&[u8]| piece.iter().fold(0, |any, byte| any | byte) == 0;
    let zeroes: usize = bytes.rchunks(64).take_while(is_zero).map(<[u8]>::len).sum();
    let rest = &bytes[..bytes.len() - zeroes];
    rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// Resets or finishes a zone.
pub(crate) fn manage(now: u64, zone: ZoneId, action: ZoneAction, device: &mut Device) -> Answer {
    match device.manage(Nanos::new(now), zone, action) {
        Ok(done) => Answer { at: done.at.get(), delay: done.delay, failed: false },
        Err(_) => Answer::failed(now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroes_at_the_end_are_left_out() {
        for (len, last) in [(4096, 0), (4096, 63), (4096, 64), (4096, 4095), (100, 35), (100, 36)] {
            let mut bytes = vec![0; len];
            assert_eq!(len_without_zeroes(&bytes), 0);
            bytes[last] = 1;
            assert_eq!(len_without_zeroes(&bytes), last + 1);
        }
    }

    #[test]
    fn what_is_read_again_is_what_was_written() {
        let mut port = Port::new(At::Device(0), 0);
        let range = |lba, blocks| Range { lba: Lba::new(lba), blocks };
        let mut bytes = vec![0; 2 * BLOCK];
        (bytes[3], bytes[BLOCK + 9]) = (7, 8);
        port.keep(range(10, 2), &bytes);
        port.forget(range(11, 1));
        let mut read = vec![1; 3 * BLOCK];
        assert!(port.load(9, &mut read));
        bytes[BLOCK..].fill(0);
        assert!(read[..BLOCK].iter().all(|byte| *byte == 0));
        assert_eq!(&read[BLOCK..], &bytes[..]);
        assert_eq!(port.kept.len(), 1);
    }
}
