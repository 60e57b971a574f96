//! Putting blocks into batches, and sending those.

use onefold_format::volume::{BatchHeader, Records as Encoded, SegmentState};
use onefold_units::convert::{index, low16, u64_from};
use onefold_units::{Lba, Location, LogSegmentId, Seq};

use crate::config::{Acknowledge, BATCH_BLOCKS_MAX};
use crate::io::{IoFailed, IoKind};
use crate::limits::{BATCH_MIN, BLOCK, CLEAN_RECORDS_MAX};
use crate::log::{Batch, BatchId, Progress, Stream};
use crate::map::Map;
use crate::map::page::Entry;
use crate::pending::Purpose;
use crate::stats::Sent;
use crate::volume::Volume;

/// Blocks of a batch that nobody waits for from which on an idle backing gets it: its header is 1.6 % more then.
const LONG_BLOCKS: u32 = 63;

impl Volume {
    /// Whether a stream can take so many blocks now.
    pub(crate) fn can_append(&self, stream: Stream, blocks: u32) -> bool {
        let state = self.log.stream(stream);
        let open = state.open.map(|open| self.log.batch(open));
        let room = open.map_or(0, Batch::room);
        if room >= blocks {
            return true;
        }
        let taken = state.used + open.map_or(0, |batch| batch.capacity);
        let rest = state.segment.map_or(0, |_| self.segment_blocks() - taken);
        let blocks = blocks - room;
        // One more may be cut short by the end of a log segment.
        let most = self.blocks_of_batch(stream).min(CLEAN_RECORDS_MAX + 1);
        let more = blocks.div_ceil(most - 1) + 1;
        // Each takes a header, and may be padded.
        let fits = rest >= blocks + more * self.layout.geometry().unit_blocks;
        let has_segment = fits && !self.takes_turns(stream) || self.takeable(stream) > 0;
        self.log.batches_left(stream) >= index(more) && has_segment
    }

    /// Whether a stream waits for the cleaner before its log segment is used up. Where log segments are hardly longer than batches, both write
    /// them in turns then, and each lies in one piece on a device that has no streams. Block by block, such a device would move half as much again.
    fn takes_turns(&self, stream: Stream) -> bool {
        stream.is_user() && self.segment_blocks() <= 2 * self.options.batch_blocks
    }

    /// Blocks that a stream that is not the host's may take until a checkpoint gives more log segments back.
    pub(crate) fn room_of(&self, stream: Stream) -> u64 {
        let full = self.layout.full_blocks();
        let state = self.log.stream(stream);
        let open = state.open.map(|open| self.log.batch(open));
        let taken = state.used + open.map_or(0, |batch| batch.capacity - batch.room());
        let rest = state.segment.map_or(0, |_| full.saturating_sub(taken));
        u64::from(self.takeable(stream)) * u64::from(full) + u64::from(rest)
    }

    /// The batch of a stream that has room for a block; [`Volume::can_append`] said that there is one.
    pub(crate) fn batch_with_room(&mut self, stream: Stream) -> BatchId {
        if let Some(open) = self.log.stream(stream).open {
            if self.log.batch(open).room() > 0 {
                return open;
            }
            self.send(open);
        }
        self.begin_batch(stream)
    }

    /// Blocks of a new batch, its header included. Where log segments are so short that the host waits for the cleaner anyway, every
    /// header counts.
    pub(crate) fn blocks_of_batch(&self, stream: Stream) -> u32 {
        let most = self.batch_memory(stream);
        let short = self.segments.free_count() < self.reserve();
        if short { most } else { self.log.service().batch_blocks(most) }
    }

    /// Blocks that a batch of a stream has memory for. Those that are not the host's are as long as they can be, however short
    /// those of the host are: what fits a volume counts on full log segments of few headers ([`crate::Layout::packed`]).
    pub(crate) fn batch_memory(&self, stream: Stream) -> u32 {
        if stream.is_user() {
            self.options.batch_blocks
        } else {
            BATCH_BLOCKS_MAX.min(self.segment_blocks())
        }
    }

    fn begin_batch(&mut self, stream: Stream) -> BatchId {
        let place = self.next_place(stream, BATCH_MIN);
        let remaps = stream == Stream::Clean && self.cleaner.remaps();
        let with_blocks = stream == Stream::Meta || self.options.bytes && !remaps;
        let bytes = if with_blocks { index(self.batch_memory(stream)) * BLOCK } else { BLOCK };
        let id = self.log.begin(stream, place, bytes);
        let batch = self.log.batch_mut(id);
        batch.remaps = remaps;
        if stream == Stream::Clean {
            batch.most = self.layout.clean_records_max();
        }
        id
    }

