//! Log segments of the map are emptied by writing anew what is still live there.
//!
//! The sweep writes pages that changed. One that does not change keeps its image, and with it a log segment in which all
//! else is dead; after some time many log segments hold a page or two each. So where checkpoints take more of the log than
//! the map should, the next sweeps write the pages anew that lie in the emptiest of these.

use onefold_format::volume::{DIRECTORY_ENTRIES, SegmentState};
use onefold_units::convert::u64_from;
use onefold_units::{Location, LogSegmentId};

use crate::log::Stream;
use crate::map::Map;
use crate::volume::Volume;

impl Volume {
    /// Whether checkpoints take more of the log than the map of the device should, and most of that is dead.
    pub(crate) fn meta_is_sparse(&self) -> bool {
        self.segments.meta_segments() > self.map_takes(self.segments.meta_live())
    }

    /// Has the sweep empty log segments of the map, as many as their blocks fit into one.
    pub(super) fn compact_meta(&mut self) {
        if !self.meta_is_sparse() || !self.is_counted() {
            return;
        }
        let closed = self.segments.iter().filter(|(_, segment)| {
            segment.stream == Stream::Meta
                && segment.state == SegmentState::Closed
                && segment.live() > 0
        });
        let mut closed: Vec<_> = closed.map(|(id, segment)| (segment.live(), id)).collect();
        closed.sort_unstable();
        let mut room = self.segment_blocks();
        let emptiest: Vec<LogSegmentId> = closed
            .into_iter()
            .map_while(|(live, id)| {
                room = room.checked_sub(live)?;
                Some(id)
            })
            .collect();
        let goes = |id: LogSegmentId| emptiest.contains(&id);
        self.write_anew(goes);
    }

    /// A zone takes no more: checkpoints follow one another until the map has nothing there. The sweep comes round once for its images, and
    /// once for runs made meanwhile.
    pub(crate) fn move_meta_soon(&mut self) {
        self.checkpoint.move_for(2 * u64_from(self.map.pages()));
        self.want_checkpoint();
    }

    /// Whether it still has, and the sweep may change that.
    pub(super) fn is_moving_meta(&self) -> bool {
        self.checkpoint.moves() && self.segments.has_leaving_meta()
    }

    /// Marks the pages whose images, or whose block of the directory, lie in some log segments: the sweep writes them anew.
    pub(crate) fn write_anew(&mut self, goes: impl Fn(LogSegmentId) -> bool) {
        let lies = |at: Location| at.is_block() && goes(self.layout.segment_of(at));
        let mut keys = Vec::new();
        for slot in self.members.slots() {
            for key in self.map.keys_of(slot) {
                let (image, page) = (self.map.image(key), Map::of_key(key).1);
                let block = self.members.of(slot).directory[page / DIRECTORY_ENTRIES];
                if lies(image.page) || lies(image.sums) || lies(block.location) {
                    keys.push(key);
                }
            }
        }
        for key in keys {
            self.map.write_anew(key);
        }
    }
}
