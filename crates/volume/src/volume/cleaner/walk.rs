//! Reading the headers of a victim.

use onefold_format::volume::BatchHeader;
use onefold_units::{Location, LogSegmentId};

use crate::cleaner::walk::Found;
use crate::io::{Buffer, IoFailed, IoKind};
use crate::limits::BATCH_MIN;
use crate::pending::Purpose;
use crate::volume::Volume;

/// While so many blocks wait to be looked up, the next header is not read yet.
const BLOCKS_AHEAD: usize = 64;

impl Volume {
    /// Asks for the next header of a victim, if it is time.
    pub(super) fn read_header(&mut self, at: usize) {
        let walk = &mut self.cleaner.walks[at];
        let Some(next) = walk.next else { return };
        if walk.header_wanted || walk.blocks.len() >= BLOCKS_AHEAD {
            return;
        }
        walk.header_wanted = true;
        let segment = walk.segment;
        let at = Location::new(self.layout.start_of(segment).raw() + next);
        self.stats.clean_read += 1;
        self.ask(IoKind::Read, Purpose::CleanHeader(segment), at, 1);
    }

    /// The next header of a victim was read. What is none ends the chain.
    pub(crate) fn clean_header_over(
        &mut self,
        segment: LogSegmentId,
        buffer: &Buffer,
        result: Result<(), IoFailed>,
    ) {
        let blocks = self.segment_blocks();
        let first = self.layout.start_of(segment).raw();
        let epoch = self.segments.of(segment).epoch;
        let Some(walk) = self.cleaner.walk_of(segment) else { return };
        walk.header_wanted = false;
        let next = walk.next.unwrap_or(0);
        let start = first + next;
        let batch = result
            .ok()
            .and_then(|()| BatchHeader::decode(buffer.bytes(), &self.uuid, start.into()).ok())
            .filter(|batch| batch.header.segment == segment && batch.header.epoch == epoch);
        let Some(batch) = batch else {
            // Nothing may ever have been there, or a header that rotted.
            (walk.next, walk.whole) = (None, false);
            return;
        };
        walk.extend(&batch, start);
        let behind = next + batch.blocks();
        walk.next = (behind + BATCH_MIN <= blocks).then_some(behind);
    }

    /// Looks at blocks of a victim once more, if it is still at hand.
    pub(crate) fn revisit(&mut self, found: Found) {
        let segment = self.layout.segment_of(found.at);
        if let Some(walk) = self.cleaner.walk_of(segment) {
            walk.blocks.push_back(found);
        }
    }
}
