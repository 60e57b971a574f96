//! Units of the buffer that are read and programmed although parts of them are missing
//! (`crate::holes`).

use onefold_buffer::{PartMask, Programmed};
use onefold_nand::{Grant, Media};
use onefold_units::convert::narrow;
use onefold_units::{Cause, Lpn, Nanos};

use crate::buffered::Buffered;
use crate::command::is_power_lost;
use crate::dedup::{UNKNOWN, Unit, store};
use crate::holes::{STRANDED_MAX, Stranded, below};
use crate::times::Times;
use crate::{Ssd, SsdError};

impl<M: Media> Ssd<M> {
    fn part_bytes(&self) -> u32 {
        self.buffer.as_ref().map_or(1, |buffer| buffer.policy.part_bytes())
    }

    /// Copies what is stranded of a unit; says which of these parts only flash has.
    fn recall(&self, lpn: Lpn, parts: PartMask, unit: &mut [u8]) -> PartMask {
        let holes = self.buffer.as_ref().map(|buffer| &buffer.holes);
        let holes = holes.filter(|holes| !holes.stranded.is_empty());
        holes.map_or(parts, |holes| holes.overlay(lpn, parts, self.part_bytes(), unit))
    }

    /// Reads these parts of a unit as the host left them; says which it lacks then, and why. Other
    /// parts may be older.
    pub(crate) fn read_unit(
        &mut self,
        times: Times,
        (lpn, parts): (Lpn, PartMask),
        cause: Cause,
        unit: &mut [u8],
    ) -> (PartMask, Result<Option<Grant>, SsdError>) {
        let nothing = PartMask::new(0);
        if self.recall(lpn, parts, unit) == nothing {
            return (nothing, Ok(None));
        }
        let read = self.ftl.read(times.host(), lpn, narrow(self.unit), cause, unit);
        let read = match read {
            Ok(grant) if cause == Cause::User => Ok(self.note_read(lpn, grant, unit)),
            read => read,
        };
        let rest = self.recall(lpn, parts, unit);
        match read {
            Ok(grant) => (nothing, Ok(Some(grant))),
            Err(error) => (rest, Err(error.into())),
        }
    }

    /// A unit that is to be programmed cannot be (invariant 2).
    pub(crate) fn strand(&mut self, entry: Programmed, stream: u32) {
        let Programmed { lpn, slot, dirty } = entry;
        let all = below(narrow(self.unit) / self.part_bytes());
        let part_bytes = self.part_bytes();
        let Some(buffer) = &mut self.buffer else { return };
        let lacks = buffer.holes.within(lpn, PartMask::new(all));
        if lacks.bits() == all {
            // Nothing of it is in its slot.
            return;
        }
        let bytes = buffer.slot(slot).to_vec();
        let unit = Stranded { bytes, holes: lacks.bits(), dirty: dirty.bits(), stream };
        buffer.holes.strand(lpn, unit, part_bytes);
        if let Some(pool) = &mut buffer.pool {
            pool.forget(lpn, 1);
        }
    }

    /// Programs stranded units (invariant 3).
    pub(crate) fn settle_stranded(&mut self, times: Times) -> Result<Nanos, SsdError> {
        let Some(buffer) = &self.buffer else { return Ok(times.ready) };
        let units: Vec<Lpn> = buffer.holes.stranded.keys().copied().collect();
        let mut all = Ok(times.ready);
        for lpn in units {
            let settled = self.settle_unit(times, lpn);
            if settled.as_ref().is_err_and(is_power_lost) {
                return settled;
            }
            all = all.and_then(|all| Ok(all.max(settled?)));
        }
        all
    }

    fn settle_unit(&mut self, times: Times, lpn: Lpn) -> Result<Nanos, SsdError> {
        let mut unit = vec![0; self.scratch.len()];
        let all = PartMask::new(below(narrow(self.unit) / self.part_bytes()));
        let read = self.read_unit(times, (lpn, all), Cause::Padding, &mut unit).1?;
        let ready = read.map_or(times.ready, |grant| grant.done);
        let Some(buffer) = &mut self.buffer else { return Ok(ready) };
        let Some(Stranded { stream, dirty, .. }) = buffer.holes.stranded.get(&lpn) else {
            return Ok(ready);
        };
        let pages = buffer.pages(PartMask::new(*dirty));
        let (stream, data) = (*stream, &unit[..]);
        let unit = Unit { lpn, pages, stream, data, content: UNKNOWN };
        let at = Times { ready, ..times }.host();
        let grant = store(&mut self.ftl, self.dedup.as_mut(), self.config.unmap_zeroes, at, unit)?;
        buffer.holes.land(lpn);
        Ok(grant.done)
    }

    /// Whether a write may come (invariant 3).
    pub(crate) fn check_stranded(&mut self, times: Times) -> Result<(), SsdError> {
        let full = |buffer: &Buffered| buffer.holes.stranded.len() >= STRANDED_MAX;
        if !self.buffer.as_ref().is_some_and(full) {
            return Ok(());
        }
        let settled = self.settle_stranded(times).map(drop);
        if self.buffer.as_ref().is_some_and(full) { settled } else { Ok(()) }
    }
}
