//! The cleaner: moves what is live out of a log segment, so that it can be given back.
//!
//! It walks the chain of headers of its victim, looks each block up in the map, reads those that the map still points at,
//! and appends them to the `clean` stream with their old checksums and their source. Where the backing can remap blocks it
//! does that instead of reading and writing them (`crate::remap`). The map points to the copy as soon as
//! that is in a batch; a block that was written or trimmed meanwhile is left alone. So neither readers nor writers wait for
//! a victim (volume.md, section 5.6).
//!
//! 1. A copy counts only if the map pointed to its source when it was put into its batch. The source stays as it is until a
//!    checkpoint covers the copy, so a replay needs no copies.
//! 2. All members whose entry points at a block point at its copy from the same moment on.
//! 3. A damaged block is moved as it is, with the checksum it should have: reading it stays an error.

use std::collections::VecDeque;

use onefold_format::volume::{BatchHeader, CleanRecord, DataRecord, RecordList, SegmentState};
use onefold_units::convert::{float, index, u32_from};
use onefold_units::{Lba, Location, LogSegmentId};

use crate::config::Victim;
use crate::io::{Buffer, IoFailed, IoKind};
use crate::layout::Layout;
use crate::log::{BLOCK, BatchId, Stream};
use crate::pending::Purpose;
use crate::volume::Volume;

/// Reads of the cleaner that may be under way.
const MOVES_MAX: usize = 8;

/// Most blocks of one read.
const MOVE_BLOCKS_MAX: usize = 64;

/// A block that may be live.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) lba: Lba,
    /// The member that wrote it, by what its writes are marked with.
    pub(crate) birth: u32,
    pub(crate) at: Location,
    /// The recorded checksum.
    pub(crate) crc: u32,
}

/// The log segment that is cleaned.
#[derive(Debug)]
struct Walk {
    segment: LogSegmentId,
    /// The next header, in blocks from the start of the log segment; `None` behind the last one.
    next: Option<u32>,
    header_wanted: bool,
    /// Blocks of the batch at hand that were not looked up yet.
    blocks: VecDeque<Found>,
    /// Reads and appends under way.
    moves: usize,
    moved: u32,
}

/// Blocks that are being read, or wait to be appended.
#[derive(Debug)]
struct Move {
    blocks: Vec<Found>,
    /// Blocks that were appended.
    done: usize,
    buffer: Buffer,
    /// They were read before, with others.
    again: bool,
    /// The read failed.
    lost: bool,
}

/// The state of the cleaner.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    walk: Option<Walk>,
    moves: Vec<Option<Move>>,
    ready: VecDeque<Move>,
    /// Blocks to move before the host may write more.
    pub(crate) debt: f64,
    /// Blocks that may be moved without need.
    pub(crate) credit: f64,
    /// Mean share of live blocks in victims.
    pub(crate) utilisation: f64,
    /// A log segment is cleaned although there is no need.
    wanted: bool,
    /// Victims that are copied before a remap is tried again.
    pub(crate) copies_left: u32,
}

impl Cleaner {
    pub(crate) const fn is_walking(&self) -> bool {
        self.walk.is_some()
    }
}

impl Volume {
    /// Asks for a log segment to be cleaned now, if there is one that is worth it.
    pub fn want_cleaning(&mut self) {
        self.cleaner.wanted = true;
    }

    pub(crate) fn step_cleaner(&mut self) {
        if self.frozen.is_some() || self.checkpoint.is_closing() {
            return;
        }
        loop {
            self.append_ready();
            if self.cleaner.walk.is_none() && !self.begin_walk() {
                return;
            }
            if !self.advance_walk() {
                return;
            }
        }
    }

    /// Chooses the next victim if there is need.
    fn begin_walk(&mut self) -> bool {
        let free = self.free_soon();
        let background = free < self.high() && self.cleaner.credit >= 1.0;
        // Until then the counts of live blocks are too high to choose by.
        let counted = self.is_counted();
        let wanted = std::mem::take(&mut self.cleaner.wanted);
        // Log segments that a checkpoint is about to free may be taken up by checkpoints themselves: whoever waits for
        // one must not wait for those.
        let blocked = self.segments.available() <= Self::kept_from(Stream::User);
        let needed = free < self.low() || background || wanted || blocked || self.is_evacuating();
        if !counted || !needed {
            return false;
        }
        let Some(segment) = self.choose_victim() else { return false };
        let live = self.segments.of(segment).live;
        let share = f64::from(live) / f64::from(self.segment_blocks());
        self.cleaner.utilisation += (share - self.cleaner.utilisation) / 8.0;
        self.segments.pin(segment);
        let walk = Walk {
            segment,
            next: Some(0),
            header_wanted: false,
            blocks: VecDeque::new(),
            moves: 0,
            moved: 0,
        };
        self.cleaner.walk = Some(walk);
        true
    }

