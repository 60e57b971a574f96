//! Commands through the DRAM buffer: what the policy is asked. `actions` executes its answers.

#[cfg(test)]
mod tests;

use onefold_buffer::{Actions, FtlView, Policy, Programmed, Req, Slot, Stats};
use onefold_ftl::Ftl;
use onefold_nand::{Grant, Media};
use onefold_units::convert::{index, low8, narrow, u32_from};
use onefold_units::{Lpn, Nanos, Op};

use crate::actions::{Job, is_power_lost};
use crate::holes::Holes;
use crate::span::{Part, Span};
use crate::submit::Times;
use crate::unit_set::UnitSet;
use crate::write_back::Pool;
use crate::{Command, Payload, Ssd, SsdConfig, SsdError, Writeback};

/// A policy and the bytes of its slots.
pub(crate) struct Buffered {
    pub(crate) policy: Box<dyn Policy + Send>,
    pub(crate) actions: Actions,
    /// All slots, one after the other; empty where no bytes are stored.
    bytes: Vec<u8>,
    unit: usize,
    /// Dirty units, which the FTL may not know yet. Empty where nobody asks for them.
    pub(crate) dirty: UnitSet,
    /// Victims on their way to flash; `None` if admission waits for them.
    pub(crate) pool: Option<Pool>,
    /// What could not be loaded or programmed.
    pub(crate) holes: Holes,
    /// Reads served by the pool, by tenant.
    served: Vec<Served>,
}

/// Reads of one tenant that the pool served. The policy counted them as misses.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    /// Pages.
    pages: u64,
    /// Bytes in them.
    bytes: u64,
    /// Requests that became full hits by it.
    requests: u64,
}

impl Buffered {
    /// The buffer in front of a device of `units` units.
    pub(crate) fn new<M: Media>(
        policy: Box<dyn Policy + Send>,
        config: &SsdConfig,
        units: u32,
    ) -> Self {
        let unit = index(config.geometry.unit_bytes());
        let stored = if M::STORES { unit } else { 0 };
        // Extents of a stored device and policies that ask the FTL need to know dirty units.
        let tracks = M::STORES || config.buffer.policy.asks_ftl();
        let pool = match config.writeback {
            Writeback::Sync => None,
            Writeback::Async { slots } => Some(Pool::new(slots, stored)),
        };
        Self {
            actions: Actions::new(),
            bytes: vec![0; index(policy.slots()) * stored],
            unit,
            dirty: UnitSet::new(if tracks { units } else { 0 }),
            pool,
            holes: Holes::default(),
            served: Vec::new(),
            policy,
        }
    }

    pub(crate) fn slot(&self, slot: Slot) -> &[u8] {
        let start = slot.index() * self.unit;
        self.bytes.get(start..start + self.unit).unwrap_or_default()
    }

    pub(crate) fn slot_mut(&mut self, slot: Slot) -> &mut [u8] {
        let start = slot.index() * self.unit;
        self.bytes.get_mut(start..start + self.unit).unwrap_or_default()
    }

    /// When a victim can move out of its slot, at `ready` or later.
    pub(crate) fn wait_for_pool(&mut self, ready: Nanos) -> Nanos {
        self.pool.as_mut().map_or(ready, |pool| pool.wait(ready))
    }

    /// Moves a victim whose program ends at `end` to the pool. `false` if there is none, or if the
    /// request awaits the program: then it hides an older victim of the unit, as any newer one does.
    pub(crate) fn takes_victim(&mut self, entry: Programmed, end: Nanos, awaited: bool) -> bool {
        let Some(pool) = &mut self.pool else { return false };
        if awaited {
            pool.forget(entry.lpn, 1);
            return false;
        }
        let start = entry.slot.index() * self.unit;
        let data = self.bytes.get(start..start + self.unit).unwrap_or_default();
        pool.take(entry.lpn, end, data);
        true
    }

    /// Counts a read request of which the pool served `parts`, and flash the rest if not `all`.
    pub(crate) fn count_served(&mut self, tenant: u8, parts: &[Part], all: bool) {
        let at = usize::from(tenant);
        if self.served.len() <= at {
            self.served.resize(at + 1, Served::default());
        }
        let served = &mut self.served[at];
        served.pages += u64::from(u32_from(parts.len()));
        served.bytes += parts.iter().map(|part| u64::from(part.sectors()) * 512).sum::<u64>();
        served.requests += u64::from(all);
    }

    /// What the policy counted, with the reads that the pool served as hits.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = self.policy.stats().clone();
        for (tenant, served) in (0..=u8::MAX).zip(&self.served) {
            let counted = stats.tenant_mut(tenant);
            counted.wb_hits = served.pages;
            counted.flash_reads -= served.pages;
            counted.reads.hits += served.pages;
            counted.reads.bytes_hit += served.bytes;
            counted.reads.full_hits += served.requests;
        }
        stats
    }
}