    /// Where the next batch of a stream goes: log segment, block, and how many blocks it may have, at least `least`.
    pub(crate) fn next_place(
        &mut self,
        stream: Stream,
        least: u32,
    ) -> (LogSegmentId, Location, u32) {
        let unit = self.layout.geometry().unit_blocks;
        let blocks = self.segment_blocks();
        let state = *self.log.stream(stream);
        let (segment, used) = match state.segment {
            Some(segment) if self.fits(stream, blocks - state.used, least.max(unit)) => {
                (segment, state.used)
            }
            full => {
                if let Some(full) = full {
                    self.close_segment(stream, full);
                    self.finish_rest(full, blocks - state.used);
                }
                let new = self.segments.open(stream).expect("a stream asks before it appends");
                (new, 0)
            }
        };
        let start = Location::new(self.start_of(segment).raw() + used);
        let state = self.log.stream_mut(stream);
        state.segment = Some(segment);
        state.used = used;
        (segment, start, self.capacity_in(stream, blocks - used))
    }

    /// Sends a batch: it gets its number, its header is written, and the next batch of the stream begins behind it.
    pub(crate) fn send(&mut self, id: BatchId) {
        // A trim must not overtake what was written before it, nor be overtaken by what comes after it. What it trims was
        // sent before it was put into its batch; here it goes first (`Volume::trim`).
        if let Some(user) = self.log.stream(Stream::User).open
            && user != id
            && !self.log.batch(user).records.trims.is_empty()
        {
            self.send(user);
        }
        self.pack(id);
        self.fill_padding(id);
        let seq = self.log.send(id);
        self.log.batch_mut(id).sent_at = self.now;
        let (stream, start) = (self.log.batch(id).stream, self.log.batch(id).start);
        if stream.is_user() && !self.log.batch(id).is_empty() {
            self.flushes.note_host(seq);
        }
        let blocks = self.log.batch(id).stored();
        let padded = self.log.extent(&self.layout, id);
        let used = start.raw() - self.start_of(self.log.batch(id).segment).raw() + padded;
        self.log.stream_mut(stream).used = used;
        self.dispatch(id);
        if stream != Stream::Meta {
            self.checkpoint.note_sent(blocks, self.now);
        }
        self.flushes.note_sent(padded, self.now);
    }

    /// Has a batch written, now or when its turn comes.
    pub(crate) fn dispatch(&mut self, id: BatchId) {
        let batch = self.log.batch_mut(id);
        batch.progress = Progress::Waiting;
        let segment = batch.segment;
        self.segments.pin(segment);
        self.start_batch(id);
    }

    /// Has a batch written if it may be now. Its header comes after what it describes.
    pub(crate) fn start_batch(&mut self, id: BatchId) {
        if !self.may_start(id) {
            self.give_up_if_held(id);
            return;
        }
        let batch = self.log.batch_mut(id);
        batch.progress = Progress::UnderWay;
        let blocks = batch.records.blocks();
        if batch.remaps && blocks > 0 {
            let first = Location::new(batch.start.raw() + 1);
            self.ask(IoKind::Remap, Purpose::Remap(id), first, blocks);
        } else {
            self.write_batch(id, self.log.extent(&self.layout, id));
        }
    }

    /// Writes a batch that takes so many blocks of the log; the header alone where the blocks are remapped.
    pub(crate) fn write_batch(&mut self, id: BatchId, padded: u32) {
        let durable = self.flushes.durable();
        self.flushes.note_said(durable);
        let batch = self.log.batch(id);
        let (segment, start) = (batch.segment, batch.start);
        let blocks = batch.stored();
        let encoded = match batch.stream {
            Stream::Clean => Encoded::Clean(&batch.records.clean),
            Stream::Meta => Encoded::Meta(&batch.records.meta),
            _ => Encoded::Data(&batch.records.data),
        };
        let header = BatchHeader {
            seq: Seq::new(batch.seq.expect("a batch that was sent")),
            stream: batch.stream.code(),
            attempt: batch.attempt,
            segment,
            epoch: self.segments.of(segment).epoch,
            incarnation: self.incarnation,
            padding_blocks: low16(u64::from(padded - 1 - blocks)),
            durable_seq: Seq::new(durable),
        };
        let mut block = [0; BLOCK];
        let address = u64::from(start.raw());
        let moved = if batch.stream.is_user() { &batch.records.clean[..] } else { &[] };
        let packing = batch.packing();
        header.encode(
            &self.label.uuid,
            address,
            (&encoded, moved),
            &batch.records.trims,
            packing,
            &mut block,
        );
        let batch = self.log.batch_mut(id);
        let bytes = batch.buffer.bytes_mut();
        bytes[..BLOCK].copy_from_slice(&block);
        if bytes.len() > BLOCK {
            bytes[index(1 + blocks) * BLOCK..index(padded) * BLOCK].fill(0);
        }
        let (blocks, sent) = if batch.remaps { (0, 1) } else { (blocks, padded) };
        self.log.begin_write(id, sent, self.now);
        self.ask(IoKind::Write, Purpose::Batch(id), start, sent);
        self.count_batch(id, blocks, sent);
    }