    /// The log segment to clean next.
    pub(crate) fn choose_victim(&self) -> Option<LogSegmentId> {
        let urgent = self.free_soon() <= Layout::reserve() + 1;
        let greedy = urgent || self.options.victim == Victim::Greedy;
        let (blocks, full) = (self.segment_blocks(), self.segment_room());
        let now = self.segments.next_epoch();
        let cleanable = || {
            self.segments.iter().filter(|(_, segment)| {
                segment.state == SegmentState::Closed
                    && segment.stream != Stream::Meta
                    && segment.pins == 0
                    && !segment.is_empty_closed()
            })
        };
        if let Some((id, _)) = cleanable().find(|(_, segment)| segment.leaving) {
            return Some(id);
        }
        let candidates = cleanable().filter(|(_, segment)| {
            // A full log segment gives nothing back.
            segment.live < full
        });
        if greedy {
            return candidates.min_by_key(|(id, segment)| (segment.live, *id)).map(|(id, _)| id);
        }
        let score = |live: u32, epoch: u64| {
            let u = f64::from(live) / f64::from(blocks);
            (1.0 - u) * float(now - epoch) / (1.0 + u)
        };
        candidates
            .map(|(id, segment)| (score(segment.live, segment.epoch), id))
            .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
            .map(|(_, id)| id)
    }

    /// Does the next thing for the victim. `false` if that has to wait.
    fn advance_walk(&mut self) -> bool {
        let Some(walk) = &self.cleaner.walk else { return false };
        if walk.header_wanted || walk.moves >= MOVES_MAX {
            return false;
        }
        if !walk.blocks.is_empty() {
            return if self.cleaner_remaps() { self.relocate() } else { self.begin_move() };
        }
        match walk.next {
            Some(next) => {
                self.read_header(next);
                false
            }
            None if walk.moves > 0 => false,
            None => {
                self.end_walk();
                true
            }
        }
    }

    fn read_header(&mut self, next: u32) {
        let Some(walk) = &mut self.cleaner.walk else { return };
        walk.header_wanted = true;
        let at = Location::new(self.layout.start_of(walk.segment).raw() + next);
        self.stats.clean_read += 1;
        self.ask(IoKind::Read, Purpose::CleanHeader, at, 1);
    }

    /// The next header of the victim was read. What is none ends the chain.
    pub(crate) fn clean_header_over(&mut self, buffer: &Buffer, result: Result<(), IoFailed>) {
        let blocks = self.segment_blocks();
        let Some(walk) = &mut self.cleaner.walk else { return };
        walk.header_wanted = false;
        let next = walk.next.unwrap_or(0);
        let start = self.layout.start_of(walk.segment).raw() + next;
        let epoch = self.segments.of(walk.segment).epoch;
        let batch = result
            .ok()
            .and_then(|()| BatchHeader::decode(buffer.bytes(), &self.uuid, start.into()).ok())
            .filter(|batch| batch.header.segment == walk.segment && batch.header.epoch == epoch);
        let Some(batch) = batch else {
            walk.next = None;
            return;
        };
        let places = (start + 1..).map(Location::new);
        // Some that were taken back may be there (`Volume::revisit`).
        let found = |lba, birth, crc, at| Found { lba, birth, at, crc };
        match &batch.records {
            RecordList::Data(list) => {
                let of = |(r, at): (&DataRecord, Location)| found(r.lba, r.birth, r.crc, at);
                walk.blocks.extend(list.iter().zip(places).map(of));
            }
            RecordList::Clean(list) => {
                let of = |(r, at): (&CleanRecord, Location)| found(r.lba, r.birth, r.crc, at);
                walk.blocks.extend(list.iter().zip(places).map(of));
            }
            RecordList::Meta(_) => {}
        }
        let behind = next
            + 1
            + u32_from(batch.records.as_records().len())
            + u32::from(batch.header.padding_blocks);
        walk.next = (behind < blocks).then_some(behind);
    }

    /// Reads the next live blocks of the batch at hand that lie side by side.
    fn begin_move(&mut self) -> bool {
        let mut blocks: Vec<Found> = Vec::new();
        while let Some(found) = self.next_found() {
            let Some(live) = self.is_held(found.lba, found.birth, found.at) else {
                return self.read_move(blocks, false);
            };
            let beside = blocks.last().is_none_or(|last| last.at.raw() + 1 == found.at.raw());
            if live && (!beside || blocks.len() >= MOVE_BLOCKS_MAX) {
                return self.read_move(blocks, false);
            }
            if live {
                blocks.push(found);
            }
            self.pass_found();
        }
        let some = !blocks.is_empty();
        self.read_move(blocks, false);
        some || self.cleaner.walk.as_ref().is_some_and(|walk| walk.blocks.is_empty())
    }

