//! Which log segment is cleaned next.

use onefold_units::LogSegmentId;
use onefold_units::convert::float;

use crate::config::Victim;
use crate::log::Stream;
use crate::segments::Segment;
use crate::volume::Volume;

impl Volume {
    /// The log segment to clean next.
    pub(crate) fn choose_victim(&self) -> Option<LogSegmentId> {
        let least = self.least_gain();
        let greedy = least == 0 || self.options.victim == Victim::Greedy;
        let blocks = self.segment_blocks();
        let full = self.layout.full_blocks() - least;
        let now = self.segments.next_epoch();
        // What could not be emptied gives much for little when it can be read again. The room for that is kept: what is moved takes up
        // to twice its room, where batches are short.
        let scarce = self.segments.holds_some()
            && self.room_of(Stream::Clean) < 3 * u64::from(self.layout.full_blocks());
        let movable = |segment: &Segment| {
            segment.is_movable(self.now) && (!scarce || segment.errors.holds > 0)
        };
        let cleanable = || self.segments.iter().filter(|(_, segment)| movable(segment));
        if let Some((id, _)) = cleanable().find(|(_, segment)| segment.has_to_go()) {
            return Some(id);
        }
        let candidates = cleanable().filter(|(_, segment)| {
            // One that is full gives nothing back, and one of a journal is empty soon.
            segment.live < full && !self.journal.protects(segment)
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

    /// Blocks that a victim has to give back at least. Less than a sixteenth of a log segment is worth its copies only where nothing else is
    /// left: the fewer are free, the less. Where many give back a little each, that takes many of them and the checkpoints between, so it
    /// cannot wait until the last is about to be taken.
    fn least_gain(&self) -> u32 {
        let urgent = self.reserve() + 1;
        let above = self.free_soon().saturating_sub(urgent);
        let between =
            self.low().min(self.family.kept_more + self.layout.low()).saturating_sub(urgent);
        let most = self.segment_blocks() / 16;
        (most * above).checked_div(between).map_or(0, |least| least.min(most))
    }
}
