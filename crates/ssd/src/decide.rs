//! Commands through the DRAM buffer: what the policy is asked. `actions` executes its answers.

#[cfg(test)]
mod tests;

use onefold_buffer::{FtlView, Req};
use onefold_ftl::Ftl;
use onefold_nand::{Grant, Media};
use onefold_units::convert::{low8, narrow, u32_from};
use onefold_units::{Lpn, Nanos, Op};

use crate::actions::Job;
use crate::command::is_power_lost;
use crate::holes::Holes;
use crate::span::Span;
use crate::times::Times;
use crate::unit_set::UnitSet;
use crate::{Command, Payload, Ssd, SsdError};

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
        let req = request(times, span, command, op);
        self.decide(&req);
        self.run_actions(Job::new(times, req, span, u32::from(command.stream), payload))
    }

    /// Shows a write or a trim to the classifier.
    #[cold]
    pub(crate) fn show_classifier(&mut self, times: Times, span: Span, command: &Command) {
        // A device deallocates what it is to zero.
        let op = if command.op == Op::Write { Op::Write } else { Op::Trim };
        if let Some(classified) = &mut self.classified {
            classified.request(&request(times, span, command, op));
        }
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

/// A command in mapping units.
fn request(times: Times, span: Span, command: &Command, op: Op) -> Req {
    let (first, n) = span.units();
    // A sector that a read touches in part is read as a whole.
    let head = (span.offset - (first << span.shift)) / 512;
    let tail = (((first + n) << span.shift) - (span.offset + span.len)) / 512;
    Req {
        op,
        fua: command.fua,
        tenant: command.tenant,
        lpn: Lpn::new(narrow(first)),
        n: narrow(n),
        head: low8(head),
        tail: low8(tail),
        t: times.now,
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
