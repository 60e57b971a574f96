//! The controller: command to buffer to FTL to flash.
//!
//! A command is done when [`Ssd::submit`] returns: data moved, map changed. The completion carries
//! the modelled time. Submission times never decrease.

use onefold_ftl::FtlError;
use onefold_nand::{Delay, Grant, Media, MediaError, zero};
use onefold_units::convert::{index, narrow};
use onefold_units::{Cause, Lpn, Nanos, Op};

use crate::dedup::{UNKNOWN, Unit, content_of_unit, store};
use crate::span::{Part, Span};
use crate::times::{Times, join};
use crate::{Command, Completion, Payload, Ssd, SsdError};

impl<M: Media> Ssd<M> {
    /// Executes a command submitted at `now`.
    ///
    /// # Errors
    /// A range outside the device changes nothing, and so does a drive with a failed die ([`SsdError::is_read_only`]). After an error of the FTL a write may have been
    /// done in part.
    #[inline]
    pub fn submit(
        &mut self,
        now: Nanos,
        command: &Command,
        payload: Payload<'_>,
    ) -> Result<Completion, SsdError> {
        if let Some(lpn) = self.plain_unit(command, &payload) {
            return self.submit_unit(now, command, lpn);
        }
        self.submit_any(now, command, payload)
    }

    #[inline(never)]
    fn submit_any(
        &mut self,
        now: Nanos,
        command: &Command,
        payload: Payload<'_>,
    ) -> Result<Completion, SsdError> {
        self.check_range(command)?;
        let is_whole = self.ftl.nand().failed_die().is_none();
        if self.collects_when_idle
            && is_whole
            && self.ftl.is_collecting()
            && now > self.ftl.programmed_at()
        {
            self.ftl.collect_while_idle(now)?;
        }
        let span = Span { offset: command.offset, len: command.len, shift: self.unit_shift };
        let pages = span.pages();
        self.host.count(command.op, pages);
        if !is_whole && !matches!(command.op, Op::Read | Op::Flush) {
            self.expect_all_dies()?;
        }
        let ready = self.ftl.nand_mut().timelines_mut().command(now, pages);
        let times = Times { now, ready };
        if self.classified.is_some() && !matches!(command.op, Op::Read | Op::Flush) {
            self.show_classifier(times, span, command);
        }
        match command.op {
            Op::Read => self.read(times, span, command, payload),
            Op::Write => self.write(times, span, command, &payload),
            Op::Flush => self.flush(times),
            Op::Trim | Op::WriteZeroes => self.trim(times, span, command),
        }
    }

    /// A drive with a failed die takes no changes, not even into its buffer.
    #[cold]
    pub(crate) fn expect_all_dies(&self) -> Result<(), SsdError> {
        match self.ftl.nand().failed_die() {
            None => Ok(()),
            Some(die) => Err(FtlError::Media(MediaError::DieFailed { die }).into()),
        }
    }

    #[inline]
    fn check_range(&self, command: &Command) -> Result<(), SsdError> {
        let (offset, len, capacity) = (command.offset, command.len, self.capacity);
        let inside = offset <= capacity && len <= capacity - offset;
        if inside && (len > 0 || command.op == Op::Flush) {
            Ok(())
        } else {
            Err(SsdError::OutOfRange { offset, len, capacity })
        }
    }

    #[inline]
    fn read(
        &mut self,
        times: Times,
        span: Span,
        command: &Command,
        payload: Payload<'_>,
    ) -> Result<Completion, SsdError> {
        let firmware = self.config.timing.firmware_read;
        self.note_asked(span.units());
        let grant = if self.buffer.is_some() {
            self.read_buffered(times, span, command, payload)?
        } else {
            self.read_through(times, span, payload)?
        };
        let links = self.ftl.nand_mut().timelines_mut();
        let at = links.link_out(times.now, grant.done, span.len) + firmware;
        Ok(Completion { at, delay: grant.delay })
    }

