//! Requests of the host, cut at the ends of chunks, and the queue of each chunk.

use std::collections::VecDeque;

use onefold_units::convert::{narrow, u64_from};
use onefold_units::{Nanos, ZoneId};

use crate::config::WAIT;
use crate::io::{Failure, IoFailed, REQUESTS_MAX, Refusal, Request, blocks_of, bytes_of};
use crate::stats::WaitReason;
use crate::volume::Volume;

/// What a part does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Discard,
    /// The volume's own: blocks of the journal zone set are read, and then it is a write.
    Rewrite,
}

/// The piece of a request that lies in one chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) request: u64,
    pub(crate) chunk: u32,
    pub(crate) kind: Kind,
    /// First block, from the start of the chunk.
    pub(crate) offset: u32,
    pub(crate) blocks: u32,
    /// Where its bytes begin in those of the request, in blocks.
    pub(crate) at: u32,
    /// The data zone it is active in.
    pub(crate) zone: Option<ZoneId>,
    /// Block of a zone of the journal zone set from which on it is written.
    pub(crate) appended_at: Option<u32>,
    /// The zone of its chunk that it is written to.
    pub(crate) target: Option<ZoneId>,
    /// Requests to devices under way.
    pub(crate) ios: u32,
}

impl Part {
    fn collides(&self, other: &Self) -> bool {
        (self.kind != Kind::Read || other.kind != Kind::Read)
            && self.offset < other.offset + other.blocks
            && other.offset < self.offset + self.blocks
    }
}

/// A request of the host under way.
#[derive(Debug)]
pub(crate) struct HostRequest {
    tag: u64,
    /// Parts that are not over.
    pub(crate) parts: u32,
    fua: bool,
    is_read: bool,
    result: Result<(), Failure>,
    pub(crate) data: Vec<u8>,
}

/// A request sleeps.
#[derive(Clone, Copy, Debug)]
struct Sleep {
    reason: WaitReason,
    since: Nanos,
}

/// The parts of a chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkQueue {
    pub(crate) waiting: VecDeque<Part>,
    /// Numbers of those under way.
    running: Vec<u64>,
    sleep: Option<Sleep>,
}

impl ChunkQueue {
    /// When its sleep ends.
    pub(crate) fn due(&self) -> Option<Nanos> {
        self.sleep.map(|sleep| sleep.since + WAIT)
    }
}

/// How a part began.
pub(crate) enum Begun {
    /// Its requests to devices are made, if it needs any.
    Yes,
    /// It has to sleep first.
    Sleep(WaitReason),
    /// It cannot be done.
    Failed(Failure),
}

impl Volume {
    /// Takes a request of the host. It ends with [`Self::poll_done`], which names it by its tag.
    ///
    /// # Errors
    /// [`Refusal`]; nothing was done then.
    pub fn submit(&mut self, now: Nanos, tag: u64, request: Request) -> Result<(), Refusal> {
        self.now = self.now.max(now);
        if self.requests.len() >= REQUESTS_MAX {
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
        let number = self.number();
        let parts = self.queue_parts(number, kind, lba, blocks);
        let is_read = kind == Kind::Read;
        let request = HostRequest { tag, parts, fua, is_read, result: Ok(()), data };
        self.requests.insert(number, request);
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

    fn queue_parts(&mut self, request: u64, kind: Kind, lba: u64, blocks: u32) -> u32 {
        let zone_blocks = self.geometry.zone_blocks();
        let (mut at, mut parts) = (0, 0);
        while at < blocks {
            let block = lba + u64::from(at);
            let chunk = narrow(block / u64::from(zone_blocks));
            let offset = narrow(block % u64::from(zone_blocks));
            let part = Part {
                request,
                chunk,
                kind,
                offset,
                blocks: (zone_blocks - offset).min(blocks - at),
                at,
                zone: None,
                appended_at: None,
                target: None,
                ios: 0,
            };
            self.chunks.entry(chunk).or_default().waiting.push_back(part);
            self.ready.push_back(chunk);
            at += part.blocks;
            parts += 1;
        }
        parts
    }

    /// Begins the parts of a chunk that can begin (invariant 1).
    pub(crate) fn step_chunk(&mut self, chunk: u32) {
        while let Some(queue) = self.chunks.get(&chunk) {
            let Some(part) = queue.waiting.front().copied() else {
                if queue.running.is_empty() {
                    self.chunks.remove(&chunk);
                }
                return;
            };
            let collides = |number| self.parts[number].collides(&part);
            let blocked = self.waits_for_flush(&part);
            if queue.sleep.is_some() || blocked || queue.running.iter().any(collides) {
                return;
            }
            self.begin_first(chunk);
        }
    }

    fn begin_first(&mut self, chunk: u32) {
        let Some(mut part) = self.queue_mut(chunk).waiting.pop_front() else { return };
        self.cut(&mut part);
        let number = self.number();
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
                let since = self.now;
                let queue = self.queue_mut(chunk);
                queue.waiting.push_front(part);
                queue.sleep = Some(Sleep { reason, since });
                if reason == WaitReason::FreeZone {
                    self.zone_waiters.push(chunk);
                    self.flush.want(!self.held.is_empty());
                }
            }
            Begun::Yes if part.ios > 0 => {
                self.parts.insert(number, part);
                self.queue_mut(chunk).running.push(number);
            }
            Begun::Yes => self.part_over(part, Ok(())),
            Begun::Failed(failure) => self.part_over(part, Err(failure)),
        }
    }

    pub(crate) fn queue_mut(&mut self, chunk: u32) -> &mut ChunkQueue {
        self.chunks.entry(chunk).or_default()
    }

