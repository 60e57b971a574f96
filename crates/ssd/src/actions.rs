//! Executing what the policy decided, in order.
//!
//! With `writeback = sync`, admission waits for the victim: the program that frees a slot is done
//! before the slot is used again. With `async`, the victim's bytes move to the pool of `write_back`,
//! and only a full pool makes admission wait. In both, FLUSH and FUA wait for the programs of what
//! they promise.

mod job;

use onefold_buffer::{Action, Actions, PartMask, Programmed, Slot, Stream};
use onefold_ftl::FtlError;
use onefold_nand::{Delay, Grant, Media};
use onefold_units::convert::{index, narrow, u64_from};
use onefold_units::{Cause, Lpn, Nanos};

use crate::command::is_power_lost;
use crate::dedup::{UNKNOWN, Unit, store};
use crate::holes::{covered, touched};
use crate::span::Part;
use crate::times::{Times, join};
use crate::{Payload, Ssd, SsdError};

pub(crate) use job::Job;

impl<M: Media> Ssd<M> {
    /// Executes what the policy decided last.
    pub(crate) fn run_actions(&mut self, mut job: Job<'_, '_>) -> Result<Grant, SsdError> {
        let Some(buffer) = &mut self.buffer else { return Ok(job.all) };
        let actions = std::mem::take(&mut buffer.actions);
        let lookups = u64::from(actions.counts().lookups);
        let looked_up = Nanos::new(self.config.timing.table_lookup.get() * lookups);
        job.times.ready += looked_up;
        job.wait_for_slots(job.times.ready, Delay::None);
        if let Some(pool) = &mut buffer.pool {
            pool.retire(job.times.ready);
        }
        let result = self.run(&mut job, &actions);
        if let Some(buffer) = &mut self.buffer {
            buffer.actions = actions;
            if !job.from_pool.is_empty() {
                buffer.count_served(job.req.tenant, &job.from_pool, job.from_flash == 0);
            }
        }
        result?;
        let dram = self.config.timing.dram_page.get() * job.dram_pages;
        Ok(join(job.all, Grant { done: job.movable + Nanos::new(dram), delay: Delay::None }))
    }

    /// Executes all actions, also after one that failed: the policy counts on them. The first error is the request's.
    fn run(&mut self, job: &mut Job<'_, '_>, actions: &Actions) -> Result<(), SsdError> {
        let mut all = Ok(());
        for action in actions.as_slice() {
            let done = self.act(job, *action, actions);
            if done.as_ref().is_err_and(is_power_lost) {
                return done;
            }
            all = all.and(done);
        }
        all
    }

    fn act(
        &mut self,
        job: &mut Job<'_, '_>,
        action: Action,
        actions: &Actions,
    ) -> Result<(), SsdError> {
        match action {
            Action::Program { stream, batch } => self.program(job, stream, actions.batch(batch)),
            Action::Drop { lpn, .. } => {
                self.forget_dirty(lpn);
                Ok(())
            }
            Action::Hit { lpn, slot } => {
                let loaded = self.load_holes(job, lpn, slot);
                self.serve(job, lpn, slot, loaded)
            }
            Action::Fill { lpn, slot, missing } => {
                let loaded = self.fill(job, lpn, slot, missing);
                self.serve(job, lpn, slot, loaded)
            }
            Action::PadRead { lpn, slot, missing } => {
                // What cannot be loaded matters when it is needed (`crate::holes`).
                match self.load(job, lpn, slot, missing, Cause::Padding) {
                    Ok(grant) => job.wait_for_slots(grant.done, grant.delay),
                    Err(error) if is_power_lost(&error) => return Err(error),
                    Err(_) => {}
                }
                Ok(())
            }
            Action::Store { lpn, slot } => self.store(job, lpn, slot),
            Action::Bypass { lpn } => self.bypass(job, lpn),
        }
    }

    fn forget_dirty(&mut self, lpn: Lpn) {
        if let Some(buffer) = &mut self.buffer {
            buffer.dirty.remove(lpn);
            if !buffer.holes.is_empty() {
                buffer.holes.forget_slot(lpn);
            }
        }
    }

    /// Loads once more what a read asks for and could not be loaded before.
    fn load_holes(&mut self, job: &mut Job<'_, '_>, lpn: Lpn, slot: Slot) -> Result<(), SsdError> {
        let Some(part) = job.part(lpn) else { return Ok(()) };
        let missing = self.holes_in(lpn, part);
        if missing.bits() == 0 { Ok(()) } else { self.fill(job, lpn, slot, missing) }
    }

