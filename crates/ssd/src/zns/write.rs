//! Writes and appends.

use std::borrow::Cow;

use onefold_format::{SlotKind, SpareRecord, checksum};
use onefold_nand::{At, Grant, Media, Spare};
use onefold_units::convert::{index, index64};
use onefold_units::{Cause, Lpn, Nanos, Op, Seq, ZoneId};

use super::config::BLOCK;
use super::device::{Zns, at_once, host_work, is_failed_program};
use super::{ZnsError, ZoneAction};
use crate::times::join;
use crate::{Completion, Payload};

/// How an append ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// First block of the data.
    pub lba: u64,
    /// When it completes, and why it waited.
    pub done: Completion,
}

impl<M: Media> Zns<M> {
    /// Writes `blocks` from block `lba` on, which has to be the write pointer of its zone, if that has one.
    ///
    /// # Errors
    /// A write that is refused changes nothing. After [`ZnsError::WriteFault`] the write pointer says what was written.
    pub fn write(
        &mut self,
        now: Nanos,
        lba: u64,
        blocks: u32,
        fua: bool,
        payload: &Payload<'_>,
    ) -> Result<Completion, ZnsError> {
        let (zone, at) = self.locate(lba, blocks)?;
        self.table.check_write(zone, Some(at), blocks)?;
        if self.table.is_conventional(zone) {
            return self.overwrite(now, lba, blocks, fua, payload);
        }
        self.put(now, zone, blocks, fua, payload)
    }

    /// Writes `blocks` at the write pointer of the zone that begins at block `start`, and says where that was.
    ///
    /// # Errors
    /// As [`Zns::write`]; [`ZnsError::InvalidField`] if no zone with a write pointer begins there, or if it is longer than an append
    /// may be.
    pub fn append(
        &mut self,
        now: Nanos,
        start: u64,
        blocks: u32,
        fua: bool,
        payload: &Payload<'_>,
    ) -> Result<Appended, ZnsError> {
        let (zone, at) = self.locate(start, blocks)?;
        if at != 0 {
            let what = "the address of an append, expected the start of a zone";
            return Err(ZnsError::InvalidField { what });
        }
        if self.config.append_blocks.is_some_and(|max| blocks > max) {
            let what = "the length of an append, expected at most the append size limit";
            return Err(ZnsError::InvalidField { what });
        }
        self.table.check_write(zone, None, blocks)?;
        let lba = start + u64::from(self.table.written(zone));
        let done = self.put(now, zone, blocks, fua, payload)?;
        self.stats.appends += 1;
        Ok(Appended { lba, done })
    }

    /// Writes at the write pointer what was found to fit.
    fn put(
        &mut self,
        now: Nanos,
        zone: ZoneId,
        blocks: u32,
        fua: bool,
        payload: &Payload<'_>,
    ) -> Result<Completion, ZnsError> {
        let opened = self.table.open_for_write(zone)?;
        self.count_opened(opened, true);
        self.host.count(Op::Write, blocks.into());
        let ready = self.nand.timelines_mut().command(now, blocks.into());
        let bytes = u64::from(blocks) * u64::from(BLOCK);
        let arrived = self.nand.timelines_mut().link_in(ready, bytes);
        let bytes = match payload {
            _ if !M::STORES => Cow::Borrowed(&[][..]),
            Payload::Write(bytes) => Cow::Borrowed(*bytes),
            _ => Cow::Owned(vec![0; index64(bytes)]),
        };
        let mut programmed = at_once(arrived);
        let mut taken = at_once(arrived);
        let mut left = blocks;
        while left > 0 {
            let count = left.min(self.layout.page() - self.data[zone.index()].staged);
            let from = index(blocks - left) * index(BLOCK);
            let part = bytes.get(from..from + index(count) * index(BLOCK)).unwrap_or_default();
            let grants = self.put_in_page(host_work(now, arrived), zone, count, part)?;
            (taken, programmed) = (join(taken, grants.0), join(programmed, grants.1));
            left -= count;
        }
        let all = self.acknowledge(zone, blocks, fua, taken, programmed)?;
        Ok(Completion { at: all.done + self.config.timing.firmware_write, delay: all.delay })
    }

    /// What the host waits for: the programs, or the place of its data in the cache.
    fn acknowledge(
        &mut self,
        zone: ZoneId,
        blocks: u32,
        fua: bool,
        taken: Grant,
        programmed: Grant,
    ) -> Result<Grant, ZnsError> {
        let dram = Nanos::new(self.config.timing.dram_page.get() * u64::from(blocks));
        let volatile = self.cache.is_some() && self.config.cache_volatile;
        if fua || !volatile {
            self.save_staged(zone)?;
        }
        if fua && M::STORES {
            self.sync()?;
        }
        let in_cache = Grant { done: taken.done + dram, delay: taken.delay };
        Ok(if self.cache.is_none() || (fua && volatile) {
            join(programmed, in_cache)
        } else {
            in_cache
        })
    }