    /// Whether there was anything to read.
    fn read_move(&mut self, blocks: Vec<Found>, again: bool) -> bool {
        let (Some(first), Some(walk)) = (blocks.first().copied(), &mut self.cleaner.walk) else {
            return false;
        };
        walk.moves += 1;
        let count = u32_from(blocks.len());
        let slot = self.cleaner.moves.iter().position(Option::is_none).unwrap_or_else(|| {
            self.cleaner.moves.push(None);
            self.cleaner.moves.len() - 1
        });
        self.cleaner.moves[slot] =
            Some(Move { blocks, done: 0, buffer: Buffer::default(), again, lost: false });
        self.stats.clean_read += u64::from(count);
        self.ask(IoKind::Read, Purpose::CleanData(slot), first.at, count);
        true
    }

    /// Blocks of the victim were read.
    pub(crate) fn clean_data_over(
        &mut self,
        slot: usize,
        buffer: Buffer,
        result: Result<(), IoFailed>,
    ) {
        let Some(mut ready) = self.cleaner.moves[slot].take() else { return };
        if result.is_err() && !ready.again {
            // Each one by itself: those beside the one that cannot be read are good.
            for found in ready.blocks {
                self.read_move(vec![found], true);
            }
            if let Some(walk) = &mut self.cleaner.walk {
                walk.moves -= 1;
            }
            return;
        }
        ready.buffer = buffer;
        ready.lost = result.is_err();
        self.cleaner.ready.push_back(ready);
    }

    /// The next block of the victim that may be live.
    pub(crate) fn next_found(&self) -> Option<Found> {
        self.cleaner.walk.as_ref()?.blocks.front().copied()
    }

    /// The next block of the victim was looked at.
    pub(crate) fn pass_found(&mut self) {
        if let Some(walk) = &mut self.cleaner.walk {
            walk.blocks.pop_front();
        }
    }

    /// Looks at blocks of the victim once more, if it is still at hand.
    pub(crate) fn revisit(&mut self, found: Found) {
        let segment = self.layout.segment_of(found.at);
        if let Some(walk) = self.cleaner.walk.as_mut().filter(|walk| walk.segment == segment) {
            walk.blocks.push_back(found);
        }
    }

    /// Appends what was read, as far as there is room, and as far as it can be looked up who has it.
    fn append_ready(&mut self) {
        while let Some(mut ready) = self.cleaner.ready.pop_front() {
            self.match_batch();
            while let Some(found) = ready.blocks.get(ready.done).copied() {
                let held = self.is_held(found.lba, found.birth, found.at);
                let Some(live) = held.filter(|_| self.can_append(Stream::Clean, 1)) else {
                    self.cleaner.ready.push_front(ready);
                    return;
                };
                let bytes = ready.buffer.bytes().get(ready.done * BLOCK..(ready.done + 1) * BLOCK);
                if live {
                    self.append_copy(found, bytes, ready.lost);
                } else {
                    self.stats.clean_wasted += 1;
                }
                self.pay();
                ready.done += 1;
            }
            if let Some(walk) = &mut self.cleaner.walk {
                walk.moves -= 1;
            }
        }
    }

    fn append_copy(&mut self, found: Found, bytes: Option<&[u8]>, lost: bool) {
        if lost {
            self.point_elsewhere(found.lba, found.at, Location::LOST);
            self.lose(found.at);
            self.stats.crc_errors += 1;
            return;
        }
        let (id, slot) = self.append_record(found);
        if let (Some(bytes), true) = (bytes, self.options.bytes) {
            self.log.batch_mut(id).block_mut(slot).copy_from_slice(bytes);
        }
    }

    /// Gives a block its place in a batch, which the map points to from now on. Its checksum is the recorded one, whatever
    /// the block holds (invariant 3).
    pub(crate) fn append_record(&mut self, found: Found) -> (BatchId, usize) {
        let Found { lba, birth, at: source, crc } = found;
        let id = self.batch_with_room(Stream::Clean);
        let batch = self.log.batch_mut(id);
        let (at, slot) = (batch.next_location(), index(batch.records.blocks()));
        batch.records.clean.push(CleanRecord { lba, birth, crc, source });
        self.point_elsewhere(lba, source, at);
        self.gain(at);
        self.lose(source);
        if let Some(walk) = &mut self.cleaner.walk {
            walk.moved += 1;
        }
        (id, slot)
    }

    fn end_walk(&mut self) {
        let Some(walk) = self.cleaner.walk.take() else { return };
        self.segments.unpin(walk.segment);
        self.cleaner.copies_left = self.cleaner.copies_left.saturating_sub(1);
        self.stats.cleaned_segments += 1;
        if self.segments.of(walk.segment).live > 0 {
            // Its chain is damaged, or the map of what it holds. What still points there can be read or not, but the log
            // segment is not taken again.
            self.segments.suspect(walk.segment);
            self.stats.damaged_segments += 1;
        }
    }
}