    /// The parts of a slot without data that a part of a request touches.
    fn holes_in(&self, lpn: Lpn, part: Part) -> PartMask {
        let buffer = self.buffer.as_ref().filter(|buffer| !buffer.holes.is_empty());
        buffer.map_or(PartMask::new(0), |buffer| {
            let parts = touched(&(part.begin..part.end), buffer.policy.part_bytes());
            buffer.holes.within(lpn, parts)
        })
    }

    /// Answers a read from a slot, unless what it asks for could not be `loaded`.
    fn serve(
        &mut self,
        job: &mut Job<'_, '_>,
        lpn: Lpn,
        slot: Slot,
        loaded: Result<(), SsdError>,
    ) -> Result<(), SsdError> {
        let Some(part) = job.part(lpn) else { return Ok(()) };
        job.moves(part);
        if loaded.is_err() && self.holes_in(lpn, part).bits() != 0 {
            return loaded;
        }
        if let Some(buffer) = &self.buffer {
            job.deliver(part, buffer.slot(slot));
        }
        Ok(())
    }

    /// Puts a part of a write into a slot. It fails where the rest of a sector that it covers in part could not be loaded.
    fn store(&mut self, job: &mut Job<'_, '_>, lpn: Lpn, slot: Slot) -> Result<(), SsdError> {
        let Some(part) = job.part(lpn) else { return Ok(()) };
        job.moves(part);
        let Some(buffer) = &mut self.buffer else { return Ok(()) };
        buffer.dirty.insert(lpn);
        let target = buffer.slot_mut(slot).get_mut(index(part.begin)..index(part.end));
        match (&*job.payload, target) {
            (Payload::Write(bytes), Some(target)) => {
                target.copy_from_slice(&bytes[part.at..part.at + index(part.len())]);
            }
            (_, Some(target)) => target.fill(0),
            (_, None) => {}
        }
        if !buffer.holes.is_empty() {
            buffer.holes.close(lpn, covered(&(part.begin..part.end), buffer.policy.part_bytes()));
        }
        let torn = self.holes_in(lpn, part).bits() != 0;
        if torn { Err(FtlError::Unreadable { lpn: lpn.raw() }.into()) } else { Ok(()) }
    }

    /// Loads the missing parts of a unit that a read asks for: from the victims, or from flash.
    fn fill(
        &mut self,
        job: &mut Job<'_, '_>,
        lpn: Lpn,
        slot: Slot,
        missing: PartMask,
    ) -> Result<(), SsdError> {
        if let Some(part) = self.part_in_pool(job, lpn) {
            let mut unit = std::mem::take(&mut self.scratch);
            self.copy_victim(lpn, &mut unit);
            self.patch(lpn, slot, missing, &unit);
            self.scratch = unit;
            job.from_pool.push(part);
            return Ok(());
        }
        job.from_flash += 1;
        let grant = self.load(job, lpn, slot, missing, Cause::User)?;
        job.movable = job.movable.max(grant.done);
        job.all = join(job.all, grant);
        Ok(())
    }

    /// Loads the missing parts of a unit from flash into its slot. What cannot be loaded is a hole of the slot.
    fn load(
        &mut self,
        job: &Job<'_, '_>,
        lpn: Lpn,
        slot: Slot,
        missing: PartMask,
        cause: Cause,
    ) -> Result<Grant, SsdError> {
        let times = Times { ready: job.freed, ..job.times };
        let mut unit = std::mem::take(&mut self.scratch);
        let (lacks, read) = self.read_unit(times, (lpn, missing), cause, &mut unit);
        self.patch(lpn, slot, PartMask::new(missing.bits() & !lacks.bits()), &unit);
        self.scratch = unit;
        if lacks.bits() != 0
            && let Some(buffer) = &mut self.buffer
        {
            buffer.holes.open(lpn, lacks);
        }
        Ok(read?.unwrap_or(Grant { done: times.ready, delay: Delay::None }))
    }

    /// Copies the missing parts of a unit into its slot.
    fn patch(&mut self, lpn: Lpn, slot: Slot, missing: PartMask, unit: &[u8]) {
        let Some(buffer) = &mut self.buffer else { return };
        let part_bytes = buffer.policy.part_bytes();
        let target = buffer.slot_mut(slot);
        for range in missing.ranges(part_bytes) {
            if let (Some(to), Some(from)) = (target.get_mut(range.clone()), unit.get(range)) {
                to.copy_from_slice(from);
            }
        }
        if !buffer.holes.is_empty() {
            buffer.holes.close(lpn, missing);
        }
    }

