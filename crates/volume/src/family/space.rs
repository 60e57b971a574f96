//! How much the members may hold together.
//!
//! The device alone always fits if it is not thin: that is what its size was chosen for. With other members an overwrite can
//! take space and free none, and a thin device can hold less than it exports. So their writes end where the cleaner would begin
//! to move almost full log segments (volume.md, section 5.7), and what their maps may take is left.

use onefold_units::Lba;
use onefold_units::convert::{index, u32_from, u64_from};

use crate::family::Spot;
use crate::host::Range;
use crate::io::Refusal;
use crate::log::CLEAN_RECORDS_MAX;
use crate::volume::Volume;

/// Log segments that stay free beside those that the cleaner keeps free: those that streams fill, and two.
pub(crate) const SEGMENTS_BESIDE: u32 = 6;

/// How full a volume is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Blocks of data that some member has.
    pub data_blocks: u64,
    /// Most of them. With snapshots or clones, or of a thin device, they are fewer than one that is alone and not thin may have, which is
    /// at least what it exports.
    pub capacity_blocks: u64,
}

impl Volume {
    /// How full the volume is.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let capacity_blocks =
            if self.can_fill() { self.limit() } else { self.layout.logical_max() };
        Usage { data_blocks: self.segments.data_total(), capacity_blocks }
    }

    fn limit(&self) -> u64 {
        let map = self.layout.map_segments().max(self.meta_segments());
        let kept = self.low() + SEGMENTS_BESIDE + map;
        let segments = self.layout.usable_segments().saturating_sub(kept);
        u64::from(segments) * u64::from(self.sure_room())
    }

    /// Live blocks of a log segment that can be relied on. Any batch has a header and may be padded, also those of the host. A checkpoint
    /// sends batches that are not full, one of the host and one of the cleaner; where little of the map fits into memory, one comes
    /// after each few blocks.
    fn sure_room(&self) -> u32 {
        let (blocks, unit) = (self.segment_blocks(), self.layout.geometry().unit_blocks);
        let batches = blocks.div_ceil(self.options.batch_blocks.min(CLEAN_RECORDS_MAX + 1));
        let between = (self.options.map_pages / 2).clamp(8, index(blocks) * 64);
        let partial = 2 * blocks / u32_from(between);
        (blocks - blocks / 64).saturating_sub(unit * batches + partial).max(blocks / 8)
    }

    /// Whether writes can come to the end of the space.
    #[must_use]
    pub fn can_fill(&self) -> bool {
        !self.family.is_alone() || self.layout.is_thin()
    }

    /// Whether a range may be written, all of whose pages are ready.
    pub(crate) fn need_space(&self, slot: usize, range: Range) -> Result<(), Refusal> {
        let left = self.family.capacity.saturating_sub(self.segments.data_total());
        if !self.can_fill() || range.blocks <= left || self.takes(slot, range) <= left {
            return Ok(());
        }
        // Wait for what is being freed, or still counts though recovery replaced it.
        if self.is_freeing() || !self.is_counted() {
            Err(Refusal::Busy)
        } else {
            Err(Refusal::NoSpace)
        }
    }

    /// Most blocks of data that writing a range adds. Where others may share what is there, it is not freed.
    fn takes(&self, slot: usize, range: Range) -> u64 {
        if !self.family.is_alone() {
            return range.blocks;
        }
        let is_new = |lba: &u64| {
            let lba = self.in_map(Spot { slot, lba: Lba::new(*lba) });
            !self.map.peek(lba).at.is_block()
        };
        let from = range.lba.raw();
        u64_from((from..from + range.blocks).filter(is_new).count())
    }

    /// Log segments of the map come and go with checkpoints.
    pub(crate) fn measure_capacity(&mut self) {
        self.family.capacity = self.limit();
    }
}
