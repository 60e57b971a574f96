//! The controller: command to buffer to FTL to flash.
//!
//! A command is done when [`Ssd::submit`] returns: data moved, map changed. The completion carries
//! the modelled time. Submission times never decrease.

use onefold_buffer::{BufferConfig, FtlView, Policy, new_policy};
use onefold_ftl::{Ftl, RecoveryReport};
use onefold_nand::{At, Delay, Grant, Media, Nand, Work, zero};
use onefold_units::convert::{index, narrow};
use onefold_units::{Cause, Lpn, Nanos, Op};

use crate::buffered::Buffered;
use crate::span::{Part, Span};
use crate::{BuildError, Command, Completion, HostStats, Payload, SsdConfig, SsdError};

/// One modelled SSD with a block namespace.
pub struct Ssd<M> {
    pub(crate) config: SsdConfig,
    pub(crate) ftl: Ftl<M>,
    pub(crate) buffer: Option<Buffered>,
    pub(crate) host: HostStats,
    pub(crate) capacity: u64,
    pub(crate) unit: u64,
    /// log2 of `unit`.
    pub(crate) unit_shift: u32,
    /// One unit; empty where no bytes are stored.
    pub(crate) scratch: Vec<u8>,
}

/// A command on its way: when it was submitted, and when its work may begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) now: Nanos,
    pub(crate) ready: Nanos,
}

impl Times {
    #[inline]
    pub(crate) const fn host(self) -> At {
        At { now: self.now, ready: self.ready, work: Work::Host }
    }
}

impl<M: Media> Ssd<M> {
    /// A fresh device over an erased medium.
    ///
    /// # Errors
    /// The parts of the configuration do not fit together.
    pub fn new(config: SsdConfig, media: M) -> Result<Self, BuildError> {
        let nand = Nand::new(config.geometry, config.timing, config.faults, media);
        let ftl = Ftl::new(nand, config.ftl, config.faults.bad_superblocks)?;
        Self::assemble(&config, ftl)
    }

    /// A device whose medium was used before, after a power cut or a clean shutdown.
    ///
    /// # Errors
    /// The configuration does not fit the medium, or the medium failed.
    pub fn recover(config: SsdConfig, media: M) -> Result<(Self, RecoveryReport), BuildError> {
        let nand = Nand::new(config.geometry, config.timing, config.faults, media);
        let (mut ftl, report) = Ftl::recover(nand, config.ftl)?;
        ftl.set_timed(true);
        Ok((Self::assemble(&config, ftl)?, report))
    }

    fn assemble(config: &SsdConfig, ftl: Ftl<M>) -> Result<Self, BuildError> {
        let unit = config.geometry.unit_bytes();
        let page = config.geometry.spec().page_bytes.max(unit);
        let buffer = match config.buffer {
            BufferConfig { bytes: 0, .. } => None,
            ref buffer => Some(Buffered::new(new_policy(buffer, unit, page)?, M::STORES, unit)),
        };
        Ok(Self {
            config: *config,
            capacity: u64::from(ftl.host_units()) * u64::from(unit),
            unit: u64::from(unit),
            unit_shift: unit.trailing_zeros(),
            scratch: vec![0; if M::STORES { index(unit) } else { 0 }],
            ftl,
            buffer,
            host: HostStats::default(),
        })
    }

    /// Bytes the host sees.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// What defines the device.
    #[must_use]
    pub const fn config(&self) -> &SsdConfig {
        &self.config
    }

    /// The FTL.
    #[must_use]
    pub const fn ftl(&self) -> &Ftl<M> {
        &self.ftl
    }

    /// The FTL, for preconditioning and checks.
    pub const fn ftl_mut(&mut self) -> &mut Ftl<M> {
        &mut self.ftl
    }

    /// What the host asked for so far.
    #[must_use]
    pub const fn host_stats(&self) -> &HostStats {
        &self.host
    }

    /// The buffer policy, if there is a buffer.
    #[must_use]
    pub fn buffer(&self) -> Option<&(dyn Policy + Send)> {
        self.buffer.as_ref().map(Buffered::policy)
    }

    /// Gives the medium back, as when power is lost: everything volatile is gone.
    #[must_use]
    pub fn into_media(self) -> M {
        self.ftl.into_media()
    }