    /// Answers a read without keeping the unit.
    fn bypass(&mut self, job: &mut Job<'_, '_>, lpn: Lpn) -> Result<(), SsdError> {
        let mut unit = std::mem::take(&mut self.scratch);
        if let Some(part) = self.part_in_pool(job, lpn) {
            self.copy_victim(lpn, &mut unit);
            job.deliver(part, &unit);
            job.moves(part);
            job.from_pool.push(part);
            self.scratch = unit;
            return Ok(());
        }
        let part = job.part(lpn);
        let part_bytes = self.buffer.as_ref().map_or(1, |buffer| buffer.policy.part_bytes());
        let asked = part.map_or_else(|| 0..narrow(self.unit), |part| part.begin..part.end);
        let parts = touched(&asked, part_bytes);
        let (lacks, read) = self.read_unit(job.times, (lpn, parts), Cause::User, &mut unit);
        if let (Some(part), 0) = (part, lacks.bits()) {
            job.deliver(part, &unit);
        }
        self.scratch = unit;
        job.from_flash += 1;
        match read {
            Err(error) if lacks.bits() != 0 => return Err(error),
            Ok(Some(grant)) => job.all = join(job.all, grant),
            _ => {}
        }
        Ok(())
    }

    /// The part of a requested unit, if the unit is among the victims on their way to flash.
    fn part_in_pool(&self, job: &Job<'_, '_>, lpn: Lpn) -> Option<Part> {
        let pool = self.buffer.as_ref()?.pool.as_ref()?;
        pool.find(lpn).and_then(|_| job.part(lpn))
    }

    fn copy_victim(&self, lpn: Lpn, unit: &mut [u8]) {
        let pool = self.buffer.as_ref().and_then(|buffer| buffer.pool.as_ref());
        if let Some(bytes) = pool.and_then(|pool| pool.find(lpn)) {
            unit.copy_from_slice(bytes);
        }
    }

    /// Writes the entries of one program to the FTL.
    fn program(
        &mut self,
        job: &mut Job<'_, '_>,
        kind: Stream,
        entries: &[Programmed],
    ) -> Result<(), SsdError> {
        let asked = self.placement(job.stream, kind);
        let awaited = job.awaits(entries);
        let zeroes = self.config.unmap_zeroes;
        let mut all = Ok(());
        for entry in entries {
            let stream = match self.classified {
                None => asked,
                Some(_) => self.stream(entry.lpn, u64_from(entries.len()), asked),
            };
            if !self.is_complete(job, *entry)? {
                self.strand(*entry, stream);
                if let Some(buffer) = &mut self.buffer {
                    buffer.dirty.remove(entry.lpn);
                }
                if awaited {
                    all = all
                        .and_then(|()| Err(FtlError::Unreadable { lpn: entry.lpn.raw() }.into()));
                }
                continue;
            }
            let Some(buffer) = &mut self.buffer else { continue };
            buffer.dirty.remove(entry.lpn);
            let ready =
                if awaited { job.times.ready } else { buffer.wait_for_pool(job.times.ready) };
            let at = Times { ready, ..job.times }.host();
            let data = buffer.slot(entry.slot);
            let pages = buffer.pages(entry.dirty);
            let unit = Unit { lpn: entry.lpn, pages, stream, data, content: UNKNOWN };
            let grant = match store(&mut self.ftl, self.dedup.as_mut(), zeroes, at, unit) {
                Ok(grant) => grant,
                Err(error) if is_power_lost(&error.into()) => return Err(error.into()),
                Err(error) => {
                    self.strand(*entry, stream);
                    all = all.and_then(|()| Err(error.into()));
                    continue;
                }
            };
            if !buffer.holes.is_empty() {
                buffer.holes.land(entry.lpn);
            }
            if buffer.takes_victim(*entry, grant.done, awaited) {
                let late = ready > job.times.ready;
                job.wait_for_slots(ready, if late { Delay::Background } else { Delay::None });
            } else {
                job.wait_for_slots(grant.done, grant.delay);
            }
        }
        all
    }

    /// Whether all of an entry is in its slot, now that it is needed.
    fn is_complete(&mut self, job: &Job<'_, '_>, entry: Programmed) -> Result<bool, SsdError> {
        let missing = |ssd: &Self| {
            let buffer = ssd.buffer.as_ref().filter(|buffer| !buffer.holes.is_empty());
            buffer
                .map_or(0, |buffer| buffer.holes.within(entry.lpn, PartMask::new(u16::MAX)).bits())
        };
        match missing(self) {
            0 => Ok(true),
            lacks => {
                let lacks = PartMask::new(lacks);
                match self.load(job, entry.lpn, entry.slot, lacks, Cause::Padding) {
                    Err(error) if is_power_lost(&error) => Err(error),
                    loaded => Ok(loaded.is_ok()),
                }
            }
        }
    }

    /// The stream of a program: append-only data goes to the last one, if there are several.
    fn placement(&self, stream: u32, kind: Stream) -> u32 {
        let streams = self.config.ftl.streams;
        if kind == Stream::AppendOnly && self.config.separate_streams && streams > 1 {
            return streams - 1;
        }
        stream
    }
}