    #[inline]
    fn read_through(
        &mut self,
        times: Times,
        span: Span,
        payload: Payload<'_>,
    ) -> Result<Grant, SsdError> {
        let (first, count) = span.units();
        match payload {
            Payload::Read(buf) => {
                let mut all = Grant { done: times.ready, delay: Delay::None };
                for part in span.parts() {
                    all = join(all, self.read_part(times, part, buf)?);
                }
                Ok(all)
            }
            _ if count == 1 => self.time_read(times, span.part(first)),
            _ => {
                let mut all = Grant { done: times.ready, delay: Delay::None };
                for part in span.parts() {
                    all = join(all, self.time_read(times, part)?);
                }
                Ok(all)
            }
        }
    }

    /// Reads one part without taking its bytes.
    #[inline]
    fn time_read(&mut self, times: Times, part: Part) -> Result<Grant, SsdError> {
        let read = self.ftl.read(times.host(), part.lpn, part.end, Cause::User, &mut [])?;
        Ok(self.note_read(part.lpn, read, &[]))
    }

    /// Reads one part into its place of `buf`, by way of the scratch unit if it is not a whole one.
    fn read_part(&mut self, times: Times, part: Part, buf: &mut [u8]) -> Result<Grant, SsdError> {
        let target = &mut buf[part.at..part.at + index(part.len())];
        if u64::from(part.len()) == self.unit {
            let read = self.ftl.read(times.host(), part.lpn, part.end, Cause::User, target)?;
            return Ok(self.note_read(part.lpn, read, target));
        }
        let mut unit = std::mem::take(&mut self.scratch);
        let result = self.ftl.read(times.host(), part.lpn, part.end, Cause::User, &mut unit);
        if let Some(bytes) = unit.get(index(part.begin)..index(part.end)) {
            target.copy_from_slice(bytes);
        }
        let result = result.map(|read| self.note_read(part.lpn, read, &unit));
        self.scratch = unit;
        Ok(result?)
    }

    #[inline]
    fn write(
        &mut self,
        times: Times,
        span: Span,
        command: &Command,
        payload: &Payload<'_>,
    ) -> Result<Completion, SsdError> {
        let arrived = self.ftl.nand_mut().timelines_mut().link_in(times.ready, span.len);
        let times = Times { ready: arrived, ..times };
        let mut grant = if self.buffer.is_some() {
            self.write_buffered(times, span, command, payload)?
        } else {
            self.write_through(times, span, command, payload)?
        };
        if command.fua {
            // A protected buffer holds the data already; the medium still has to be told.
            let durable = self.ftl.settle(Times { ready: grant.done, ..times }.host())?;
            if self.buffer.is_none() {
                grant.done = grant.done.max(durable);
            }
        }
        Ok(Completion { at: grant.done + self.config.timing.firmware_write, delay: grant.delay })
    }

    fn write_through(
        &mut self,
        times: Times,
        span: Span,
        command: &Command,
        payload: &Payload<'_>,
    ) -> Result<Grant, SsdError> {
        let mut all = Grant { done: times.ready, delay: Delay::None };
        for part in span.parts() {
            let whole = u64::from(part.len()) == self.unit;
            let grant = match payload {
                Payload::Write(bytes) if whole => {
                    let data = &bytes[part.at..part.at + index(part.len())];
                    self.write_unit(times, part, command, data, UNKNOWN)?
                }
                Payload::Write(bytes) => {
                    let data = &bytes[part.at..part.at + index(part.len())];
                    self.merge(times, part, command, Some(data))?
                }
                Payload::Contents(contents) if whole && !M::STORES => {
                    let content = content_of_unit(span.pages_of(part, contents));
                    self.write_unit(times, part, command, &[], content)?
                }
                _ if whole && !M::STORES => self.write_unit(times, part, command, &[], UNKNOWN)?,
                _ => self.merge(times, part, command, None)?,
            };
            all = join(all, grant);
        }
        Ok(all)
    }

    #[inline]
    fn write_unit(
        &mut self,
        times: Times,
        part: Part,
        command: &Command,
        data: &[u8],
        content: u128,
    ) -> Result<Grant, SsdError> {
        let stream = match self.classified {
            None => u32::from(command.stream),
            Some(_) => self.stream_of(part.lpn, command),
        };
        // Zeroing the edge of a trim rewrites the unit, but the host wrote none of it.
        let pages = if command.op == Op::Write { part.pages() } else { 0 };
        let unit = Unit { lpn: part.lpn, pages, stream, data, content };
        let zeroes = self.config.unmap_zeroes;
        Ok(store(&mut self.ftl, self.dedup.as_mut(), zeroes, times.host(), unit)?)
    }

