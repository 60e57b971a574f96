//! What has to hold between the parts of a volume in memory.

use std::collections::BTreeSet;

use onefold_format::volume::SegmentState;
use onefold_units::convert::index;
use onefold_units::{Location, LogSegmentId};

use crate::findings::Miscount;
use crate::volume::Volume;

/// One log segment as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Which.
    pub segment: LogSegmentId,
    /// Where it is in its life.
    pub state: &'static str,
    /// Number of the stream that filled it.
    pub stream: u8,
    /// Blocks that something points at.
    pub live: u32,
    /// Number of this use.
    pub epoch: u64,
}

impl Volume {
    /// All log segments.
    pub fn segment_infos(&self) -> impl Iterator<Item = SegmentInfo> + '_ {
        self.segments.iter().map(|(id, segment)| SegmentInfo {
            segment: id,
            state: match segment.state {
                SegmentState::Free => "free",
                SegmentState::Open => "open",
                SegmentState::Closed => "closed",
                SegmentState::Prefree => "prefree",
                SegmentState::Suspect => "suspect",
                SegmentState::Fixed => "fixed",
            },
            stream: segment.stream.code(),
            live: segment.live(),
            epoch: segment.epoch,
        })
    }

    /// Counts live blocks anew, from the map and from what the last root points to. `None` while that cannot be done: a map
    /// page is not in memory, or a checkpoint is under way.
    #[must_use]
    pub fn recount(&self) -> Option<Vec<Miscount>> {
        if self.checkpoint.is_running() || !self.checkpoint.runs().all_counted() {
            return None;
        }
        let mut live = vec![0_u32; index(self.layout.segments())];
        let mut count = |at: Location| {
            if at.is_block() {
                live[self.layout.segment_of(at).index()] += self.layout.quarters_of(at);
            }
        };
        for page in 0..self.map.pages() {
            self.members.places_at(&self.map, page)?.into_iter().for_each(&mut count);
        }
        let slots = self.members.slots();
        let directories = slots.flat_map(|slot| self.members.of(slot).directory.iter());
        let directories: BTreeSet<Location> = directories.map(|place| place.location).collect();
        directories.into_iter().chain(self.checkpoint.places()).for_each(count);
        let wrong = self
            .segments
            .iter()
            .zip(&live)
            .filter(|((_, segment), found)| segment.quarters != **found);
        Some(
            wrong
                .map(|((id, segment), found)| Miscount {
                    segment: id,
                    found: *found,
                    counted: segment.quarters,
                })
                .collect(),
        )
    }
}
