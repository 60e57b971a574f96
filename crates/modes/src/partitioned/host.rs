//! Requests of the host. Those below 4 KiB are the business of drivers (volume.md, section 3, V13).
//!
//! A request is taken as a whole or not at all; a trim may be taken in part.

use onefold_format::volume::BLOCK_BYTES;
use onefold_units::Location;
use onefold_units::convert::{index, narrow};
use onefold_volume::{REQUEST_BLOCKS_MAX, Range, ReadPlan, Refusal};

use super::PartitionedVolume;
use super::resident::Found;
use super::runs::Piece;
use super::tables::{Change, Known};

/// Blocks that one call says are alike, at most.
const ALIKE_MAX: u32 = 1 << 16;

impl PartitionedVolume {
    fn check_range(&self, range: Range, most: u64) -> Result<(), Refusal> {
        let end = range.lba.raw().checked_add(range.blocks);
        let inside = end.is_some_and(|end| end <= self.areas.logical_blocks());
        let good = inside && range.blocks > 0 && range.blocks <= most;
        if good { Ok(()) } else { Err(Refusal::InvalidField) }
    }

    pub(super) fn check_change(&self) -> Result<(), Refusal> {
        match self.failing {
            _ if self.frozen.is_some() || self.checkpoint.closing => Err(Refusal::ReadOnly),
            Some(why) => Err(Refusal::Backing(why)),
            None => Ok(()),
        }
    }

    /// A refusal as the host gets it: what would have to wait for a backing that takes no writes is
    /// refused.
    pub(super) fn refuse(&self, refusal: Refusal) -> Refusal {
        match self.failing {
            Some(why) if refusal == Refusal::Busy => Refusal::Backing(why),
            _ => refusal,
        }
    }

    pub(super) fn take_write(
        &mut self,
        tag: u64,
        range: Range,
        data: Option<&[u8]>,
        fua: bool,
    ) -> Result<(), Refusal> {
        self.check_range(range, REQUEST_BLOCKS_MAX.into())?;
        self.check_change()?;
        if self.regions.blocks() < range.blocks {
            return Err(self.stall());
        }
        if !self.journal.has_room() {
            return Err(Refusal::Busy);
        }
        let found = self.need(narrow(range.lba.raw()), narrow(range.blocks))?;
        if let Some(since) = self.stalled.take() {
            self.stats.clean_stall_ns += self.now.get().saturating_sub(since.get());
        }
        let request = self.requests.begin(tag, fua);
        let (mut lba, mut left) = (narrow(range.lba.raw()), narrow(range.blocks));
        let mut data = data;
        while left > 0 {
            let room = u32::try_from(self.journal.room()).unwrap_or(left);
            let Some(at) = self.regions.take(&self.areas, left.min(room)) else { break };
            self.enter(self.areas.partition_of(at.start));
            let piece = Piece { seq: self.journal.open.seq, request };
            self.journal.open.outstanding += 1;
            self.requests.wait(request);
            let blocks = at.end - at.start;
            let (now, rest) = match data {
                Some(data) => {
                    let (now, rest) = data.split_at(index(blocks) * BLOCK_BYTES);
                    (Some(now), Some(rest))
                }
                None => (None, None),
            };
            self.runs.push(at.clone(), now, piece, self.options.merge);
            for to in at {
                self.change(lba, Change::Write { to }, found.as_ref());
                lba += 1;
            }
            data = rest;
            left -= blocks;
        }
        self.stats.written += range.blocks;
        Ok(())
    }

    /// The next blocks go to a partition. A transaction goes to one map file.
    fn enter(&mut self, partition: usize) {
        if partition != self.current {
            if self.areas.rules().files > 1 {
                self.journal.close();
            }
            self.left.push_back(self.current);
            self.current = partition;
        }
        self.journal.open.file = self.areas.rules().file_of(partition);
    }

    /// Adds a change of a block to the open transaction.
    fn change(&mut self, lba: u32, change: Change, found: Option<&Found>) {
        // What the overlay has was searched before.
        let known = self.journal.overlay.contains_key(&lba);
        let base = match found {
            _ if known => None,
            Some(found) => found.get(&lba).copied().flatten(),
            None => self.tables.find(lba),
        };
        self.journal.push(self.now, lba, base, change);
    }

    /// There is no space: the cleaner has to find some. V8: the write waits.
    fn stall(&mut self) -> Refusal {
        if self.stalled.is_none() {
            self.stalled = Some(self.now);
            self.stats.clean_stalls += 1;
        }
        let busy = self.job.is_some() || self.is_writing();
        if !busy && !self.tables.has_holes() {
            if self.journal.open.changes.is_empty() {
                return Refusal::NoSpace;
            }
            // Holes come with it.
            self.journal.close();
        }
        Refusal::Busy
    }