    /// Adds blocks to the flash page that the write pointer is in, and programs it once it is full. Gives when they are in
    /// RAM, and when they are programmed, if they are.
    fn put_in_page(
        &mut self,
        at: At,
        zone: ZoneId,
        count: u32,
        bytes: &[u8],
    ) -> Result<(Grant, Grant), ZnsError> {
        self.take_set(zone)?;
        self.unflushed.insert(zone);
        let staged = self.data[zone.index()].staged;
        if staged + count < self.layout.page() {
            let data = &mut self.data[zone.index()];
            data.staged += count;
            data.bytes.extend_from_slice(bytes);
            self.table.advance(zone, count);
            return Ok((at_once(at.ready), at_once(at.ready)));
        }
        let page_bytes = u64::from(self.layout.page()) * u64::from(BLOCK);
        let room = self.cache.as_mut().map_or(at.ready, |cache| cache.room(at.ready, page_bytes));
        let at = At { ready: room, ..at };
        let page = self.table.written(zone) / self.layout.page();
        let grant = if staged == 0 {
            self.program_page(at, zone, page, count, bytes)?
        } else {
            let mut whole = std::mem::take(&mut self.data[zone.index()].bytes);
            let before = whole.len();
            whole.extend_from_slice(bytes);
            let result = self.program_page(at, zone, page, self.layout.page(), &whole);
            whole.truncate(if result.is_ok() { 0 } else { before });
            self.data[zone.index()].bytes = whole;
            result?
        };
        if let Some(cache) = &mut self.cache {
            cache.hold(grant.done, page_bytes);
            self.data[zone.index()].in_flight.push_back((page, grant.done));
        }
        self.unstage(zone);
        self.table.advance(zone, count);
        Ok((at_once(room), grant))
    }

    /// Programs a flash page of a zone, of which the first `filled` blocks are data. Blocks that fail are left for others.
    pub(crate) fn program_page(
        &mut self,
        at: At,
        zone: ZoneId,
        page: u32,
        filled: u32,
        bytes: &[u8],
    ) -> Result<Grant, ZnsError> {
        self.make_spares(zone, page, filled, bytes);
        loop {
            let set = self.take_set(zone)?;
            let (superblock, program) = self.layout.place(set, page);
            let spares = std::mem::take(&mut self.spares);
            let result = self.nand.program(at, superblock, program, &spares, bytes);
            self.spares = spares;
            self.count_programs(Cause::User, filled);
            self.count_programs(Cause::Padding, self.layout.page() - filled);
            match result {
                Ok(grant) => {
                    self.programmed_at = self.programmed_at.max(grant.done);
                    return Ok(grant);
                }
                Err(error) if is_failed_program(error) => {
                    self.leave_failing(at, zone, set, page)?;
                    self.make_spares(zone, page, filled, bytes);
                }
                Err(error) => return Err(ZnsError::Media(error)),
            }
        }
    }

    fn make_spares(&mut self, zone: ZoneId, page: u32, filled: u32, bytes: &[u8]) {
        self.spares.clear();
        if !M::STORES {
            return;
        }
        let first = page * self.layout.page();
        for (block, bytes) in (first..).zip(bytes.chunks_exact(index(BLOCK))) {
            let spare = if block - first < filled {
                self.spare_of(zone, block, bytes)
            } else {
                self.spare(zone, block, SlotKind::Filler, 0)
            };
            self.spares.push(spare);
        }
    }

    /// The spare area of a block with data.
    pub(crate) fn spare_of(&self, zone: ZoneId, block: u32, bytes: &[u8]) -> Spare {
        self.spare(zone, block, SlotKind::Data, checksum(bytes))
    }

    /// A spare area names zone, block and life of the zone, so that no slot is taken for another one's.
    pub(crate) fn spare(&self, zone: ZoneId, block: u32, kind: SlotKind, data_crc: u32) -> Spare {
        SpareRecord {
            kind,
            lpn: Lpn::new(block),
            seq: Seq::new(zone.raw().into()),
            data_crc,
            epoch_low: self.data[zone.index()].resets,
        }
        .encode()
    }

    /// Fills up the flash page of the write pointer and programs it.
    pub(crate) fn pad(&mut self, at: At, zone: ZoneId) -> Result<Grant, ZnsError> {
        let staged = self.data[zone.index()].staged;
        if staged == 0 {
            return Ok(at_once(at.ready));
        }
        let mut bytes = std::mem::take(&mut self.data[zone.index()].bytes);
        let before = bytes.len();
        if M::STORES {
            bytes.resize(index(self.layout.page()) * index(BLOCK), 0);
        }
        let page = self.table.written(zone) / self.layout.page();
        let result = self.program_page(at, zone, page, staged, &bytes);
        bytes.truncate(if result.is_ok() { 0 } else { before });
        self.data[zone.index()].bytes = bytes;
        if result.is_ok() {
            self.unstage(zone);
        }
        result
    }

    /// Nothing of a zone is staged any more.
    pub(crate) fn unstage(&mut self, zone: ZoneId) {
        let data = &mut self.data[zone.index()];
        if data.saved > 0 {
            self.left_staged.insert(zone);
        }
        (data.staged, data.saved) = (0, 0);
    }

    pub(crate) fn check_action(&self, zone: ZoneId, action: ZoneAction) -> Result<(), ZnsError> {
        if !self.has(zone) {
            let lba = u64::from(zone.raw()) * u64::from(self.config.zone_blocks);
            return Err(ZnsError::LbaOutOfRange { lba, blocks: 0, capacity: self.blocks() });
        }
        self.table.check(zone, action)
    }
}
