//! Requests of the host, cut at the ends of chunks, and the queue of each chunk.
//!
//! A part *waits* in the queue of its chunk until it begins; then it *runs* until its requests to devices are over. The first one
//! that waits may *sleep*: until what it waits for is there, but for a second at most.

use std::collections::{BTreeMap, VecDeque};

use onefold_units::convert::narrow;
use onefold_units::{Nanos, ZoneId};

use crate::config::WAIT;
use crate::io::{Failure, REQUESTS_MAX, bytes_of};
use crate::stats::WaitReason;

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

/// A request of the host under way, or one of the volume to itself.
#[derive(Debug)]
pub(crate) struct HostRequest {
    pub(crate) tag: u64,
    /// Parts that are not over.
    parts: u32,
    pub(crate) fua: bool,
    pub(crate) is_read: bool,
    pub(crate) result: Result<(), Failure>,
    pub(crate) data: Vec<u8>,
}

impl HostRequest {
    /// One without parts.
    pub(crate) const fn new(tag: u64, data: Vec<u8>) -> Self {
        Self { tag, parts: 0, fua: false, is_read: false, result: Ok(()), data }
    }
}

/// A request sleeps.
#[derive(Clone, Copy, Debug)]
struct Sleep {
    reason: WaitReason,
    since: Nanos,
}

/// The parts of a chunk.
#[derive(Debug, Default)]
struct ChunkQueue {
    waiting: VecDeque<Part>,
    /// Numbers of those that run.
    running: Vec<u64>,
    sleep: Option<Sleep>,
}

impl ChunkQueue {
    /// When its sleep ends.
    fn due(&self) -> Option<Nanos> {
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

/// Which parts a metadata flush keeps from beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    None,
    /// Those that change something.
    Changes,
    All,
}

/// All requests and their parts.
#[derive(Debug)]
pub(crate) struct Queues {
    zone_blocks: u32,
    requests: BTreeMap<u64, HostRequest>,
    chunks: BTreeMap<u32, ChunkQueue>,
    /// Parts that run.
    running: BTreeMap<u64, Part>,
    /// Numbers of requests and parts given out.
    numbers: u64,
    /// Chunks whose first part may begin.
    ready: VecDeque<u32>,
    /// Chunks that wait for a free zone, oldest first.
    zone_waiters: Vec<u32>,
}

impl Queues {
    /// None, of chunks of so many blocks.
    pub(crate) const fn new(zone_blocks: u32) -> Self {
        Self {
            zone_blocks,
            requests: BTreeMap::new(),
            chunks: BTreeMap::new(),
            running: BTreeMap::new(),
            numbers: 0,
            ready: VecDeque::new(),
            zone_waiters: Vec::new(),
        }
    }

    /// Whether it takes no more requests of the host.
    pub(crate) fn is_full(&self) -> bool {
        self.requests.len() >= REQUESTS_MAX
    }

    /// Requests that are not over.
    pub(crate) fn requests(&self) -> usize {
        self.requests.len()
    }

    /// A number for a part.
    pub(crate) const fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Takes a request without parts. Gives its number.
    pub(crate) fn add(&mut self, request: HostRequest) -> u64 {
        let number = self.number();
        self.requests.insert(number, request);
        number
    }

    /// Cuts what a request does at the ends of chunks. Each part begins when it is the first of its chunk.
    pub(crate) fn cut(&mut self, request: u64, kind: Kind, lba: u64, blocks: u32) {
        let (mut at, mut parts) = (0, 0);
        while at < blocks {
            let block = lba + u64::from(at);
            let chunk = narrow(block / u64::from(self.zone_blocks));
            let offset = narrow(block % u64::from(self.zone_blocks));
            let part = Part {
                request,
                chunk,
                kind,
                offset,
                blocks: (self.zone_blocks - offset).min(blocks - at),
                at,
                zone: None,
                appended_at: None,
                target: None,
                ios: 0,
            };
            self.queue_mut(chunk).waiting.push_back(part);
            self.ready.push_back(chunk);
            at += part.blocks;
            parts += 1;
        }
        if let Some(request) = self.requests.get_mut(&request) {
            request.parts = parts;
        }
    }

    /// Leaves so many blocks of a part that begins; the rest begins after it.
    pub(crate) fn shorten(&mut self, part: &mut Part, blocks: u32) {
        let mut rest = *part;
        rest.offset += blocks;
        rest.at += blocks;
        rest.blocks -= blocks;
        part.blocks = blocks;
        self.queue_mut(part.chunk).waiting.push_front(rest);
        if let Some(request) = self.requests.get_mut(&part.request) {
            request.parts += 1;
        }
    }

    fn queue_mut(&mut self, chunk: u32) -> &mut ChunkQueue {
        self.chunks.entry(chunk).or_default()
    }

    /// Chunks with parts.
    pub(crate) fn chunks(&self) -> Vec<u32> {
        self.chunks.keys().copied().collect()
    }

