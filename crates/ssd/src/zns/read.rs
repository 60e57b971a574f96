//! Reads.

use onefold_format::{SlotKind, SpareState, checksum};
use onefold_nand::{Grant, Media, MediaError, Spare, zero};
use onefold_units::convert::{index, narrow};
use onefold_units::{Cause, Nanos, Op, ZoneId};

use super::config::BLOCK;
use super::device::{Zns, at_once, block_bytes, host_work};
use super::{ZnsError, ZoneState};
use crate::Completion;
use crate::times::join;

impl<M: Media> Zns<M> {
    /// Reads `blocks` from block `lba` on into `data`, which is as long as that or empty. What was not written reads as
    /// zeroes and costs no flash read.
    ///
    /// # Errors
    /// [`ZnsError::ZoneBoundary`] if it goes on in another zone, unless [`ZnsConfig::read_across`](super::ZnsConfig).
    pub fn read(
        &mut self,
        now: Nanos,
        lba: u64,
        blocks: u32,
        data: &mut [u8],
    ) -> Result<Completion, ZnsError> {
        let (zone, at) = self.locate(lba, blocks)?;
        let size = self.config.zone_blocks;
        if blocks > size - at && !self.config.read_across {
            let end = u64::from(at) + u64::from(blocks);
            return Err(ZnsError::ZoneBoundary { zone, end, limit: size });
        }
        let last = zone.raw() + (at + (blocks - 1)) / size;
        for zone in (zone.raw()..=last).map(ZoneId::new) {
            if self.table.state(zone) == ZoneState::Offline {
                return Err(ZnsError::ZoneIsOffline { zone });
            }
        }
        self.host.count(Op::Read, blocks.into());
        // Conventional zones come first, so a read that crosses zones has its part of them in front.
        let border = u64::from(self.config.conventional_zones()) * u64::from(size);
        let mapped = narrow(border.saturating_sub(lba).min(blocks.into()));
        if mapped == 0 {
            return self.read_sequential(now, (zone, at), blocks, data);
        }
        let bytes = (index(mapped) * index(BLOCK)).min(data.len());
        let (front, behind) = data.split_at_mut(bytes);
        let done = self.read_mapped(now, lba, mapped, front)?;
        if mapped == blocks {
            return Ok(done);
        }
        let first = ZoneId::new(self.config.conventional_zones());
        let rest = self.read_sequential(now, (first, 0), blocks - mapped, behind)?;
        Ok(Completion { at: done.at.max(rest.at), delay: done.delay.max(rest.delay) })
    }

    /// Reads blocks of sequential zones, from one of them on.
    fn read_sequential(
        &mut self,
        now: Nanos,
        (zone, at): (ZoneId, u32),
        blocks: u32,
        data: &mut [u8],
    ) -> Result<Completion, ZnsError> {
        let size = self.config.zone_blocks;
        let ready = self.nand.timelines_mut().command(now, blocks.into());
        let mut all = at_once(ready);
        let (mut zone, mut at, mut left) = (zone, at, blocks);
        let mut rest = data;
        while left > 0 {
            let count = left.min(size - at);
            let bytes = (index(count) * index(BLOCK)).min(rest.len());
            let (part, behind) = rest.split_at_mut(bytes);
            all = join(all, self.read_zone(now, ready, zone, at, count, part)?);
            rest = behind;
            left -= count;
            (zone, at) = (ZoneId::new(zone.raw() + 1), 0);
        }
        let bytes = u64::from(blocks) * u64::from(BLOCK);
        let out = self.nand.timelines_mut().link_out(now, all.done, bytes);
        Ok(Completion { at: out + self.config.timing.firmware_read, delay: all.delay })
    }

