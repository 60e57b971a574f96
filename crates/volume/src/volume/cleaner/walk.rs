//! Reading the headers of a victim.

use onefold_format::volume::BatchHeader;
use onefold_units::{Location, LogSegmentId};

use crate::cleaner::walk::Found;
use crate::io::{Buffer, IoFailed, IoKind};
use crate::pending::Purpose;
use crate::volume::Volume;

impl Volume {
    /// Asks for the next header of a victim, if it is time.
    pub(super) fn read_header(&mut self, at: usize) {
        let walk = self.cleaner.walk_at(at);
        let Some(next) = walk.want_header() else { return };
        let segment = walk.segment();
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
        let start = first + walk.header_at();
        let batch = result
            .ok()
            .and_then(|()| BatchHeader::decode(buffer.bytes(), &self.label.uuid, start.into()).ok())
            .filter(|batch| batch.header.segment == segment && batch.header.epoch == epoch);
        walk.take_header(batch.as_ref(), start, blocks);
    }

    /// Looks at blocks of a victim once more, if it is still at hand.
    pub(crate) fn revisit(&mut self, found: Found) {
        let segment = self.layout.segment_of(found.at);
        if let Some(walk) = self.cleaner.walk_of(segment) {
            walk.revisit(found);
        }
    }
}