    /// The stream that the classifier chooses for a unit of a command.
    #[cold]
    fn stream_of(&mut self, lpn: Lpn, command: &Command) -> u32 {
        let span = Span { offset: command.offset, len: command.len, shift: self.unit_shift };
        self.stream(lpn, span.units().1, command.stream.into())
    }

    /// Read-modify-write: puts `data` (zeroes if `None`) into a unit that is covered in part.
    fn merge(
        &mut self,
        times: Times,
        part: Part,
        command: &Command,
        data: Option<&[u8]>,
    ) -> Result<Grant, SsdError> {
        let mut unit = std::mem::take(&mut self.scratch);
        let result = self.merge_into(&mut unit, times, part, command, data);
        self.scratch = unit;
        result
    }

    fn merge_into(
        &mut self,
        unit: &mut [u8],
        times: Times,
        part: Part,
        command: &Command,
        data: Option<&[u8]>,
    ) -> Result<Grant, SsdError> {
        let mut ready = times.ready;
        if u64::from(part.len()) < self.unit && self.ftl.is_mapped(part.lpn) {
            let bytes = narrow(self.unit);
            ready = self.ftl.read(times.host(), part.lpn, bytes, Cause::Padding, unit)?.done;
        } else {
            zero(unit);
        }
        if let Some(target) = unit.get_mut(index(part.begin)..index(part.end)) {
            match data {
                Some(data) => target.copy_from_slice(data),
                None => target.fill(0),
            }
        }
        self.write_unit(Times { ready, ..times }, part, command, unit, UNKNOWN)
    }

    /// Makes everything acknowledged durable.
    fn flush(&mut self, times: Times) -> Result<Completion, SsdError> {
        let mut ready = times.ready;
        if self.buffer.is_some() {
            ready = self.flush_buffer(times)?;
        }
        let at = self.ftl.flush(Times { ready, ..times }.host())?;
        // A protected buffer answers at once; the flash work goes on behind it.
        let at = if self.buffer_is_protected() { times.ready } else { at };
        Ok(Completion { at, delay: Delay::None })
    }

    pub(crate) fn buffer_is_protected(&self) -> bool {
        self.buffer.is_some() && !self.config.buffer.volatile
    }

    /// Unmaps the units that a range covers, and writes zeroes to the parts of units at its ends, so
    /// that all of it reads as zeroes afterwards (frontends.md, E3).
    fn trim(
        &mut self,
        times: Times,
        span: Span,
        command: &Command,
    ) -> Result<Completion, SsdError> {
        let mut all = Grant { done: times.ready, delay: Delay::None };
        for (offset, len) in span.edges().into_iter().flatten() {
            let edge = Span { offset, len, shift: self.unit_shift };
            all = join(all, self.zero_edge(times, edge, command)?);
        }
        let (first, count) = span.whole_units();
        if count > 0 {
            let (first, count) = (Lpn::new(narrow(first)), narrow(count));
            let ready = self.trim_buffered(times, first, count, command)?;
            let done = self.ftl.trim(Times { ready, ..times }.host(), first, count)?;
            all = join(all, Grant { done, delay: Delay::None });
        }
        Ok(Completion { at: all.done, delay: all.delay })
    }

    fn zero_edge(
        &mut self,
        times: Times,
        span: Span,
        command: &Command,
    ) -> Result<Grant, SsdError> {
        if self.buffer.is_some() {
            return self.write_buffered(times, span, command, &Payload::Zeroes);
        }
        let mut all = Grant { done: times.ready, delay: Delay::None };
        for part in span.parts().filter(|part| part.len() > 0) {
            if self.ftl.is_mapped(part.lpn) {
                all = join(all, self.merge(times, part, command, None)?);
            }
        }
        Ok(all)
    }
}