    /// The next chunk whose first part may begin.
    pub(crate) fn next_ready(&mut self) -> Option<u32> {
        self.ready.pop_front()
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The first part of a chunk, if it may begin (invariant 1 of `crate::volume`).
    pub(crate) fn take_first(&mut self, chunk: u32, barrier: Barrier) -> Option<Part> {
        let queue = self.chunks.get_mut(&chunk)?;
        let Some(part) = queue.waiting.front() else {
            if queue.running.is_empty() {
                self.chunks.remove(&chunk);
            }
            return None;
        };
        let is_held = match barrier {
            Barrier::None => false,
            Barrier::Changes => part.kind != Kind::Read,
            Barrier::All => true,
        };
        let collides = |number| self.running[number].collides(part);
        if queue.sleep.is_some() || is_held || queue.running.iter().any(collides) {
            return None;
        }
        queue.waiting.pop_front()
    }

    /// The part of a chunk that waits first.
    pub(crate) fn first(&self, chunk: u32) -> Option<&Part> {
        self.chunks.get(&chunk)?.waiting.front()
    }

    /// The same, whatever it waits for: it does not any more.
    pub(crate) fn take_waiting(&mut self, chunk: u32) -> Option<Part> {
        self.chunks.get_mut(&chunk)?.waiting.pop_front()
    }

    /// A part that was to begin sleeps.
    pub(crate) fn sleep(&mut self, part: Part, reason: WaitReason, now: Nanos) {
        let queue = self.queue_mut(part.chunk);
        queue.waiting.push_front(part);
        queue.sleep = Some(Sleep { reason, since: now });
        if reason == WaitReason::FreeZone {
            self.zone_waiters.push(part.chunk);
        }
    }

    /// Ends the sleep of a chunk. Gives why it slept and since when, if it did.
    pub(crate) fn wake(&mut self, chunk: u32) -> Option<(WaitReason, Nanos)> {
        let queue = self.chunks.get_mut(&chunk)?;
        let sleep = queue.sleep.take();
        self.ready.push_back(chunk);
        sleep.map(|sleep| (sleep.reason, sleep.since))
    }

    /// When the next sleep ends.
    pub(crate) fn due(&self) -> Option<Nanos> {
        self.chunks.values().filter_map(ChunkQueue::due).min()
    }

    /// Chunks whose sleep lasted its time; they wait for a zone no more.
    pub(crate) fn overslept(&self, now: Nanos) -> Vec<u32> {
        let over = |(chunk, queue): (&u32, &ChunkQueue)| {
            queue.due().filter(|due| *due <= now).map(|_| *chunk)
        };
        let chunks = self.chunks.iter().filter_map(over).collect();
        self.oldest_first(chunks)
    }

    /// A chunk waits for a zone no more.
    pub(crate) fn needs_no_zone(&mut self, chunk: u32) {
        self.zone_waiters.retain(|waiter| *waiter != chunk);
    }

    /// The chunks that wait for a zone, oldest first: they will be woken.
    pub(crate) fn take_zone_waiters(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.zone_waiters)
    }

    /// What a flush kept from going on may go on.
    pub(crate) fn ready_all(&mut self) {
        let waits = |(chunk, queue): (&u32, &ChunkQueue)| {
            (!queue.waiting.is_empty() && queue.sleep.is_none()).then_some(*chunk)
        };
        let chunks = self.chunks.iter().filter_map(waits).collect();
        let chunks = self.oldest_first(chunks);
        self.ready.extend(chunks);
    }

    /// In the order in which their requests came. In the order of chunks the one with the highest number would get no zone as long
    /// as others wait for one.
    fn oldest_first(&self, mut chunks: Vec<u32>) -> Vec<u32> {
        chunks.sort_by_key(|chunk| self.first(*chunk).map(|part| part.request));
        chunks
    }

    /// A part runs: requests to devices were made for it.
    pub(crate) fn run(&mut self, number: u64, part: Part) {
        self.running.insert(number, part);
        self.queue_mut(part.chunk).running.push(number);
    }

    /// Takes down that a part that runs has written to its target. Gives both.
    pub(crate) fn take_target(&mut self, number: u64) -> Option<(Part, Option<ZoneId>)> {
        let part = self.running.get_mut(&number)?;
        let target = part.target.take();
        Some((*part, target))
    }

    /// A request to a device for a part is over. Gives the part if that was the last one: it does not run any more.
    pub(crate) fn io_over(&mut self, number: u64, result: Result<(), Failure>) -> Option<Part> {
        let part = self.running.get_mut(&number)?;
        part.ios -= 1;
        let part = *part;
        if let Some(request) = self.requests.get_mut(&part.request) {
            request.result = request.result.and(result);
        }
        if part.ios > 0 { None } else { self.stop(number) }
    }

    /// A part runs no more.
    pub(crate) fn stop(&mut self, number: u64) -> Option<Part> {
        let part = self.running.remove(&number)?;
        self.queue_mut(part.chunk).running.retain(|running| *running != number);
        Some(part)
    }

    /// A part that ran is the first of its chunk to begin again.
    pub(crate) fn put_back(&mut self, part: Part) {
        self.queue_mut(part.chunk).waiting.push_front(part);
        self.ready.push_back(part.chunk);
    }

    /// A part is over. Gives its request if all of its parts are.
    pub(crate) fn part_over(
        &mut self,
        part: &Part,
        result: Result<(), Failure>,
    ) -> Option<&HostRequest> {
        self.ready.push_back(part.chunk);
        let request = self.requests.get_mut(&part.request)?;
        request.result = request.result.and(result);
        request.parts -= 1;
        (request.parts == 0).then_some(request)
    }

    /// A request is over.
    pub(crate) fn remove(&mut self, request: u64) -> Option<HostRequest> {
        self.requests.remove(&request)
    }

    /// Bytes of a part that is written.
    pub(crate) fn bytes(&self, part: &Part) -> Vec<u8> {
        let data = self.requests.get(&part.request).map_or(&[][..], |request| &request.data);
        let at = bytes_of(part.at);
        data.get(at..at + bytes_of(part.blocks)).unwrap_or_default().to_vec()
    }

    /// What was read for a part, from a block of its request on.
    pub(crate) fn fill(&mut self, number: u64, at: u32, bytes: &[u8]) {
        let request = self.running[&number].request;
        let at = bytes_of(at);
        let data = self.requests.get_mut(&request).map(|request| &mut request.data);
        if let Some(room) = data.and_then(|data| data.get_mut(at..at + bytes.len())) {
            room.copy_from_slice(bytes);
        }
    }
}
