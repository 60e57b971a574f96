//! Requests of the host, from their submission to their end ([`crate::queues`] has the order of their parts).

use onefold_units::Nanos;
use onefold_units::convert::u64_from;

use crate::io::{Failure, IoFailed, Refusal, Request, blocks_of, bytes_of};
use crate::queues::{Begun, HostRequest, Kind, Part};
use crate::stats::WaitReason;
use crate::volume::Volume;

impl Volume {
    /// Takes a request of the host. It ends with [`Self::poll_done`], which names it by its tag.
    ///
    /// # Errors
    /// [`Refusal`]; nothing was done then.
    pub fn submit(&mut self, now: Nanos, tag: u64, request: Request) -> Result<(), Refusal> {
        self.now = self.now.max(now);
        if self.queues.is_full() {
            return Err(Refusal::Busy);
        }
        let (kind, lba, blocks, fua, data) = match request {
            Request::Flush => {
                self.stats.flushes += 1;
                self.flush_for_host(tag);
                self.pump();
                return Ok(());
            }
            Request::Read { lba, blocks } => (Kind::Read, lba, blocks, false, Vec::new()),
            Request::Write { lba, blocks, fua, data } => (Kind::Write, lba, blocks, fua, data),
            Request::Discard { lba, blocks } => (Kind::Discard, lba, blocks, false, Vec::new()),
        };
        let inside = lba.checked_add(blocks.into()).is_some_and(|end| end <= self.blocks());
        let expected = if self.options.bytes { u64::from(blocks) } else { 0 };
        let whole = kind != Kind::Write || blocks_of(data.len()) == Some(expected);
        if blocks == 0 || !inside || !whole {
            return Err(Refusal::InvalidField);
        }
        self.count_request(kind, blocks, fua);
        let data =
            if kind == Kind::Read && self.options.bytes { vec![0; bytes_of(blocks)] } else { data };
        let is_read = kind == Kind::Read;
        let mut request = HostRequest::new(tag, data);
        (request.fua, request.is_read) = (fua, is_read);
        let number = self.queues.add(request);
        self.queues.cut(number, kind, lba, blocks);
        self.pump();
        Ok(())
    }

    fn count_request(&mut self, kind: Kind, blocks: u32, fua: bool) {
        let counter = match kind {
            Kind::Read => &mut self.stats.read,
            Kind::Write => &mut self.stats.written,
            Kind::Discard => &mut self.stats.discarded,
            Kind::Rewrite => return,
        };
        *counter += u64::from(blocks);
        self.stats.fua_writes += u64::from(fua);
    }

    /// Begins the parts of a chunk that can begin (invariant 1).
    pub(crate) fn step_chunk(&mut self, chunk: u32) {
        while let Some(part) = self.queues.take_first(chunk, self.barrier()) {
            self.begin_first(part);
        }
    }

    fn begin_first(&mut self, mut part: Part) {
        self.cut(&mut part);
        let number = self.queues.number();
        let begun = if self.frozen && part.kind != Kind::Read {
            Begun::Failed(Failure::ReadOnly)
        } else {
            self.begin(number, &mut part)
        };
        match begun {
            // Nobody waits for it.
            Begun::Sleep(_) if self.closing && self.is_rewritten(&part) => {
                self.part_over(part, Err(Failure::NoSpace));
            }
            Begun::Sleep(reason) => {
                self.queues.sleep(part, reason, self.now);
                if reason == WaitReason::FreeZone {
                    self.flush.want(!self.held.is_empty());
                }
            }
            Begun::Yes if part.ios > 0 => self.queues.run(number, part),
            Begun::Yes => self.part_over(part, Ok(())),
            Begun::Failed(failure) => self.part_over(part, Err(failure)),
        }
    }

    pub(crate) fn part_read(
        &mut self,
        number: u64,
        at: u32,
        bytes: &[u8],
        result: Result<(), IoFailed>,
    ) {
        if result.is_ok() {
            self.queues.fill(number, at, bytes);
        }
        self.part_io_over(number, result);
    }

    pub(crate) fn part_io_over(&mut self, number: u64, result: Result<(), IoFailed>) {
        let Some(part) = self.queues.io_over(number, result.map_err(Failure::Device)) else {
            return;
        };
        if part.kind == Kind::Rewrite && result.is_ok() {
            self.write_anew(part);
        } else {
            self.part_over(part, Ok(()));
        }
    }

    fn part_over(&mut self, part: Part, result: Result<(), Failure>) {
        if let Some(zone) = part.zone {
            self.leave(zone);
        }
        let Some(request) = self.queues.part_over(&part, result) else { return };
        // The kernel target passes FUA on to the device, and does no more.
        if request.fua && request.result.is_ok() && !self.options.kernel_flush {
            self.flush_for_write(part.request);
        } else {
            self.request_over(part.request, Ok(()));
        }
    }

    pub(crate) fn request_over(&mut self, number: u64, result: Result<(), Failure>) {
        if let Some(request) = self.queues.remove(number) {
            let result = request.result.and(result);
            if self.rewritten(number, result.is_ok()) {
                return;
            }
            let data = if result.is_ok() && request.is_read { request.data } else { Vec::new() };
            self.report(request.tag, result, data);
        }
    }

    /// A FLUSH of the host becomes a request without parts.
    fn flush_for_host(&mut self, tag: u64) {
        let mut request = HostRequest::new(tag, Vec::new());
        request.fua = true;
        let number = self.queues.add(request);
        self.flush_for_write(number);
    }

    /// Ends the sleep of a chunk. Gives why it slept, if it did.
    pub(crate) fn wake(&mut self, chunk: u32) -> Option<WaitReason> {
        let (reason, since) = self.queues.wake(chunk)?;
        self.stats.waited(reason, self.now.saturating_sub(since).get());
        Some(reason)
    }

    /// Ends the sleeps that lasted their time.
    pub(crate) fn wake_sleepers(&mut self) {
        for chunk in self.queues.overslept(self.now) {
            self.queues.needs_no_zone(chunk);
            match self.wake(chunk) {
                Some(WaitReason::FreeZone) => {
                    if let Some(failure) = self.no_zone() {
                        self.fail_first(chunk, failure);
                    }
                }
                Some(WaitReason::Reclaim) => self.unterminate(chunk),
                None => {}
            }
        }
    }

    /// The first part of a chunk waits in vain.
    pub(crate) fn fail_first(&mut self, chunk: u32, failure: Failure) {
        if let Some(part) = self.queues.take_waiting(chunk) {
            self.part_over(part, Err(failure));
        }
    }

    fn unterminate(&mut self, chunk: u32) {
        if let Some(zone) = self.meta.entry(chunk).data {
            self.zones.get_mut(zone).terminate = false;
        }
    }

    /// Requests of the host that are not over.
    #[must_use]
    pub fn requests_under_way(&self) -> u64 {
        u64_from(self.queues.requests())
    }
}