    /// Executes a command submitted at `now`.
    ///
    /// # Errors
    /// A range outside the device changes nothing. After an error of the FTL a write may have been
    /// done in part.
    #[inline]
    pub fn submit(
        &mut self,
        now: Nanos,
        command: &Command,
        payload: Payload<'_>,
    ) -> Result<Completion, SsdError> {
        self.check_range(command)?;
        if self.ftl.is_collecting() && now > self.ftl.programmed_at() {
            self.ftl.collect_while_idle(now)?;
        }
        let span = Span { offset: command.offset, len: command.len, shift: self.unit_shift };
        let pages = span.pages();
        self.host.count(command.op, pages);
        let ready = self.ftl.nand_mut().timelines_mut().command(now, pages);
        let times = Times { now, ready };
        match command.op {
            Op::Read => self.read(times, span, command, payload),
            Op::Write => self.write(times, span, command, &payload),
            Op::Flush => self.flush(times),
            Op::Trim | Op::WriteZeroes => self.trim(times, span, command),
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
        Ok(self.ftl.read(times.host(), part.lpn, part.end, Cause::User, &mut [])?)
    }

    /// Reads one part into its place of `buf`, by way of the scratch unit if it is not a whole one.
    fn read_part(&mut self, times: Times, part: Part, buf: &mut [u8]) -> Result<Grant, SsdError> {
        let target = &mut buf[part.at..part.at + index(part.len())];
        if u64::from(part.len()) == self.unit {
            return Ok(self.ftl.read(times.host(), part.lpn, part.end, Cause::User, target)?);
        }
        let mut unit = std::mem::take(&mut self.scratch);
        let result = self.ftl.read(times.host(), part.lpn, part.end, Cause::User, &mut unit);
        if let Some(bytes) = unit.get(index(part.begin)..index(part.end)) {
            target.copy_from_slice(bytes);
        }
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
            let durable = self.ftl.flush(Times { ready: grant.done, ..times }.host())?;
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
                    self.write_unit(times, part, command, data)?
                }
                Payload::Write(bytes) => {
                    let data = &bytes[part.at..part.at + index(part.len())];
                    self.merge(times, part, command, Some(data))?
                }
                _ if whole && !M::STORES => self.write_unit(times, part, command, &[])?,
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
    ) -> Result<Grant, SsdError> {
        let stream = u32::from(command.stream);
        // Zeroing the edge of a trim rewrites the unit, but the host wrote none of it.
        let pages = if command.op == Op::Write { part.pages() } else { 0 };
        Ok(self.ftl.write(times.host(), part.lpn, pages, stream, data)?)
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
        self.write_unit(Times { ready, ..times }, part, command, unit)
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
            self.trim_buffered(times, first, count, command)?;
            let done = self.ftl.trim(times.host(), first, count)?;
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

    /// Writes everything volatile to flash and takes a checkpoint: recovery then has nothing to do.
    ///
    /// # Errors
    /// What the FTL reported; the device is as after a power cut then, and loses nothing flushed.
    pub fn shut_down(&mut self, now: Nanos) -> Result<(), SsdError> {
        let times = Times { now, ready: now };
        self.drain_buffer(times)?;
        self.ftl.flush(times.host())?;
        self.ftl.checkpoint_now(now)?;
        self.ftl.flush(times.host())?;
        Ok(())
    }

    /// Whether the byte at `offset` is stored, and for how many bytes on (at most `len`) that stays
    /// the same.
    #[must_use]
    pub fn extent(&self, offset: u64, len: u64) -> (bool, u64) {
        let mapped = |unit: u64| self.is_mapped_anywhere(Lpn::new(narrow(unit)));
        let end = offset.saturating_add(len).min(self.capacity);
        let first = offset / self.unit;
        let state = mapped(first);
        let mut unit = first + 1;
        while unit * self.unit < end && mapped(unit) == state {
            unit += 1;
        }
        (state, (unit * self.unit).min(end) - offset)
    }

    pub(crate) fn is_mapped_anywhere(&self, lpn: Lpn) -> bool {
        let buffered = self.buffer.as_ref().is_some_and(|buffer| buffer.holds_dirty(lpn));
        buffered || self.ftl.is_mapped(lpn)
    }

    /// Loads the map entries that commands known ahead will need. Returns a number that depends on
    /// them, so that the loads happen.
    #[inline]
    pub fn touch(&self, offsets: impl Iterator<Item = u64>) -> u64 {
        let capacity = self.capacity;
        let inside = offsets.filter(|offset| *offset < capacity);
        let loads = inside.map(|offset| Lpn::new(narrow(offset >> self.unit_shift)));
        loads.fold(0, |sum, lpn| sum ^ u64::from(self.ftl.touch(lpn)))
    }
}

/// Two grants that a command waits for.
#[inline]
pub(crate) fn join(a: Grant, b: Grant) -> Grant {
    Grant { done: a.done.max(b.done), delay: a.delay.max(b.delay) }
}

/// What policies may ask the FTL.
pub(crate) struct View<'a, M>(pub(crate) &'a Ftl<M>);

impl<M: Media> FtlView for View<'_, M> {
    fn mapped(&self, lpn: Lpn) -> bool {
        self.0.is_stored(lpn)
    }
}