    pub(crate) fn part_read(
        &mut self,
        number: u64,
        at: u32,
        bytes: &[u8],
        result: Result<(), IoFailed>,
    ) {
        let request = self.parts[&number].request;
        if let Some(request) = self.requests.get_mut(&request).filter(|_| result.is_ok()) {
            let at = bytes_of(at);
            if let Some(room) = request.data.get_mut(at..at + bytes.len()) {
                room.copy_from_slice(bytes);
            }
        }
        self.part_io_over(number, result);
    }

    pub(crate) fn part_io_over(&mut self, number: u64, result: Result<(), IoFailed>) {
        let Some(part) = self.parts.get_mut(&number) else { return };
        part.ios -= 1;
        let part = *part;
        let result = result.map_err(Failure::Device);
        if let Some(request) = self.requests.get_mut(&part.request) {
            request.result = request.result.and(result);
        }
        if part.ios > 0 {
            return;
        }
        self.parts.remove(&number);
        if part.kind == Kind::Rewrite && result.is_ok() {
            self.write_anew(number, part);
            return;
        }
        self.queue_mut(part.chunk).running.retain(|running| *running != number);
        self.part_over(part, Ok(()));
    }

    /// The volume asks itself for something.
    pub(crate) fn ask_self(&mut self, request: u64, kind: Kind, lba: u64, blocks: u32) {
        let parts = self.queue_parts(request, kind, lba, blocks);
        let data = if self.options.bytes { vec![0; bytes_of(blocks)] } else { Vec::new() };
        let (fua, is_read, result) = (false, false, Ok(()));
        let own = HostRequest { tag: 0, parts, fua, is_read, result, data };
        self.requests.insert(request, own);
    }

    /// A part that was under way is the first of its chunk to begin again.
    pub(crate) fn put_back(&mut self, number: u64, part: Part) {
        let queue = self.queue_mut(part.chunk);
        queue.running.retain(|running| *running != number);
        queue.waiting.push_front(part);
        self.ready.push_back(part.chunk);
    }

    fn part_over(&mut self, part: Part, result: Result<(), Failure>) {
        if let Some(zone) = part.zone {
            self.leave(zone);
        }
        self.ready.push_back(part.chunk);
        let Some(request) = self.requests.get_mut(&part.request) else { return };
        request.result = request.result.and(result);
        request.parts -= 1;
        if request.parts > 0 {
            return;
        }
        // The kernel target passes FUA on to the device, and does no more.
        if request.fua && request.result.is_ok() && !self.options.kernel_flush {
            self.flush_for_write(part.request);
        } else {
            self.request_over(part.request, Ok(()));
        }
    }

    pub(crate) fn request_over(&mut self, number: u64, result: Result<(), Failure>) {
        if let Some(request) = self.requests.remove(&number) {
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
        let number = self.number();
        let (result, data) = (Ok(()), Vec::new());
        let request = HostRequest { tag, parts: 0, fua: true, is_read: false, result, data };
        self.requests.insert(number, request);
        self.flush_for_write(number);
    }

    /// Ends the sleep of a chunk, if it sleeps.
    pub(crate) fn wake(&mut self, chunk: u32) {
        let now = self.now;
        let Some(queue) = self.chunks.get_mut(&chunk) else { return };
        if let Some(sleep) = queue.sleep.take() {
            self.stats.waited(sleep.reason, now.saturating_sub(sleep.since).get());
        }
        self.ready.push_back(chunk);
    }

    /// Ends the sleeps that lasted their time.
    pub(crate) fn wake_sleepers(&mut self) {
        let over = |(chunk, queue): (&u32, &ChunkQueue)| {
            queue.due().filter(|due| *due <= self.now).map(|_| *chunk)
        };
        let chunks = self.chunks.iter().filter_map(over).collect();
        for chunk in self.oldest_first(chunks) {
            let reason = self.chunks[&chunk].sleep.map(|sleep| sleep.reason);
            self.zone_waiters.retain(|waiter| *waiter != chunk);
            self.wake(chunk);
            match reason {
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
        if let Some(part) = self.queue_mut(chunk).waiting.pop_front() {
            self.part_over(part, Err(failure));
        }
    }

    fn unterminate(&mut self, chunk: u32) {
        if let Some(zone) = self.meta.entry(chunk).data {
            self.zones.get_mut(zone).terminate = false;
        }
    }

    /// Bytes of a part that is written.
    pub(crate) fn bytes_of_part(&self, part: &Part) -> Vec<u8> {
        let data = self.requests.get(&part.request).map_or(&[][..], |request| &request.data);
        let at = bytes_of(part.at);
        data.get(at..at + bytes_of(part.blocks)).unwrap_or_default().to_vec()
    }

    /// Chunks that a flush kept from going on.
    pub(crate) fn ready_all(&mut self) {
        let waits = |(chunk, queue): (&u32, &ChunkQueue)| {
            (!queue.waiting.is_empty() && queue.sleep.is_none()).then_some(*chunk)
        };
        let chunks = self.chunks.iter().filter_map(waits).collect();
        let chunks = self.oldest_first(chunks);
        self.ready.extend(chunks);
    }

    /// In the order in which their requests came. In the order of chunks the one with the highest number would get no zone as long as others
    /// wait for one.
    fn oldest_first(&self, mut chunks: Vec<u32>) -> Vec<u32> {
        chunks.sort_by_key(|chunk| self.chunks[chunk].waiting.front().map(|part| part.request));
        chunks
    }

    /// Requests of the host that are not over.
    #[must_use]
    pub fn requests_under_way(&self) -> u64 {
        u64_from(self.requests.len())
    }
}
