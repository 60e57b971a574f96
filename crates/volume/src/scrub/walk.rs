//! The walk over a log segment: its chain of headers, and the live ones of the blocks that these list.
//!
//! It goes by places. Blocks side by side are read at once, dead ones among them as well, as they cost less than another request. What does not
//! fit is read once more by itself, and the walk goes on behind it.
//!
//! A header that is none may be the end of the chain, or what a power cut left: the next one is looked for as far behind it as a batch is long.
//! It is damaged if a live block lies behind it, or one was listed by no header at all, as nothing counts that a cut left behind a gap; and
//! so it is in a log segment that was begun since the opening.

use std::collections::VecDeque;

use onefold_format::volume::{
    BatchHeader, DecodedBatch, MetaKind, MetaRecord, RecordList, SegmentState, Slot, Version,
};
use onefold_units::convert::index;
use onefold_units::{Lba, Location, LogSegmentId};

use super::mend::{Mend, What};
use super::{Phase, Reading};
use crate::config::BATCH_BLOCKS_MAX;
use crate::family::{Held, MemberId};
use crate::inspect::Finding;
use crate::log::{BLOCK, Stream};
use crate::volume::Volume;

/// Blocks of one read: 256 KiB.
const READ_BLOCKS: u32 = 64;

/// A block that a header lists.
#[derive(Clone, Copy, Debug)]
struct Listed {
    at: Location,
    crc: u32,
    is: Is,
}

#[derive(Clone, Copy, Debug)]
enum Is {
    Data { lba: Lba, birth: u32 },
    Meta { object: u64, kind: MetaKind },
}

/// A log segment that is looked at.
#[derive(Debug)]
pub(super) struct Walk {
    segment: LogSegmentId,
    /// The use that it was in.
    epoch: u64,
    /// Quarters of blocks that were live when the walk began.
    live: u32,
    /// Those that were found.
    seen: u32,
    /// The next header, in blocks from the start of the log segment.
    next: u32,
    /// Blocks that the last one listed and that were not looked at.
    blocks: VecDeque<Listed>,
    /// Where a header should be and is none, while the next one is looked for.
    lost: Option<u32>,
    /// The first one of these since the last live block.
    gap: Option<u32>,
    /// A header was found damaged.
    told: bool,
    /// What comes next did not fit, and is read once more.
    again: bool,
}

/// How far a log segment can be read.
#[derive(Clone, Copy, Debug)]
struct Extent {
    end: u32,
    /// Its batches go as far as that.
    filled: bool,
}

impl Walk {
    fn new(segment: LogSegmentId, epoch: u64, live: u32) -> Self {
        Self {
            segment,
            epoch,
            live,
            seen: 0,
            next: 0,
            blocks: VecDeque::new(),
            lost: None,
            gap: None,
            told: false,
            again: false,
        }
    }

    /// Takes up what a header lists that lies at `start`.
    fn take(&mut self, batch: &DecodedBatch, start: Location) {
        let places = (start.raw() + 1..).map(Location::new);
        let data = |(at, one): (Location, Version)| {
            let Version { lba, birth, crc, .. } = one;
            Listed { at, crc, is: Is::Data { lba, birth } }
        };
        let meta = |(one, at): (&MetaRecord, Location)| {
            let MetaRecord { object, kind, crc } = *one;
            Listed { at, crc, is: Is::Meta { object, kind } }
        };
        self.blocks = match &batch.records {
            RecordList::Meta(list) => list.iter().zip(places).map(meta).collect(),
            _ => batch.located(start.raw()).map(data).collect(),
        };
        if !batch.places.is_empty() {
            let list = self.blocks.make_contiguous();
            list.sort_by_key(|block| Slot::split(block.at).0);
        }
        self.next += batch.blocks();
    }
}

