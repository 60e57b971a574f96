//! Which log segment is cleaned next.

use onefold_units::LogSegmentId;
use onefold_units::convert::float;

use crate::config::Victim;
use crate::log::Stream;
use crate::segments::Segment;
use crate::volume::Volume;

/// A log segment of which at most one block in so many is live is taken whatever its age: it costs a quarter of a block for each that it
/// gives back. An old one that is two thirds full scores more as soon as it is a few times older, and costs two.
const CHEAP: u32 = 5;

/// Blocks of the log that a moved block takes at most, where batches are short.
const MOVED_TAKES: u64 = 2;

impl Volume {
    /// The log segment to clean next.
    pub(crate) fn choose_victim(&self) -> Option<LogSegmentId> {
        let least = self.least_gain();
        let greedy = least == 0 || self.options.victim == Victim::Greedy;
        let blocks = self.segment_blocks();
        let full = self.layout.full_blocks() - least;
        let now = self.segments.next_epoch();
        let room = self.room_of(Stream::Clean);
        let fulls = if self.segments.holds_some() { 3 } else { 1 };
        if room < fulls * u64::from(self.layout.full_blocks()) {
            return self.cheapest_victim(room);
        }
        let cleanable = || self.segments.iter().filter(|(_, segment)| segment.is_movable(self.now));
        if let Some((id, _)) = cleanable().find(|(_, segment)| segment.has_to_go()) {
            return Some(id);
        }
        let may_go = |(_, segment): &(LogSegmentId, &Segment)| {
            // One that is full gives nothing back, and one of a journal is empty soon.
            (segment.live() < full || segment.errors.doubtful) && !self.journal.protects(segment)
        };
        let emptiest =
            cleanable().filter(may_go).min_by_key(|(id, segment)| (segment.live(), *id))?;
        if greedy || emptiest.1.live() <= blocks / CHEAP {
            return Some(emptiest.0);
        }
        let score = |live: u32, epoch: u64| {
            let u = f64::from(live) / f64::from(blocks);
            (1.0 - u) * float(now - epoch) / (1.0 + u)
        };
        cleanable()
            .filter(may_go)
            .map(|(id, segment)| (score(segment.live(), segment.epoch), id))
            .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
            .map(|(_, id)| id)
    }

    /// The log segment to clean where the cleaner has little room, as many could not be emptied because reads fail: what it moves then takes
    /// room and gives none. So those with the least are tried alone, as far as all of these fit: whichever fails, the others can
    /// still be emptied.
    fn cheapest_victim(&self, room: u64) -> Option<LogSegmentId> {
        let data = |segment: &Segment| {
            segment.is_data() && segment.live() > 0 && !self.journal.protects(segment)
        };
        let mut all: Vec<_> = self.segments.iter().filter(|(_, segment)| data(segment)).collect();
        all.sort_unstable_by_key(|(id, segment)| (segment.live(), *id));
        let mut takes = 0;
        let fits = |(at, (_, segment)): &(usize, (LogSegmentId, &Segment))| {
            takes += MOVED_TAKES * u64::from(segment.live());
            *at == 0 || takes <= room
        };
        let mut fitting = all.into_iter().enumerate().take_while(fits);
        fitting.find(|(_, (_, segment))| segment.is_movable(self.now)).map(|(_, (id, _))| id)
    }

    /// Blocks that a victim has to give back at least. Less than a sixteenth of a log segment is worth its copies only where nothing else is
    /// left: the fewer are free, the less. Where many give back a little each, that takes many of them and the checkpoints between, so it
    /// cannot wait until the last is about to be taken.
    fn least_gain(&self) -> u32 {
        let urgent = self.reserve() + 1;
        let above = self.free_soon().saturating_sub(urgent);
        let between =
            self.low().min(self.members.kept_more() + self.layout.low()).saturating_sub(urgent);
        let most = self.segment_blocks() / 16;
        (most * above).checked_div(between).map_or(0, |least| least.min(most))
    }
}
