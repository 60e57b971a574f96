//! The log: streams, the batches they fill, and the order of all batches.
//!
//! A *stream* appends batches to a log segment of its own. A *batch* is one header block with the blocks it describes,
//! written at once. Its sequence number is its place in the order of all batches of all streams, taken when it is sent.
//!
//! 1. The place of a block is known when it is put into a batch, so the map points there at once. Until the batch is
//!    complete, its blocks are read from memory, or where the backing remaps them from their sources.
//! 2. A block that the host overwrites while its batch was not sent yet is replaced in place. So of two versions of a
//!    block in different batches of the host, the newer one has the higher sequence number.
//! 3. Within a log segment batches are sent in the order of their places.
//! 4. A batch is complete when all before it in its log segment are: a replay finds it by the chain of their headers. So
//!    what lies behind a batch that failed is still in memory, and goes elsewhere with it.

pub(crate) mod flush;
pub(crate) mod heat;
pub(crate) mod journal;
pub(crate) mod packs;
pub(crate) mod service;
pub(crate) mod stream;

use std::collections::VecDeque;

use onefold_format::volume::{CleanRecord, DataRecord, MetaRecord, TrimRecord};
use onefold_units::convert::u32_from;
use onefold_units::{Lba, Location, LogSegmentId, Nanos};

use crate::config::{Acknowledge, Options};
use crate::io::Buffer;
use crate::layout::Layout;
use crate::limits::{BATCH_MIN, BATCHES_OWN, BLOCK, CLEAN_BATCHES_MAX, META_BATCHES_MAX};
use crate::log::packs::Packed;
use crate::log::service::{Service, UnderWay};
use crate::retries::Failing;

pub(crate) use crate::log::stream::STREAMS;

pub use crate::log::stream::Stream;

/// How long a batch that somebody waits for waits for more.
const WAITED_AGE: Nanos = Nanos::new(1_000_000);

/// Index of a batch in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BatchId(pub(crate) usize);

/// What the blocks of a batch are: the list of its stream, and in a batch of the host `clean` for blocks that fill padding.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) data: Vec<DataRecord>,
    pub(crate) clean: Vec<CleanRecord>,
    pub(crate) meta: Vec<MetaRecord>,
    pub(crate) trims: Vec<TrimRecord>,
}

impl Records {
    pub(crate) fn blocks(&self) -> u32 {
        u32_from(self.data.len() + self.clean.len() + self.meta.len())
    }

    /// The blocks of the logical device, in the order of their places.
    pub(crate) fn lbas(&self) -> impl Iterator<Item = Lba> + '_ {
        let data = self.data.iter().map(|record| record.lba);
        data.chain(self.clean.iter().map(|record| record.lba))
    }

    fn clear(&mut self) {
        self.data.clear();
        self.clean.clear();
        self.meta.clear();
        self.trims.clear();
    }
}

/// How far the backing is with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It was not asked yet.
    Waiting,
    UnderWay,
    /// Whether it wrote it.
    Over(bool),
}

/// A batch in memory.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) stream: Stream,
    pub(crate) segment: LogSegmentId,
    /// Where the header lies.
    pub(crate) start: Location,
    /// Blocks there is room for, the header included.
    pub(crate) capacity: u32,
    /// `None` until it is sent.
    pub(crate) seq: Option<u64>,
    pub(crate) attempt: u16,
    pub(crate) progress: Progress,
    /// How its write fails, if it does.
    pub(crate) failing: Option<Failing>,
    pub(crate) records: Records,
    /// Most records that its header has room for.
    pub(crate) most: u32,
    /// How its blocks lie, if it was packed.
    pub(crate) packed: Option<Packed>,
    /// Its blocks are not in memory: the backing remaps them from their sources (`crate::volume::cleaner::remap`).
    pub(crate) remaps: bool,
    /// Requests that wait for its completion.
    pub(crate) waiters: Vec<u32>,
    /// Header and blocks; the header alone where blocks carry no bytes.
    pub(crate) buffer: Buffer,
    /// When the volume first looked at it: what is written between two looks has the time of the first one.
    pub(crate) opened: Option<Nanos>,
    /// When it got its number.
    pub(crate) sent_at: Nanos,
    /// Its write, while that is under way.
    pub(crate) sent: UnderWay,
}

impl Batch {
    /// Where the next block goes, if there is room.
    pub(crate) fn room(&self) -> u32 {
        (self.capacity - 1).min(self.most) - self.records.blocks()
    }

    /// Blocks behind the header that hold something.
    pub(crate) fn stored(&self) -> u32 {
        self.packed.as_ref().map_or_else(|| self.records.blocks(), |packed| packed.stored)
    }

    pub(crate) fn next_location(&self) -> Location {
        Location::new(self.start.raw() + 1 + self.stored())
    }

