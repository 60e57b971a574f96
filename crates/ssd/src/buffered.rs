//! Commands through the DRAM buffer: the policy decides, this executes its actions in order.
//!
//! Admission waits for the victim (`writeback = sync` of buffer.md section 1): a program that frees
//! a slot is done before the slot is used again.

use onefold_buffer::{Action, Actions, PartMask, Policy, Req, Slot, Stream};
use onefold_nand::{Delay, Grant, Media};
use onefold_units::convert::{index, low8, narrow};
use onefold_units::{Cause, Lpn, Nanos, Op};

use crate::span::{Part, Span};
use crate::ssd::View;
use crate::submit::{Times, join};
use crate::{Command, Payload, Ssd, SsdError};

/// A policy and the bytes of its slots.
pub(crate) struct Buffered {
    policy: Box<dyn Policy + Send>,
    actions: Actions,
    /// All slots, one after the other; empty where no bytes are stored.
    bytes: Vec<u8>,
    unit: usize,
    /// Dirty units that the FTL may not know yet.
    dirty: std::collections::BTreeSet<Lpn>,
}

impl Buffered {
    pub(crate) fn new(policy: Box<dyn Policy + Send>, stores: bool, unit: u32) -> Self {
        let slots = if stores { index(policy.slots()) } else { 0 };
        let unit = index(unit);
        Self {
            policy,
            actions: Actions::new(),
            bytes: vec![0; slots * unit],
            unit,
            dirty: std::collections::BTreeSet::new(),
        }
    }

    pub(crate) fn policy(&self) -> &(dyn Policy + Send) {
        self.policy.as_ref()
    }

    /// Whether a unit is dirty here; tracked only where bytes are stored, for extents.
    pub(crate) fn holds_dirty(&self, lpn: Lpn) -> bool {
        self.dirty.contains(&lpn)
    }

    fn slot_mut(&mut self, slot: Slot) -> &mut [u8] {
        let start = slot.index() * self.unit;
        self.bytes.get_mut(start..start + self.unit).unwrap_or_default()
    }
}

