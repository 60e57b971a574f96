//! Which log segment is cleaned next.

use onefold_units::LogSegmentId;
use onefold_units::convert::float;

use crate::config::Victim;
use crate::volume::Volume;

impl Volume {
    /// The log segment to clean next.
    pub(crate) fn choose_victim(&self) -> Option<LogSegmentId> {
        let urgent = self.free_soon() <= self.reserve() + 1;
        let greedy = urgent || self.options.victim == Victim::Greedy;
        let blocks = self.segment_blocks();
        // What gives back less than a sixteenth is only worth its copies where nothing else is left.
        let full = self.layout.full_blocks() - if urgent { 0 } else { blocks / 16 };
        let now = self.segments.next_epoch();
        let cleanable = || self.segments.iter().filter(|(_, segment)| segment.is_movable());
        if let Some((id, _)) = cleanable().find(|(_, segment)| segment.leaving) {
            return Some(id);
        }
        let candidates = cleanable().filter(|(_, segment)| {
            // A full log segment gives nothing back, and one of a journal is empty soon.
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
}