    fn count_batch(&mut self, id: BatchId, blocks: u32, sent: u32) {
        let cause = match self.log.batch(id).stream {
            Stream::User | Stream::Hot => Sent::User,
            Stream::Clean => Sent::Cleaning,
            Stream::Meta => Sent::Map,
            Stream::JournalLog | Stream::JournalHot => Sent::Journal,
        };
        let batch = self.log.batch(id);
        let filled = if batch.stream.is_user() { u64_from(batch.records.clean.len()) } else { 0 };
        self.stats.batches += 1;
        self.stats.count(cause, u64::from(blocks) - filled);
        self.stats.count(Sent::Cleaning, filled);
        self.stats.count(Sent::Header, 1);
        self.stats.count(Sent::Padding, u64::from(sent - 1 - blocks));
    }

    /// Sends the batches that waited long enough, and those that are long enough or waited for while their stream has nothing in flight.
    pub(crate) fn send_due(&mut self) {
        for stream in Stream::HOST {
            let state = *self.log.stream(stream);
            let Some(open) = state.open.filter(|open| !self.log.batch(*open).is_empty()) else {
                continue;
            };
            self.log.batch_mut(open).opened.get_or_insert(self.now);
            let due =
                self.log.batch_deadline(&self.options, open).is_some_and(|due| due <= self.now);
            let batch = self.log.batch(open);
            let urgent = batch.waiters.iter().any(|waiter| self.answers.is_fua(*waiter));
            let enough = match self.options.acknowledge {
                Acknowledge::Complete => true,
                Acknowledge::Buffered => batch.records.blocks() >= LONG_BLOCKS,
            };
            let idle = enough && state.in_flight == 0;
            if idle || due || urgent {
                self.send(open);
            }
        }
    }

    /// Sends what streams of the host have put together so far.
    pub(crate) fn send_user(&mut self) {
        for stream in Stream::HOST {
            self.send_open(stream);
        }
    }

    /// Sends what a stream has put together so far.
    pub(crate) fn send_open(&mut self, stream: Stream) {
        if let Some(open) = self.log.stream(stream).open
            && !self.log.batch(open).is_empty()
        {
            self.send(open);
        }
    }

    /// A stream goes on in another log segment.
    pub(crate) fn leave_segment(&mut self, stream: Stream) {
        let Some(segment) = self.log.stream(stream).segment else { return };
        self.send_open(stream);
        let state = self.log.stream_mut(stream);
        let used = state.used;
        (state.segment, state.used) = (None, 0);
        self.close_segment(stream, segment);
        self.finish_rest(segment, self.segment_blocks() - used);
    }

    /// The backing is through with a batch. It is over when all before it in its log segment are (`crate::log`,
    /// invariant 4).
    pub(crate) fn batch_over(&mut self, id: BatchId, result: Result<(), IoFailed>) {
        self.log.end_write(id, self.now);
        let batch = self.log.batch_mut(id);
        batch.progress = Progress::Over(result.is_ok());
        let (stream, segment) = (batch.stream, batch.segment);
        match result {
            Ok(()) => self.segments.note_written(),
            Err(_) if self.frozen.is_none() && !self.can_move(id) => {
                return self.write_in_place(id);
            }
            Err(_) => self.suspect(stream, segment),
        }
        let broken = self.segments.of(segment).state == SegmentState::Suspect;
        if broken && self.layout.is_zoned() {
            // What was put together for this zone goes elsewhere as well.
            self.send_open(stream);
        }
        for id in self.log.sent_to(segment) {
            let progress = self.log.batch(id).progress;
            match progress {
                Progress::Over(_) | Progress::Waiting if broken && self.move_batch(id) => {}
                Progress::Over(true) => self.end_batch(id, Ok(())),
                Progress::Over(false) => self.end_batch(id, Err(IoFailed::Error)),
                Progress::Waiting if broken => self.end_batch(id, Err(IoFailed::Error)),
                Progress::UnderWay if broken => {}
                Progress::Waiting | Progress::UnderWay => break,
            }
        }
        self.start_waiting();
    }

    fn end_batch(&mut self, id: BatchId, result: Result<(), IoFailed>) {
        let mut batch = self.log.end(id);
        self.segments.unpin(batch.segment);
        let mut waiters = std::mem::take(&mut batch.waiters);
        self.release(&mut waiters, result);
        batch.waiters = waiters;
        self.log.recycle(batch);
    }

    /// Blocks of a batch in memory move: what points at each points to its new place.
    pub(crate) fn move_all(&mut self, moves: Vec<((Lba, Location), Location)>) {
        // Pages with entries in batches under way are in memory.
        for ((lba, from), to) in moves {
            if from != to && self.point_elsewhere(lba, from, to) > 0 {
                self.gain(to);
                self.lose(from);
            }
        }
    }

    /// Entries of an LBA that point to a block, in members whose page is in memory, point to another place. Says how many.
    pub(crate) fn point_elsewhere(&mut self, lba: Lba, from: Location, to: Location) -> u32 {
        let mut count = 0;
        for slot in 0..self.members.places() {
            let lba = Map::lba_of(slot, lba);
            let entry = self.map.peek(lba);
            if entry.at == from {
                let crc = if to.is_block() { entry.crc } else { 0 };
                self.map.set(lba, Entry { at: to, crc });
                count += 1;
            }
        }
        count
    }
}
