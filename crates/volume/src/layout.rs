//! Where things lie on the backing.
//!
//! Log segments form a grid over the whole backing, so that each one covers whole erase units. Those that a
//! label or a root falls into hold nothing else.

use onefold_format::volume::{label_addresses, root_addresses};
use onefold_units::convert::{index64, low32, narrow, u64_from};
use onefold_units::{Location, LogSegmentId};

use crate::config::{Geometry, GeometryError, SEGMENTS_MIN};

/// Largest indirection unit in blocks.
const UNIT_MAX: u32 = 64;

/// Fewest blocks of a log segment.
const SEGMENT_BLOCKS_MIN: u32 = 64;

/// A geometry that works, with the places of labels and roots.
#[derive(Clone, Debug)]
pub struct Layout {
    geometry: Geometry,
    labels: Vec<u64>,
    roots: Vec<u64>,
    /// Log segments that hold labels and roots, ascending.
    fixed: Vec<u32>,
    segments: u32,
}

impl Layout {
    /// Checks a geometry.
    ///
    /// # Errors
    /// The inequality that does not hold.
    pub fn new(geometry: Geometry) -> Result<Self, GeometryError> {
        let Geometry { backing_blocks, segment_blocks, unit_blocks, logical_blocks } = geometry;
        if !unit_blocks.is_power_of_two() || unit_blocks > UNIT_MAX {
            return Err(GeometryError::Unit { found: unit_blocks, max: UNIT_MAX });
        }
        let min = SEGMENT_BLOCKS_MIN.max(unit_blocks * 4);
        if segment_blocks < min || !segment_blocks.is_multiple_of(unit_blocks) {
            return Err(GeometryError::Segment { found: segment_blocks, unit: unit_blocks, min });
        }
        let max = u64::from(Location::LOST.raw());
        if backing_blocks > max {
            return Err(GeometryError::BackingTooLarge { found: backing_blocks, max });
        }
        let segments = narrow(backing_blocks / u64::from(segment_blocks));
        let labels = label_addresses(backing_blocks);
        let roots = root_addresses(backing_blocks);
        let mut fixed: Vec<u32> = labels
            .iter()
            .chain(&roots)
            .map(|at| low32(at / u64::from(segment_blocks)))
            .filter(|segment| *segment < segments)
            .collect();
        fixed.sort_unstable();
        fixed.dedup();
        let usable = segments - narrow(u64_from(fixed.len()));
        if usable < SEGMENTS_MIN {
            return Err(GeometryError::BackingTooSmall {
                found: backing_blocks,
                segments: usable,
                segment_blocks,
                min: SEGMENTS_MIN,
            });
        }
        let layout = Self { geometry, labels, roots, fixed, segments };
        let usable = layout.logical_max();
        if logical_blocks == 0 || logical_blocks > usable {
            let space = layout.log_blocks();
            return Err(GeometryError::Logical { logical: logical_blocks, usable, space });
        }
        Ok(layout)
    }

    /// The geometry.
    #[must_use]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Blocks at which the copies of the label lie.
    #[must_use]
    pub fn labels(&self) -> &[u64] {
        &self.labels
    }

    /// Blocks of the slots of the root.
    #[must_use]
    pub fn roots(&self) -> &[u64] {
        &self.roots
    }

    /// Log segments of the grid, those with labels and roots included.
    #[must_use]
    pub const fn segments(&self) -> u32 {
        self.segments
    }

    /// Log segments that hold labels or roots.
    #[must_use]
    pub fn fixed(&self) -> &[u32] {
        &self.fixed
    }

    /// Log segments that hold data.
    #[must_use]
    pub fn usable_segments(&self) -> u32 {
        self.segments - narrow(u64_from(self.fixed.len()))
    }

    /// Blocks of all log segments that hold data.
    #[must_use]
    pub fn log_blocks(&self) -> u64 {
        u64::from(self.usable_segments()) * u64::from(self.geometry.segment_blocks)
    }

    /// Most blocks that can be exported: what is left of log space after the reserve of the cleaner, one block
    /// of 255 for headers, and 1 % for the map.
    #[must_use]
    pub fn logical_max(&self) -> u64 {
        let blocks = self.room();
        blocks - blocks / 64
    }

    /// Blocks that can be in use, data and map, beside the reserve of the cleaner.
    #[must_use]
    pub fn room(&self) -> u64 {
        let reserve = u64::from(Self::reserve() + 4);
        let segments = u64::from(self.usable_segments()).saturating_sub(reserve);
        segments * u64::from(self.geometry.segment_blocks)
    }

    /// Log segments that only the cleaner and the map may take (R of volume.md, section 5.7): one per stream and one.
    #[must_use]
    pub const fn reserve() -> u32 {
        5
    }

    /// Free log segments below which the cleaner has to keep pace (L).
    #[must_use]
    pub fn low(&self) -> u32 {
        Self::reserve() + (self.usable_segments() / 50).max(2)
    }

    /// Free log segments from which on nothing is cleaned (H).
    #[must_use]
    pub fn high(&self) -> u32 {
        Self::reserve() + (self.usable_segments() / 25).max(4)
    }

    /// Empty log segments that are worth a checkpoint.
    #[must_use]
    pub fn empties_per_checkpoint(&self) -> u32 {
        (self.usable_segments() / 100).max(1)
    }

    /// The log segment of a block.
    #[must_use]
    #[inline]
    pub fn segment_of(&self, at: Location) -> LogSegmentId {
        LogSegmentId::new(at.raw() / self.geometry.segment_blocks)
    }

    /// The first block of a log segment.
    #[must_use]
    pub fn start_of(&self, segment: LogSegmentId) -> Location {
        Location::new(segment.raw() * self.geometry.segment_blocks)
    }

    /// Map pages of the exported device.
    #[must_use]
    pub fn map_pages(&self) -> usize {
        index64(self.geometry.logical_blocks.div_ceil(crate::map::PAGE_ENTRIES_U64))
    }
}
