//! The walk over a log segment (`crate::scrub::walk`).

use onefold_format::volume::BatchHeader;
use onefold_units::Location;
use onefold_units::convert::index;

use crate::config::BATCH_BLOCKS_MAX;
use crate::findings::Finding;
use crate::limits::BLOCK;
use crate::log::Stream;
use crate::scrub::mend::{Mend, What};
use crate::scrub::walk::{Extent, Is, Listed, Walk};
use crate::scrub::{Phase, Reading};
use crate::snapshots::{Held, MemberId};
use crate::volume::Volume;

/// Blocks of one read: 256 KiB.
const READ_BLOCKS: u32 = 64;

impl Volume {
    /// Goes to the next log segment with live blocks.
    pub(super) fn next_walk(&mut self, next: u32) -> bool {
        if self.frozen.is_none() && !self.is_counted() {
            // Until then it cannot be told which blocks are live.
            self.scrub.set_phase(Phase::Segments { next });
            return false;
        }
        let found = self
            .segments
            .iter()
            .skip(index(next))
            .find(|(_, segment)| segment.live() > 0 && segment.is_written())
            .map(|(id, segment)| (id, segment.epoch, segment.quarters));
        self.scrub.pass(found.map_or_else(|| self.layout.segments(), |(id, ..)| id.raw()));
        self.scrub.set_phase(match found {
            Some((id, epoch, live)) => Phase::Walk(Walk::new(id, epoch, live)),
            None => Phase::Mend,
        });
        true
    }

    /// Reads what comes next of a log segment. `false` if that was asked for, or has to wait.
    pub(super) fn step_walk(&mut self, mut walk: Walk) -> bool {
        let (segment, next) = (walk.segment(), walk.segment().raw() + 1);
        let Some(extent) = self.extent_of(&walk) else {
            self.scrub.set_phase(Phase::Segments { next });
            return true;
        };
        let Some(at) = self.next_place_of(&mut walk) else {
            self.scrub.set_phase(Phase::Walk(walk));
            return false;
        };
        let behind = walk.lost().is_some_and(|lost| at > lost + BATCH_BLOCKS_MAX);
        if at >= extent.end || behind {
            self.end_of_chain(&mut walk, extent);
            self.scrub.set_phase(Phase::Segments { next });
            return true;
        }
        let blocks = if walk.is_again() { 1 } else { READ_BLOCKS.min(extent.end - at) };
        self.scrub.set_phase(Phase::Walk(walk));
        let first = Location::new(self.start_of(segment).raw() + at);
        self.scrub_read(first, blocks, Some(segment));
        false
    }

    /// How far a log segment can be read; `None` if it is in another use by now, or being emptied.
    fn extent_of(&self, walk: &Walk) -> Option<Extent> {
        if walk.segment().raw() >= self.layout.segments() {
            return None;
        }
        let segment = self.segments.of(walk.segment());
        if segment.epoch != walk.epoch()
            || !segment.is_written()
            || self.cleaner.cleans(walk.segment())
        {
            return None;
        }
        let start = self.start_of(walk.segment()).raw();
        let active = self.log.active().iter().map(|id| self.log.batch(*id));
        let here = active.filter(|batch| batch.segment == walk.segment());
        let under_way = here.map(|batch| batch.start.raw() - start).min();
        let mut streams = Stream::ALL.iter().map(|stream| self.log.stream(*stream));
        let used = streams.find(|state| state.segment == Some(walk.segment())).map(|s| s.used);
        let end = under_way.into_iter().chain(used).min();
        Some(Extent { end: end.unwrap_or_else(|| self.segment_blocks()), filled: end.is_some() })
    }

    /// The next place to look at, in blocks from the start of the log segment. `None` if that has to wait for pages of the map or a checkpoint.
    fn next_place_of(&mut self, walk: &mut Walk) -> Option<u32> {
        let start = self.start_of(walk.segment()).raw();
        while let Some(block) = walk.listed() {
            let held = self.is_live(&block)?;
            if held == Held::Yes {
                return Some(self.layout.block_of(block.at).raw() - start);
            }
            if held == Held::Unread {
                walk.see(self.layout.quarters_of(block.at));
            }
            walk.pass();
        }
        Some(walk.header_at())
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
        let start = self.start_of(walk.segment()).raw();
        let first = read.at.raw() - start;
        while self.extent_of(&walk).is_some()
            && let Some(at) = self.next_place_of(&mut walk)
            && (first..first + read.blocks).contains(&at)
        {
            let from = index(at - first) * BLOCK;
            let block = bytes.map(|bytes| &bytes[from..from + BLOCK]);
            let go_on = match walk.listed() {
                Some(listed) => self.look_at(&mut walk, listed, block),
                None => self.look_for_header(&mut walk, Location::new(start + at), block),
            };
            if !go_on {
                break;
            }
        }
        self.scrub.set_phase(Phase::Walk(walk));
    }

    /// Compares a live block with its checksum. `false` if it is to be read once more.
    fn look_at(&mut self, walk: &mut Walk, listed: Listed, block: Option<&[u8]>) -> bool {
        let good = block.is_some_and(|block| self.layout.is_in(listed.at, block, listed.crc));
        if !good && walk.look_again() {
            return false;
        }
        walk.pass();
        walk.see(self.layout.quarters_of(listed.at));
        if let Some(gap) = walk.take_gap() {
            self.lose_header(walk, gap);
        }
        self.scrub.note_checked();
        if good {
            return true;
        }
        self.stats.crc_errors += 1;
        let at = listed.at;
        match listed.is {
            Is::Data { lba, .. } => {
                let holder =
                    self.members.entries_of(&self.map, lba).get(&at).map(|(member, _)| *member);
                self.note_damage(Finding::Data {
                    member: holder.unwrap_or(MemberId::DEVICE),
                    lba,
                    at,
                });
            }
            Is::Meta { object, kind } => {
                let place = self.note_damage(Finding::Meta { at, kind });
                self.scrub.push_mend(Mend::new(place, What::Meta { at, object, kind }));
            }
        }
        true
    }

    /// Takes up a header, if the block is one. `false` if it is to be read once more.
    fn look_for_header(&mut self, walk: &mut Walk, at: Location, block: Option<&[u8]>) -> bool {
        let batch = block
            .and_then(|block| BatchHeader::decode(block, &self.label.uuid, at.raw().into()).ok())
            .filter(|batch| {
                let fits = batch.blocks() <= self.segment_blocks() - walk.header_at();
                let header = &batch.header;
                fits && header.segment == walk.segment() && header.epoch == walk.epoch()
            });
        if let Some(batch) = batch {
            walk.take_header(&batch, at);
            return true;
        }
        walk.miss_header()
    }

    /// No header comes any more.
    fn end_of_chain(&mut self, walk: &mut Walk, extent: Extent) {
        let live = self.segments.of(walk.segment()).quarters;
        if let Some(gap) = walk.missing(live, extent.filled) {
            self.lose_header(walk, gap);
        }
    }

    fn lose_header(&mut self, walk: &mut Walk, gap: u32) {
        walk.tell();
        self.stats.crc_errors += 1;
        let at = Location::new(self.start_of(walk.segment()).raw() + gap);
        self.note_damage(Finding::Header { at });
    }
}