    /// Whether a block of the backing has any of its blocks.
    pub(crate) fn holds(&self, block: Location) -> bool {
        let inside = self.packed.as_ref().is_some_and(|packed| packed.inside.is_some());
        let first = self.start.raw() + u32::from(!inside);
        (first..self.start.raw() + 1 + self.stored()).contains(&block.raw())
    }

    /// Index of a block among the blocks of the batch.
    pub(crate) fn index_of(&self, at: Location) -> usize {
        let start = self.start.raw();
        let mut places = self.packed.iter().flat_map(|packed| &packed.places);
        let found = places.position(|place| place.at(start) == at);
        found.unwrap_or_else(|| onefold_units::convert::index(at.raw() - start - 1))
    }

    /// Where the block at `at` lies until the batch is complete, if that is not in memory.
    pub(crate) fn source_of(&self, at: Location) -> Option<Location> {
        self.remaps.then(|| self.records.clean[self.index_of(at)].source)
    }

    /// The bytes of block `at` behind the header.
    pub(crate) fn block(&self, at: usize) -> &[u8] {
        &self.buffer.bytes()[(at + 1) * BLOCK..(at + 2) * BLOCK]
    }

    pub(crate) fn block_mut(&mut self, at: usize) -> &mut [u8] {
        &mut self.buffer.bytes_mut()[(at + 1) * BLOCK..(at + 2) * BLOCK]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.blocks() == 0 && self.records.trims.is_empty()
    }
}

/// A stream and the log segment that it fills.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamState {
    pub(crate) segment: Option<LogSegmentId>,
    /// Blocks of the segment that are given out.
    pub(crate) used: u32,
    pub(crate) open: Option<BatchId>,
    pub(crate) in_flight: usize,
}

/// All streams and batches.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) streams: [StreamState; STREAMS],
    batches: Vec<Option<Batch>>,
    /// Batches whose memory is used again.
    spare: Vec<Batch>,
    /// Open and sent batches.
    active: Vec<BatchId>,
    seq: u64,
    /// Sent batches in order, and whether each is complete. The first one has number `complete + 1`.
    sent: VecDeque<bool>,
    complete: u64,
    batches_max: usize,
    /// How long the backing takes for batches.
    service: Service,
}

impl Log {
    pub(crate) fn new(options: &Options, unit: u32, seq: u64) -> Self {
        Self {
            streams: [StreamState::default(); STREAMS],
            batches: Vec::new(),
            spare: Vec::new(),
            active: Vec::new(),
            seq,
            sent: VecDeque::new(),
            complete: seq,
            batches_max: options.batches,
            service: Service::new(options, unit),
        }
    }

    pub(crate) fn stream(&self, stream: Stream) -> &StreamState {
        &self.streams[stream.slot()]
    }

    pub(crate) fn stream_mut(&mut self, stream: Stream) -> &mut StreamState {
        &mut self.streams[stream.slot()]
    }

    #[inline]
    pub(crate) fn batch(&self, id: BatchId) -> &Batch {
        self.batches[id.0].as_ref().expect("an active batch")
    }

    #[inline]
    pub(crate) fn batch_mut(&mut self, id: BatchId) -> &mut Batch {
        self.batches[id.0].as_mut().expect("an active batch")
    }

    /// Batches that a stream may still begin. The host, the cleaner and checkpoints have batches of their own, so none waits for
    /// those of another.
    pub(crate) fn batches_left(&self, stream: Stream) -> usize {
        let under_way = |stream| {
            let state = self.stream(stream);
            state.in_flight + usize::from(state.open.is_some())
        };
        match stream {
            Stream::Clean => CLEAN_BATCHES_MAX.saturating_sub(under_way(stream)),
            Stream::Meta => META_BATCHES_MAX.saturating_sub(under_way(stream)),
            _ => {
                let most = self.batches_max.saturating_sub(BATCHES_OWN);
                most.saturating_sub(Stream::HOST.into_iter().map(under_way).sum())
            }
        }
    }

    /// The number of the last batch that was sent.
    pub(crate) const fn seq(&self) -> u64 {
        self.seq
    }

    /// All batches up to this number are complete.
    pub(crate) const fn complete(&self) -> u64 {
        self.complete
    }

    /// Begins a batch of a stream at `start`.
    pub(crate) fn begin(
        &mut self,
        stream: Stream,
        place: (LogSegmentId, Location, u32),
        bytes: usize,
    ) -> BatchId {
        let (segment, start, capacity) = place;
        let mut batch = self.reuse(bytes).unwrap_or_else(|| Batch {
            stream,
            segment,
            start,
            capacity,
            seq: None,
            attempt: 0,
            progress: Progress::Waiting,
            failing: None,
            records: Records::default(),
            most: u32::MAX,
            packed: None,
            remaps: false,
            waiters: Vec::new(),
            buffer: Buffer::new(bytes),
            opened: None,
            sent_at: Nanos::ZERO,
            sent: UnderWay::default(),
        });
        (batch.stream, batch.opened) = (stream, None);
        (batch.segment, batch.start, batch.capacity) = place;
        let id = BatchId(self.batches.iter().position(Option::is_none).unwrap_or_else(|| {
            self.batches.push(None);
            self.batches.len() - 1
        }));
        self.batches[id.0] = Some(batch);
        self.active.push(id);
        self.stream_mut(stream).open = Some(id);
        id
    }