    /// Reads blocks of one zone, flash page by flash page.
    fn read_zone(
        &mut self,
        now: Nanos,
        ready: Nanos,
        zone: ZoneId,
        at: u32,
        count: u32,
        mut data: &mut [u8],
    ) -> Result<Grant, ZnsError> {
        let written = self.table.written(zone);
        let staged_from = written - self.data[zone.index()].staged;
        let page = self.layout.page();
        let mut all = at_once(ready);
        let (mut block, end) = (at, at + count);
        while block < end {
            let (until, place) = match block {
                _ if block < staged_from => {
                    (((block / page + 1) * page).min(staged_from).min(end), Place::Flash)
                }
                _ if block < written => (written.min(end), Place::Staged),
                _ => (end, Place::Nowhere),
            };
            let bytes = (index(until - block) * index(BLOCK)).min(data.len());
            let (part, behind) = data.split_at_mut(bytes);
            match place {
                Place::Flash => {
                    all = join(all, self.read_flash(now, ready, zone, block, until - block, part)?);
                }
                Place::Staged => self.read_staged(zone, block - staged_from, part),
                Place::Nowhere => zero(part),
            }
            data = behind;
            block = until;
        }
        Ok(all)
    }

    /// Whether slots hold blocks of a zone in the life that it has: a host whose file failed may show older ones.
    fn are_of(&self, zone: ZoneId, first: u32, spares: &[Spare]) -> bool {
        let life = self.data[zone.index()].resets;
        (first..).zip(spares).all(|(block, spare)| match SpareState::decode(spare) {
            SpareState::Programmed(record) => {
                (record.lpn.raw(), record.epoch_low) == (block, life)
                    && record.seq.raw() == u64::from(zone.raw())
            }
            _ => false,
        })
    }

    fn read_staged(&self, zone: ZoneId, first: u32, data: &mut [u8]) {
        let from = block_bytes(first).start;
        match self.data[zone.index()].bytes.get(from..from + data.len()) {
            Some(bytes) => data.copy_from_slice(bytes),
            None => zero(data),
        }
    }

    /// Reads blocks of one flash page: from the cache, if its program is under way.
    fn read_flash(
        &mut self,
        now: Nanos,
        ready: Nanos,
        zone: ZoneId,
        block: u32,
        count: u32,
        data: &mut [u8],
    ) -> Result<Grant, ZnsError> {
        let lba = self.start(zone) + u64::from(block);
        let zone_data = &mut self.data[zone.index()];
        let Some(set) = zone_data.set else { return Err(ZnsError::UnrecoveredRead { lba }) };
        while zone_data.in_flight.front().is_some_and(|(_, done)| *done <= ready) {
            zone_data.in_flight.pop_front();
        }
        let page = block / self.layout.page();
        let cached = zone_data.in_flight.iter().any(|(under_way, _)| *under_way == page);
        let slot = self.layout.slot(set, block);
        let mut spares = std::mem::take(&mut self.spares);
        let result = if cached {
            let dram = self.config.timing.dram_page.get() * u64::from(count);
            let from_medium = self.nand.load_slots(slot, count, data, &mut spares);
            from_medium.map(|()| at_once(ready + Nanos::new(dram)))
        } else {
            self.stats.reads.add(Cause::User, count.into());
            self.nand.read_slots(host_work(now, ready), slot, count, data, &mut spares)
        };
        let intact = !M::STORES
            || (first_damaged(&spares, data).is_none() && self.are_of(zone, block, &spares));
        self.spares = spares;
        match result {
            Ok(grant) if intact => Ok(grant),
            Ok(_) | Err(MediaError::Unreadable) => {
                self.stats.media_failures += u64::from(count);
                Err(ZnsError::UnrecoveredRead { lba })
            }
            Err(error) => Err(ZnsError::Media(error)),
        }
    }
}

/// Where blocks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Flash,
    Staged,
    Nowhere,
}

/// The first of several slots whose spare area or checksum is wrong.
pub(crate) fn first_damaged(spares: &[Spare], data: &[u8]) -> Option<usize> {
    let mut blocks = data.chunks_exact(index(BLOCK));
    spares.iter().position(|spare| {
        let bytes = blocks.next();
        match SpareState::decode(spare) {
            SpareState::Programmed(record) if record.kind == SlotKind::Data => {
                bytes.is_some_and(|bytes| checksum(bytes) != record.data_crc)
            }
            _ => true,
        }
    })
}