    pub(super) fn take_trim(&mut self, tag: u64, range: Range) -> Result<u64, Refusal> {
        self.check_range(range, u64::MAX)?;
        self.check_change()?;
        if !self.journal.has_room() {
            return Err(Refusal::Busy);
        }
        let (start, end) = (narrow(range.lba.raw()), narrow(range.lba.raw() + range.blocks));
        let (end, found) = self.need_some(start, end)?;
        self.journal.open.file = self.areas.rules().file_of(self.current);
        let (mut at, mut room) = (start, self.journal.room());
        // Trims change tables when they are committed, not here.
        let mut known = Known::default();
        while let Some(lba) = self.next_mapped(at, end, found.as_ref(), &mut known) {
            if room == 0 {
                self.stats.trimmed += u64::from(lba - start);
                self.report(tag, Ok(()));
                return Ok((lba - start).into());
            }
            self.change(lba, Change::Trim, found.as_ref());
            (at, room) = (lba + 1, room - 1);
        }
        self.stats.trimmed += u64::from(end - start);
        self.report(tag, Ok(()));
        Ok((end - start).into())
    }

    /// As much of a range as can be looked up at once, and where its blocks lie if the tables
    /// cannot be asked.
    fn need_some(&mut self, start: u32, end: u32) -> Result<(u32, Option<Found>), Refusal> {
        if self.tables.all_readable() {
            return Ok((end, None));
        }
        let end = end.min(start + REQUEST_BLOCKS_MAX);
        Ok((end, self.need(start, end - start)?))
    }

    /// The first block from `lba` on and before `end` that lies anywhere.
    fn next_mapped(
        &self,
        lba: u32,
        end: u32,
        found: Option<&Found>,
        known: &mut Known,
    ) -> Option<u32> {
        let overlay = &self.journal.overlay;
        if let Some(found) = found {
            return (lba..end).find(|lba| match overlay.get(lba) {
                Some(overlaid) => overlaid.now.is_some(),
                None => found.get(lba).is_some_and(Option::is_some),
            });
        }
        let pending = overlay.range(lba..).find(|(_, one)| one.now.is_some()).map(|(lba, _)| *lba);
        let mut stored = self.tables.next_valid(lba, known);
        while let Some(at) = stored
            && overlay.get(&at).is_some_and(|one| one.now.is_none())
        {
            stored = self.tables.next_valid(at + 1, known);
        }
        [pending, stored].into_iter().flatten().min().filter(|lba| *lba < end)
    }

    pub(super) fn take_read(
        &mut self,
        range: Range,
        mut buffer: Option<&mut [u8]>,
        plan: &mut ReadPlan,
    ) -> Result<(), Refusal> {
        self.check_range(range, REQUEST_BLOCKS_MAX.into())?;
        let found = self.need(narrow(range.lba.raw()), narrow(range.blocks))?;
        plan.clear();
        for block in 0..narrow(range.blocks) {
            let lba = narrow(range.lba.raw()) + block;
            let overlaid = self.journal.overlay.get(&lba).map(|one| one.now);
            let at = overlaid.unwrap_or_else(|| match &found {
                Some(found) => found.get(&lba).copied().flatten(),
                None => self.tables.find_for_read(lba),
            });
            let into = buffer
                .as_deref_mut()
                .map(|all| &mut all[index(block) * BLOCK_BYTES..index(block + 1) * BLOCK_BYTES]);
            let memory = at.map_or(Some(&[][..]), |at| self.runs.block(&self.ios, at));
            match (memory, at) {
                (Some(bytes), _) => {
                    if let Some(into) = into {
                        into.fill(0);
                        into[..bytes.len()].copy_from_slice(bytes);
                    }
                }
                (None, Some(at)) => plan.push(block, Location::new(at), 0),
                (None, None) => {}
            }
        }
        for run in plan.runs() {
            self.ios.pin(run.at.raw()..run.at.raw() + run.blocks);
        }
        self.stats.read += range.blocks;
        self.stats.read_runs += onefold_units::convert::u64_from(plan.runs().len());
        Ok(())
    }

    pub(super) fn find_mapped(&mut self, range: Range) -> Result<(bool, u64), Refusal> {
        self.check_range(range, u64::MAX)?;
        let (start, end) = (narrow(range.lba.raw()), narrow(range.lba.raw() + range.blocks));
        let (end, found) = self.need_some(start, end)?;
        let found = found.as_ref();
        let mut known = Known::default();
        let next = self.next_mapped(start, end, found, &mut known).unwrap_or(end);
        if next > start {
            return Ok((false, (next - start).into()));
        }
        let most = end.min(start.saturating_add(ALIKE_MAX));
        let mapped = |lba: &u32| self.next_mapped(*lba, lba + 1, found, &mut known).is_some();
        let alike = (start..most).take_while(mapped).count();
        Ok((true, onefold_units::convert::u64_from(alike)))
    }

    /// Whether a block lies at `at`, changes included that are not committed.
    pub(super) fn is_current(&self, lba: u32, at: u32) -> bool {
        let table = &self.tables.list[self.areas.partition_of(at)].table;
        !self.journal.overlay.contains_key(&lba) && table.find(lba) == Some(at)
    }
}
