//! How much the members may hold together.
//!
//! The device alone always fits: that is what its size was chosen for. With other members an overwrite can take space and
//! free none, so writes end where the cleaner would begin to move almost full log segments (volume.md, section 5.7).

use onefold_format::volume::SegmentState;
use onefold_units::convert::u32_from;

use crate::io::Refusal;
use crate::log::{CLEAN_RECORDS_MAX, Stream};
use crate::volume::Volume;

/// Log segments that stay free beside those that the cleaner keeps free: those that streams fill, and two.
const SEGMENTS_BESIDE: u32 = 6;

/// How full a volume is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Blocks of data that some member has.
    pub data_blocks: u64,
    /// Most of them, for a volume that has snapshots or clones.
    pub capacity_blocks: u64,
}

impl Volume {
    /// How full the volume is.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let meta = self.segments.iter().filter(|(_, segment)| {
            segment.stream == Stream::Meta
                && (segment.live > 0 || segment.state == SegmentState::Open)
        });
        let kept = self.low() + SEGMENTS_BESIDE + u32_from(meta.count());
        let segments = self.layout.usable_segments().saturating_sub(kept);
        Usage {
            data_blocks: self.segments.data_total(),
            capacity_blocks: u64::from(segments) * u64::from(self.segment_room()),
        }
    }

    /// Live blocks of a log segment that is full: headers take what it has beside, and a little stays for padding.
    pub(crate) fn segment_room(&self) -> u32 {
        let blocks = self.segment_blocks();
        blocks - blocks.div_ceil(self.options.batch_blocks.min(CLEAN_RECORDS_MAX + 1)) - blocks / 64
    }

    /// Whether so many more blocks of data may be written.
    pub(crate) fn need_space(&self, blocks: u64) -> Result<(), Refusal> {
        if self.family.is_alone() || self.segments.data_total() + blocks <= self.family.capacity {
            return Ok(());
        }
        // Wait for what is being freed.
        if self.is_freeing() { Err(Refusal::Busy) } else { Err(Refusal::NoSpace) }
    }

    /// Log segments of the map come and go with checkpoints.
    pub(crate) fn measure_capacity(&mut self) {
        self.family.capacity = self.usage().capacity_blocks;
    }
}
