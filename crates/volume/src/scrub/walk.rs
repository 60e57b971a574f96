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
    DecodedBatch, MetaKind, MetaRecord, RecordList, SegmentState, Slot, Version,
};
use onefold_units::{Lba, Location, LogSegmentId};

/// A block that a header lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed {
    pub(crate) at: Location,
    pub(crate) crc: u32,
    pub(crate) is: Is,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Is {
    Data { lba: Lba, birth: u32 },
    Meta { object: u64, kind: MetaKind },
}

/// A log segment that is looked at.
#[derive(Debug)]
pub(crate) struct Walk {
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
pub(crate) struct Extent {
    pub(crate) end: u32,
    /// Its batches go as far as that.
    pub(crate) filled: bool,
}

impl Walk {
    pub(crate) fn new(segment: LogSegmentId, epoch: u64, live: u32) -> Self {
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

    pub(crate) const fn segment(&self) -> LogSegmentId {
        self.segment
    }

    /// The use of the log segment that is looked at.
    pub(crate) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Where the next header should be, in blocks from the start of the log segment.
    pub(crate) const fn header_at(&self) -> u32 {
        self.next
    }

    /// Where a header should be and is none, while the next one is looked for.
    pub(crate) const fn lost(&self) -> Option<u32> {
        self.lost
    }

    /// Whether what comes next is read once more.
    pub(crate) const fn is_again(&self) -> bool {
        self.again
    }

    /// Whether what comes next is to be read once more, as it was not before.
    pub(crate) const fn look_again(&mut self) -> bool {
        !std::mem::replace(&mut self.again, true)
    }

    /// The next block that a header lists.
    pub(crate) fn listed(&self) -> Option<Listed> {
        self.blocks.front().copied()
    }

    /// The next block is done with.
    pub(crate) fn pass(&mut self) {
        self.blocks.pop_front();
        self.again = false;
    }

    /// So many quarters of blocks are, or may be, live.
    pub(crate) const fn see(&mut self, quarters: u32) {
        self.seen += quarters;
    }

    /// A live block lies behind the first place that is no header, if there was one since the last live block.
    pub(crate) const fn take_gap(&mut self) -> Option<u32> {
        self.gap.take()
    }

    /// A header is where it was looked for.
    pub(crate) fn take_header(&mut self, batch: &DecodedBatch, at: Location) {
        self.gap = self.gap.or(self.lost);
        self.lost = None;
        self.again = false;
        self.take(batch, at);
    }

    /// None is. `false` if that is to be read once more.
    pub(crate) const fn miss_header(&mut self) -> bool {
        if self.lost.is_none() {
            if self.look_again() {
                return false;
            }
            self.again = false;
            self.lost = Some(self.next);
        }
        self.next += 1;
        true
    }

    /// A header was found damaged.
    pub(crate) const fn tell(&mut self) {
        self.told = true;
    }

    /// No header comes any more, of a log segment that may be `filled` and of which so much is live. Where one is missing, if it is.
    pub(crate) fn missing(&self, live: u32, filled: bool) -> Option<u32> {
        let live = live.min(self.live);
        let unlisted = self.seen < live && !self.told;
        self.gap.or(self.lost).filter(|_| filled || unlisted)
    }
}

impl crate::segments::Segment {
    /// Whether batches were written to it in this use.
    pub(crate) fn is_written(&self) -> bool {
        matches!(self.state, SegmentState::Open | SegmentState::Closed | SegmentState::Suspect)
    }
}