/// The host's side of a request while its actions are executed.
struct Request<'a, 'b> {
    span: Span,
    stream: u32,
    payload: &'a mut Payload<'b>,
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
        let mut payload = match payload {
            Payload::Write(bytes) => Payload::Write(bytes),
            Payload::Zeroes => Payload::Zeroes,
            Payload::None | Payload::Read(_) => Payload::None,
        };
        self.execute(times, span, command, Op::Write, &mut payload)
    }

    fn execute(
        &mut self,
        times: Times,
        span: Span,
        command: &Command,
        op: Op,
        payload: &mut Payload<'_>,
    ) -> Result<Grant, SsdError> {
        let (first, n) = span.units();
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
        let mut request = Request { span, stream: u32::from(command.stream), payload };
        self.run_actions(times, &mut request)
    }

    fn decide(&mut self, req: &Req) {
        if let Some(buffer) = &mut self.buffer {
            let mut actions = std::mem::take(&mut buffer.actions);
            buffer.policy.request(req, &View(&self.ftl), &mut actions);
            buffer.actions = actions;
        }
    }

    /// Drops buffered pages of a trimmed range, unwritten.
    pub(crate) fn trim_buffered(
        &mut self,
        times: Times,
        first: Lpn,
        count: u32,
        command: &Command,
    ) -> Result<(), SsdError> {
        if self.buffer.is_none() {
            return Ok(());
        }
        let req = Req { tenant: command.tenant, ..Req::new(Op::Trim, first, count) };
        self.decide(&req);
        self.run_without_payload(times)?;
        Ok(())
    }

    pub(crate) fn flush_buffer(&mut self, times: Times) -> Result<Nanos, SsdError> {
        self.decide(&Req::new(Op::Flush, Lpn::new(0), 0));
        self.run_without_payload(times)
    }

    pub(crate) fn drain_buffer(&mut self, times: Times) -> Result<(), SsdError> {
        if let Some(buffer) = &mut self.buffer {
            let mut actions = std::mem::take(&mut buffer.actions);
            buffer.policy.drain(&mut actions);
            buffer.actions = actions;
            self.run_without_payload(times)?;
        }
        Ok(())
    }

    fn run_without_payload(&mut self, times: Times) -> Result<Nanos, SsdError> {
        let span = Span { offset: 0, len: 0, shift: self.unit_shift };
        let mut request = Request { span, stream: 0, payload: &mut Payload::None };
        Ok(self.run_actions(times, &mut request)?.done)
    }

    fn run_actions(
        &mut self,
        times: Times,
        request: &mut Request<'_, '_>,
    ) -> Result<Grant, SsdError> {
        let Some(buffer) = &mut self.buffer else {
            return Ok(Grant { done: times.ready, delay: Delay::None });
        };
        let actions = std::mem::take(&mut buffer.actions);
        let result = self.run(times, request, &actions);
        if let Some(buffer) = &mut self.buffer {
            buffer.actions = actions;
        }
        result
    }

    fn run(
        &mut self,
        times: Times,
        request: &mut Request<'_, '_>,
        actions: &Actions,
    ) -> Result<Grant, SsdError> {
        let mut all = Grant { done: times.ready, delay: Delay::None };
        // Victims leave before their slots are used again.
        let mut freed = times;
        for action in actions.as_slice() {
            let step = match *action {
                Action::Program { stream, batch } => {
                    let grant =
                        self.program(times, request.stream, stream, actions.batch(batch))?;
                    freed.ready = freed.ready.max(grant.done);
                    grant
                }
                Action::Drop { lpn, .. } => {
                    self.forget_dirty(lpn);
                    continue;
                }
                Action::Hit { lpn, slot } => self.serve(freed, request, lpn, slot),
                Action::Fill { lpn, slot, missing } => {
                    let loaded = self.load(freed, lpn, slot, missing, Cause::User)?;
                    let times = Times { ready: loaded.done, ..times };
                    join(loaded, self.serve(times, request, lpn, slot))
                }
                Action::PadRead { lpn, slot, missing } => {
                    let grant = self.load(freed, lpn, slot, missing, Cause::Padding)?;
                    freed.ready = freed.ready.max(grant.done);
                    grant
                }
                Action::Store { lpn, slot } => self.store(freed, request, lpn, slot),
                Action::Bypass { lpn } => self.bypass(times, request, lpn)?,
            };
            all = join(all, step);
        }
        Ok(all)
    }

    fn part(request: &Request<'_, '_>, lpn: Lpn) -> Option<Part> {
        let (first, count) = request.span.units();
        let unit = u64::from(lpn.raw());
        (first..first + count).contains(&unit).then(|| request.span.part(unit))
    }

    /// DRAM time of one unit's part.
    fn dram(&self, times: Times, pages: u64) -> Grant {
        let work = self.config.timing.dram_page.get() * pages;
        Grant { done: times.ready + Nanos::new(work), delay: Delay::None }
    }

    fn serve(
        &mut self,
        times: Times,
        request: &mut Request<'_, '_>,
        lpn: Lpn,
        slot: Slot,
    ) -> Grant {
        let Some(part) = Self::part(request, lpn) else { return self.dram(times, 0) };
        if let (Payload::Read(buf), Some(buffer)) = (&mut *request.payload, &mut self.buffer)
            && let Some(bytes) = buffer.slot_mut(slot).get(index(part.begin)..index(part.end))
        {
            buf[part.at..part.at + index(part.len())].copy_from_slice(bytes);
        }
        self.dram(times, part.pages())
    }

    fn store(
        &mut self,
        times: Times,
        request: &mut Request<'_, '_>,
        lpn: Lpn,
        slot: Slot,
    ) -> Grant {
        let Some(part) = Self::part(request, lpn) else { return self.dram(times, 0) };
        if let Some(buffer) = &mut self.buffer {
            if M::STORES {
                buffer.dirty.insert(lpn);
            }
            let target = buffer.slot_mut(slot).get_mut(index(part.begin)..index(part.end));
            match (&*request.payload, target) {
                (Payload::Write(bytes), Some(target)) => {
                    target.copy_from_slice(&bytes[part.at..part.at + index(part.len())]);
                }
                (_, Some(target)) => target.fill(0),
                (_, None) => {}
            }
        }
        self.dram(times, part.pages())
    }

    fn forget_dirty(&mut self, lpn: Lpn) {
        if M::STORES
            && let Some(buffer) = &mut self.buffer
        {
            buffer.dirty.remove(&lpn);
        }
    }

    /// Loads the missing parts of a unit from flash into its slot.
    fn load(
        &mut self,
        times: Times,
        lpn: Lpn,
        slot: Slot,
        missing: PartMask,
        cause: Cause,
    ) -> Result<Grant, SsdError> {
        let mut unit = std::mem::take(&mut self.scratch);
        let result = self.ftl.read(times.host(), lpn, narrow(self.unit), cause, &mut unit);
        if M::STORES
            && let (Ok(_), Some(buffer)) = (&result, &mut self.buffer)
        {
            let part_bytes = buffer.policy.part_bytes();
            let target = buffer.slot_mut(slot);
            for range in missing.ranges(part_bytes) {
                if let (Some(to), Some(from)) = (target.get_mut(range.clone()), unit.get(range)) {
                    to.copy_from_slice(from);
                }
            }
        }
        self.scratch = unit;
        Ok(result?)
    }

    fn bypass(
        &mut self,
        times: Times,
        request: &mut Request<'_, '_>,
        lpn: Lpn,
    ) -> Result<Grant, SsdError> {
        let mut unit = std::mem::take(&mut self.scratch);
        let result = self.ftl.read(times.host(), lpn, narrow(self.unit), Cause::User, &mut unit);
        let part = Self::part(request, lpn);
        if let (Payload::Read(buf), Some(part)) = (&mut *request.payload, part)
            && let Some(bytes) = unit.get(index(part.begin)..index(part.end))
        {
            buf[part.at..part.at + index(part.len())].copy_from_slice(bytes);
        }
        self.scratch = unit;
        Ok(result?)
    }

    /// Writes the entries of one program to the FTL.
    fn program(
        &mut self,
        times: Times,
        stream: u32,
        _kind: Stream,
        entries: &[onefold_buffer::Programmed],
    ) -> Result<Grant, SsdError> {
        let mut all = Grant { done: times.ready, delay: Delay::None };
        let pages = self.unit / 4096;
        for entry in entries {
            let Some(buffer) = &mut self.buffer else { continue };
            buffer.dirty.remove(&entry.lpn);
            let start = entry.slot.index() * buffer.unit;
            let data = buffer.bytes.get(start..start + buffer.unit).unwrap_or_default();
            let grant = self.ftl.write(times.host(), entry.lpn, pages, stream, data)?;
            all = join(all, grant);
        }
        Ok(all)
    }
}