impl<M: Media> Ssd<M> {
    pub(crate) fn read_buffered(
        &mut self,
        times: Times,
        span: Span,
        command: &Command,
        mut payload: Payload<'_>,
    ) -> Result<Grant, SsdError> {
        self.execute(times, span, command, Op::Read, &mut payload)
    }

    pub(crate) fn write_buffered(
        &mut self,
        times: Times,
        span: Span,
        command: &Command,
        payload: &Payload<'_>,
    ) -> Result<Grant, SsdError> {
        self.check_stranded(times)?;
        if !span.has_whole_sectors() {
            return self.write_in_sectors(times, span, command, payload);
        }
        let mut payload = match payload {
            Payload::Write(bytes) => Payload::Write(bytes),
            Payload::Zeroes => Payload::Zeroes,
            Payload::None | Payload::Read(_) | Payload::Contents(_) => Payload::None,
        };
        self.execute(times, span, command, Op::Write, &mut payload)
    }

    /// Executes a read, or a write of whole sectors.
    pub(crate) fn execute(
        &mut self,
        times: Times,
        span: Span,
        command: &Command,
        op: Op,
        payload: &mut Payload<'_>,
    ) -> Result<Grant, SsdError> {
        let (first, n) = span.units();
        // A sector that a read touches in part is read as a whole.
        let head = (span.offset - (first << span.shift)) / 512;
        let tail = (((first + n) << span.shift) - (span.offset + span.len)) / 512;
        let req = Req {
            op,
            fua: command.fua,
            tenant: command.tenant,
            lpn: Lpn::new(narrow(first)),
            n: narrow(n),
            head: low8(head),
            tail: low8(tail),
            t: times.now,
        };
        self.decide(&req);
        self.run_actions(Job::new(times, req, span, u32::from(command.stream), payload))
    }

    fn decide(&mut self, req: &Req) {
        if let Some(buffer) = &mut self.buffer {
            let view = View { ftl: &self.ftl, dirty: &buffer.dirty, holes: &buffer.holes };
            buffer.policy.request(req, &view, &mut buffer.actions);
        }
    }

    /// Drops buffered pages of a trimmed range, unwritten; returns when the policy has done so.
    pub(crate) fn trim_buffered(
        &mut self,
        times: Times,
        first: Lpn,
        count: u32,
        command: &Command,
    ) -> Result<Nanos, SsdError> {
        let Some(buffer) = &mut self.buffer else { return Ok(times.ready) };
        if let Some(pool) = &mut buffer.pool {
            pool.forget(first, count);
        }
        buffer.holes.forget(first, count);
        self.decide_alone(times, Req { tenant: command.tenant, ..Req::new(Op::Trim, first, count) })
    }

    pub(crate) fn flush_buffer(&mut self, times: Times) -> Result<Nanos, SsdError> {
        let ready = self.decide_alone(times, Req::new(Op::Flush, Lpn::new(0), 0))?;
        Ok(ready.max(self.settle_stranded(times)?))
    }

    pub(crate) fn drain_buffer(&mut self, times: Times) -> Result<(), SsdError> {
        if let Some(buffer) = &mut self.buffer {
            buffer.policy.drain(&mut buffer.actions);
            let drained = self.run_alone(times, Req::new(Op::Flush, Lpn::new(0), 0));
            if !drained.as_ref().is_err_and(is_power_lost) {
                // What can be saved is, whatever failed before.
                self.settle_stranded(times)?;
            }
            drained?;
        }
        Ok(())
    }

    fn decide_alone(&mut self, times: Times, req: Req) -> Result<Nanos, SsdError> {
        self.decide(&req);
        self.run_alone(times, req)
    }

    /// Executes what the policy decided for a request without bytes of the host.
    fn run_alone(&mut self, times: Times, req: Req) -> Result<Nanos, SsdError> {
        let span = Span { offset: 0, len: 0, shift: self.unit_shift };
        Ok(self.run_actions(Job::new(times, req, span, 0, &mut Payload::None))?.done)
    }
}

/// What policies may ask: a unit holds data if it is dirty in the buffer or stored in flash. A trim
/// makes it neither.
struct View<'a, M> {
    ftl: &'a Ftl<M>,
    dirty: &'a UnitSet,
    holes: &'a Holes,
}

impl<M: Media> FtlView for View<'_, M> {
    fn mapped(&self, lpn: Lpn) -> bool {
        self.dirty.contains(lpn) || self.ftl.stored_count(lpn, 1) == 1 || self.holes.has(lpn)
    }

    fn mapped_count(&self, first: Lpn, n: u32) -> u32 {
        let only_here = self.dirty.within(first, n).filter(|lpn| !self.ftl.is_stored(*lpn));
        let stranded = self.holes.stranded_in(first, n);
        let only_kept =
            stranded.filter(|lpn| !self.dirty.contains(*lpn) && !self.ftl.is_stored(*lpn));
        self.ftl.stored_count(first, n) + u32_from(only_here.count() + only_kept.count())
    }
}