impl Volume {
    /// Goes to the next log segment with live blocks.
    pub(super) fn next_walk(&mut self, next: u32) -> bool {
        if self.frozen.is_none() && !self.is_counted() {
            // Until then it cannot be told which blocks are live.
            self.scrub.phase = Phase::Segments { next };
            return false;
        }
        let found = self
            .segments
            .iter()
            .skip(index(next))
            .find(|(_, segment)| segment.live() > 0 && segment.is_written())
            .map(|(id, segment)| (id, segment.epoch, segment.quarters));
        self.scrub.report.passed =
            found.map_or_else(|| self.layout.segments(), |(id, ..)| id.raw());
        self.scrub.phase = match found {
            Some((id, epoch, live)) => Phase::Walk(Walk::new(id, epoch, live)),
            None => Phase::Mend,
        };
        true
    }

    /// Reads what comes next of a log segment. `false` if that was asked for, or has to wait.
    pub(super) fn step_walk(&mut self, mut walk: Walk) -> bool {
        let (segment, next) = (walk.segment, walk.segment.raw() + 1);
        let Some(extent) = self.extent_of(&walk) else {
            self.scrub.phase = Phase::Segments { next };
            return true;
        };
        let Some(at) = self.next_place_of(&mut walk) else {
            self.scrub.phase = Phase::Walk(walk);
            return false;
        };
        let behind = walk.lost.is_some_and(|lost| at > lost + BATCH_BLOCKS_MAX);
        if at >= extent.end || behind {
            self.end_of_chain(&mut walk, extent);
            self.scrub.phase = Phase::Segments { next };
            return true;
        }
        let blocks = if walk.again { 1 } else { READ_BLOCKS.min(extent.end - at) };
        self.scrub.phase = Phase::Walk(walk);
        let first = Location::new(self.start_of(segment).raw() + at);
        self.scrub_read(first, blocks, Some(segment));
        false
    }

    /// How far a log segment can be read; `None` if it is in another use by now, or being emptied.
    fn extent_of(&self, walk: &Walk) -> Option<Extent> {
        if walk.segment.raw() >= self.layout.segments() {
            return None;
        }
        let segment = self.segments.of(walk.segment);
        if segment.epoch != walk.epoch || !segment.is_written() || self.cleaner.cleans(walk.segment)
        {
            return None;
        }
        let start = self.start_of(walk.segment).raw();
        let active = self.log.active().iter().map(|id| self.log.batch(*id));
        let here = active.filter(|batch| batch.segment == walk.segment);
        let under_way = here.map(|batch| batch.start.raw() - start).min();
        let mut streams = Stream::ALL.iter().map(|stream| self.log.stream(*stream));
        let used = streams.find(|state| state.segment == Some(walk.segment)).map(|s| s.used);
        let end = under_way.into_iter().chain(used).min();
        Some(Extent { end: end.unwrap_or_else(|| self.segment_blocks()), filled: end.is_some() })
    }

    /// The next place to look at, in blocks from the start of the log segment. `None` if that has to wait for pages of the map or a checkpoint.
    fn next_place_of(&mut self, walk: &mut Walk) -> Option<u32> {
        let start = self.start_of(walk.segment).raw();
        while let Some(block) = walk.blocks.front().copied() {
            let held = self.is_live(&block)?;
            if held == Held::Yes {
                return Some(self.layout.block_of(block.at).raw() - start);
            }
            if held == Held::Unread {
                walk.seen += self.layout.quarters_of(block.at);
            }
            walk.blocks.pop_front();
            walk.again = false;
        }
        Some(walk.next)
    }

    fn is_live(&mut self, block: &Listed) -> Option<Held> {
        match block.is {
            Is::Data { lba, birth } => self.is_held(lba, birth, block.at),
            // What it replaces counts until it does.
            Is::Meta { .. } if self.checkpoint.is_running() => None,
            Is::Meta { object, kind } if self.is_meta_live(object, kind, block.at) => {
                Some(Held::Yes)
            }
            Is::Meta { .. } => Some(Held::No),
        }
    }