    fn reuse(&mut self, bytes: usize) -> Option<Batch> {
        let at = self.spare.iter().position(|batch| batch.buffer.bytes().len() == bytes)?;
        let mut batch = self.spare.swap_remove(at);
        batch.records.clear();
        (batch.packed, batch.most) = (None, u32::MAX);
        batch.waiters.clear();
        (batch.seq, batch.attempt, batch.failing) = (None, 0, None);
        (batch.progress, batch.remaps) = (Progress::Waiting, false);
        Some(batch)
    }

    /// Gives a batch its number.
    pub(crate) fn send(&mut self, id: BatchId) -> u64 {
        self.seq += 1;
        self.sent.push_back(false);
        let seq = self.seq;
        let batch = self.batch_mut(id);
        batch.seq = Some(seq);
        let stream = batch.stream;
        let state = self.stream_mut(stream);
        state.open = None;
        state.in_flight += 1;
        seq
    }

    /// The batches of a log segment that were sent, in the order of their places.
    pub(crate) fn sent_to(&self, segment: LogSegmentId) -> Vec<BatchId> {
        let here =
            |id: &BatchId| self.batch(*id).segment == segment && self.batch(*id).seq.is_some();
        let mut list: Vec<_> = self.active.iter().copied().filter(here).collect();
        list.sort_unstable_by_key(|id| self.batch(*id).start);
        list
    }

    /// Takes a complete batch out.
    pub(crate) fn end(&mut self, id: BatchId) -> Batch {
        let batch = self.batches[id.0].take().expect("an active batch");
        self.active.retain(|active| *active != id);
        let seq = batch.seq.expect("a batch that was sent");
        let at = onefold_units::convert::index64(seq - self.complete - 1);
        self.sent[at] = true;
        while self.sent.front() == Some(&true) {
            self.sent.pop_front();
            self.complete += 1;
        }
        self.stream_mut(batch.stream).in_flight -= 1;
        batch
    }

    /// Keeps the memory of a batch for later ones.
    pub(crate) fn recycle(&mut self, batch: Batch) {
        if self.spare.len() < self.batches_max {
            self.spare.push(batch);
        }
    }

    /// The batch in memory that a block of the backing is of (invariant 1).
    #[inline]
    pub(crate) fn in_memory(&self, at: Location) -> Option<BatchId> {
        self.active.iter().copied().find(|id| self.batch(*id).holds(at))
    }

    pub(crate) fn active(&self) -> &[BatchId] {
        &self.active
    }

    /// How long the backing takes for batches.
    pub(crate) const fn service(&self) -> &Service {
        &self.service
    }

    /// The write of a batch of so many blocks is given to the backing.
    pub(crate) fn begin_write(&mut self, id: BatchId, blocks: u32, now: Nanos) {
        self.batch_mut(id).sent = self.service.begin(blocks, now);
    }

    /// It failed, and may be sent again: how long it took says nothing.
    pub(crate) fn give_up_write(&mut self, id: BatchId) {
        let sent = std::mem::take(&mut self.batch_mut(id).sent);
        self.service.give_up(sent);
    }

    /// It is over.
    pub(crate) fn end_write(&mut self, id: BatchId, now: Nanos) {
        let sent = std::mem::take(&mut self.batch_mut(id).sent);
        self.service.end(sent, now);
    }

    /// Blocks that a batch takes of its log segment.
    pub(crate) fn extent(&self, layout: &Layout, id: BatchId) -> u32 {
        let batch = self.batch(id);
        let blocks = (1 + batch.stored()).next_multiple_of(layout.geometry().unit_blocks);
        blocks + layout.rest_to_pad(batch, blocks)
    }

    pub(crate) fn batch_deadline(&self, options: &Options, id: BatchId) -> Option<Nanos> {
        let batch = self.batch(id);
        let waits = batch.seq.is_none() && batch.stream.is_user() && !batch.is_empty();
        let age = match options.acknowledge {
            Acknowledge::Complete => options.batch_age.min(WAITED_AGE),
            Acknowledge::Buffered => options.batch_age,
        };
        batch.opened.filter(|_| waits).map(|opened| opened + age)
    }
}

impl Layout {
    /// Blocks behind the first `blocks` of a batch that it pads, because no other batch fits there.
    pub(crate) fn rest_to_pad(&self, batch: &Batch, blocks: u32) -> u32 {
        if !self.is_zoned() {
            return 0;
        }
        let used = batch.start.raw() - self.start_of(batch.segment).raw() + blocks;
        let rest = self.segment_blocks() - used;
        let unit = self.geometry().unit_blocks;
        if rest < BATCH_MIN.max(unit) { rest } else { 0 }
    }
}