    /// Blocks of a log segment were read, or cannot be.
    pub(super) fn walk_over(&mut self, mut walk: Walk, read: Reading, bytes: Option<&[u8]>) {
        let start = self.start_of(walk.segment).raw();
        let first = read.at.raw() - start;
        while self.extent_of(&walk).is_some()
            && let Some(at) = self.next_place_of(&mut walk)
            && (first..first + read.blocks).contains(&at)
        {
            let from = index(at - first) * BLOCK;
            let block = bytes.map(|bytes| &bytes[from..from + BLOCK]);
            let go_on = match walk.blocks.front().copied() {
                Some(listed) => self.look_at(&mut walk, listed, block),
                None => self.look_for_header(&mut walk, Location::new(start + at), block),
            };
            if !go_on {
                break;
            }
        }
        self.scrub.phase = Phase::Walk(walk);
    }

    /// Compares a live block with its checksum. `false` if it is to be read once more.
    fn look_at(&mut self, walk: &mut Walk, listed: Listed, block: Option<&[u8]>) -> bool {
        let good = block.is_some_and(|block| self.layout.is_in(listed.at, block, listed.crc));
        if !good && !std::mem::replace(&mut walk.again, true) {
            return false;
        }
        walk.again = false;
        walk.blocks.pop_front();
        walk.seen += self.layout.quarters_of(listed.at);
        if let Some(gap) = walk.gap.take() {
            self.lose_header(walk, gap);
        }
        self.scrub.report.checked += 1;
        if good {
            return true;
        }
        self.stats.crc_errors += 1;
        let at = listed.at;
        match listed.is {
            Is::Data { lba, .. } => {
                let holder = self.entries_of(lba).get(&at).map(|(member, _)| *member);
                self.note_damage(Finding::Data {
                    member: holder.unwrap_or(MemberId::DEVICE),
                    lba,
                    at,
                });
            }
            Is::Meta { object, kind } => {
                let place = self.note_damage(Finding::Meta { at, kind });
                self.scrub.mends.push(Mend::new(place, What::Meta { at, object, kind }));
            }
        }
        true
    }

    /// Takes up a header, if the block is one. `false` if it is to be read once more.
    fn look_for_header(&mut self, walk: &mut Walk, at: Location, block: Option<&[u8]>) -> bool {
        let batch = block
            .and_then(|block| BatchHeader::decode(block, &self.uuid, at.raw().into()).ok())
            .filter(|batch| {
                let fits = batch.blocks() <= self.segment_blocks() - walk.next;
                let header = &batch.header;
                fits && header.segment == walk.segment && header.epoch == walk.epoch
            });
        if let Some(batch) = batch {
            walk.gap = walk.gap.or(walk.lost);
            walk.lost = None;
            walk.again = false;
            walk.take(&batch, at);
            return true;
        }
        if walk.lost.is_none() {
            if !std::mem::replace(&mut walk.again, true) {
                return false;
            }
            walk.again = false;
            walk.lost = Some(walk.next);
        }
        walk.next += 1;
        true
    }

    /// No header comes any more.
    fn end_of_chain(&mut self, walk: &mut Walk, extent: Extent) {
        let live = self.segments.of(walk.segment).quarters.min(walk.live);
        let unlisted = walk.seen < live && !walk.told;
        if let Some(gap) = walk.gap.or(walk.lost)
            && (extent.filled || unlisted)
        {
            self.lose_header(walk, gap);
        }
    }

    fn lose_header(&mut self, walk: &mut Walk, gap: u32) {
        walk.told = true;
        self.stats.crc_errors += 1;
        let at = Location::new(self.start_of(walk.segment).raw() + gap);
        self.note_damage(Finding::Header { at });
    }
}

impl crate::segments::Segment {
    /// Whether batches were written to it in this use.
    fn is_written(&self) -> bool {
        matches!(self.state, SegmentState::Open | SegmentState::Closed | SegmentState::Suspect)
    }
}
