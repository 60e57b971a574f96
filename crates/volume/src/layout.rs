//! Where things lie on the backing.
//!
//! Log segments form a grid over the whole backing, so that each one covers whole erase units. Those that a
//! label or a root falls into hold nothing else.
//!
//! On zones each log segment is a zone, which may take less than it has addresses. Zones 0 and 1 have a copy of the label each, at
//! their first block; zones 2 and 3 have the roots (`crate::checkpoint::roots`). Any of them may be conventional, that is, have no write pointer:
//! then they are used as space without zones is, also as log segments, in which every batch is appended all the same.

use onefold_format::volume::{
    Codec, DeviceRole, PACK_BACKING_MAX, QUARTERS, Slot, VolumeDevice, VolumeLabel, VolumeMode,
    VolumeName, label_addresses, root_addresses,
};
use onefold_units::convert::{low32, narrow, u64_from};
use onefold_units::{Location, LogSegmentId};

use crate::config::{Geometry, GeometryError, SEGMENTS_MIN};
use crate::limits::{CLEAN_RECORDS_MAX, PACKED_RECORDS_MAX, SEGMENTS_SPARE};
use crate::packs::is_in;
use crate::zones::{LABEL_ZONES, ROOT_ZONES, ZoneError};

/// Largest indirection unit in blocks.
const UNIT_MAX: u32 = 64;

/// Log segments that [`Layout::room`] keeps beside the reserve: those that streams fill, and one that the map has left and not yet
/// emptied. With one less, full volumes on few zones come to an end (`full_volumes_on_few_zones_live_on`).
const OPEN_SEGMENTS: u32 = 5;

/// Fewest zones that hold data: one beside those that [`Layout::room`] keeps. Zones are as large as they are, and there may be few:
/// 128 would refuse most emulated ones (differs from volume.md, section 5.1).
const ZONES_MIN: u32 = Layout::reserve() + OPEN_SEGMENTS + 1;

/// Most that a thin volume exports, as a multiple of what its log can hold: its map has to fit as well, however little of each
/// map page is used.
const THIN_MAX: u64 = 16;

/// Blocks of log that a map page takes at most: its image with checksums, three quarters of a block of records that no image has yet, and
/// as much again that is dead and not given back yet.
const LOG_PER_MAP_PAGE: u64 = 6;

/// Batches of the cleaner that are padded for each log segment that it empties: a checkpoint sends what is there, and another one may
/// be due meanwhile.
const SENT_EARLY: u32 = 2;

/// Fewest blocks of a log segment.
const SEGMENT_BLOCKS_MIN: u32 = 64;

/// Slots of the root in each of two conventional zones.
const CONVENTIONAL_SLOTS: u64 = 4;

/// A geometry that works, with the places of labels and roots.
#[derive(Clone, Debug)]
pub struct Layout {
    geometry: Geometry,
    labels: Vec<u64>,
    roots: Vec<u64>,
    /// Addresses from the start of a log segment to that of the next.
    stride: u32,
    /// Log segments that hold labels and roots, ascending.
    fixed: Vec<u32>,
    segments: u32,
    /// Log segments that are conventional zones, ascending.
    conventional: Vec<u32>,
}

impl Geometry {
    /// What a label of mode `log` describes.
    #[must_use]
    pub fn of(label: &VolumeLabel) -> Self {
        Self {
            backing_blocks: label.devices.iter().map(|device| device.blocks).sum(),
            segment_blocks: label.segment_blocks,
            zone_blocks: zone_blocks_of(label),
            unit_blocks: label.unit_blocks,
            logical_blocks: label.logical_blocks,
            compress: Codec::of_features(label.incompat),
        }
    }

    /// Blocks of the backing that can be written: of a zone no more than it takes.
    #[must_use]
    pub fn writable_blocks(&self) -> u64 {
        let zones = self.backing_blocks.checked_div(self.zone_blocks.into());
        zones.map_or(self.backing_blocks, |zones| zones * u64::from(self.segment_blocks))
    }

    /// The label of a volume of this geometry, which describes it; `ids` are those of the volume and of its backing.
    #[must_use]
    pub fn label(&self, mode: VolumeMode, ids: [[u8; 16]; 2]) -> VolumeLabel {
        let [uuid, backing] = ids;
        VolumeLabel {
            uuid,
            generation: 1,
            name: VolumeName::default(),
            mode,
            compat: 0,
            ro_compat: 0,
            incompat: self.compress.map_or(0, Codec::features),
            unit_blocks: self.unit_blocks,
            segment_blocks: self.segment_blocks,
            logical_blocks: self.logical_blocks,
            op_basis_points: 0,
            devices: vec![VolumeDevice {
                uuid: backing,
                role: DeviceRole::Data,
                blocks: self.backing_blocks,
                zone_blocks: self.zone_blocks.into(),
            }],
        }
    }
}

/// Blocks of a zone of the backing, 0 if it has none. One that no location reaches is refused with the size of its backing.
pub(crate) fn zone_blocks_of(label: &VolumeLabel) -> u32 {
    let zone = label.devices.iter().map(|device| device.zone_blocks).max().unwrap_or(0);
    u32::try_from(zone).unwrap_or(u32::MAX)
}

impl Layout {
    /// Checks a geometry.
    ///
    /// # Errors
    /// The inequality that does not hold.
    pub fn new(geometry: Geometry) -> Result<Self, GeometryError> {
        let Geometry { backing_blocks, segment_blocks, zone_blocks, unit_blocks, .. } = geometry;
        let Geometry { logical_blocks, compress, .. } = geometry;
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
        if compress.is_some() && backing_blocks > PACK_BACKING_MAX {
            let max = PACK_BACKING_MAX;
            return Err(GeometryError::PackedTooLarge { found: backing_blocks, max });
        }
        if zone_blocks > 0 && zone_blocks < segment_blocks {
            return Err(GeometryError::Zone { zone: zone_blocks, takes: segment_blocks });
        }
        let stride = if zone_blocks > 0 { zone_blocks } else { segment_blocks };
        let segments = narrow(backing_blocks / u64::from(stride));
        let (labels, roots) = if zone_blocks > 0 {
            (zone_starts(LABEL_ZONES, stride), zone_starts(ROOT_ZONES, stride))
        } else {
            (label_addresses(backing_blocks), root_addresses(backing_blocks))
        };
        let mut fixed: Vec<u32> = labels
            .iter()
            .chain(&roots)
            .map(|at| low32(at / u64::from(stride)))
            .filter(|segment| *segment < segments)
            .collect();
        fixed.sort_unstable();
        fixed.dedup();
        let usable = segments - narrow(u64_from(fixed.len()));
        let min = if zone_blocks > 0 { ZONES_MIN } else { SEGMENTS_MIN };
        if usable < min {
            let (found, segments) = (backing_blocks, usable);
            return Err(GeometryError::BackingTooSmall { found, segments, segment_blocks, min });
        }
        let conventional = Vec::new();
        let layout = Self { geometry, labels, roots, stride, fixed, segments, conventional };
        if logical_blocks == 0 || logical_blocks > layout.thin_max() {
            return Err(layout.too_large());
        }
        Ok(layout)
    }

    /// The layout of a volume that holds all that it exports.
    ///
    /// # Errors
    /// It is thin.
    pub fn not_thin(self) -> Result<Self, GeometryError> {
        if self.is_thin() { Err(self.too_large()) } else { Ok(self) }
    }

    fn too_large(&self) -> GeometryError {
        GeometryError::Logical {
            logical: self.geometry.logical_blocks,
            usable: self.logical_max(),
            space: self.log_blocks(),
            thin: self.thin_max(),
        }
    }

    /// Whether more is exported than the log can hold.
    #[must_use]
    pub fn is_thin(&self) -> bool {
        self.geometry.logical_blocks > self.logical_max()
    }

    /// Most blocks that a thin volume can export. None on so few log segments that its map takes half of what the cleaner and the
    /// streams leave.
    #[must_use]
    pub fn thin_max(&self) -> u64 {
        let most = self.logical_max() * THIN_MAX;
        let left = self.usable_segments().saturating_sub(self.low() + SEGMENTS_SPARE);
        if self.map_segments(most) * 2 <= left { most } else { self.logical_max() }
    }

    /// Log segments that the map of so many blocks takes at most.
    #[must_use]
    pub(crate) fn map_segments(&self, logical_blocks: u64) -> u32 {
        let blocks = logical_blocks.div_ceil(crate::map::page::PAGE_ENTRIES_U64) * LOG_PER_MAP_PAGE;
        narrow(blocks.div_ceil(u64::from(self.geometry.segment_blocks)))
    }

    /// The same on zones of which these are conventional, ascending.
    ///
    /// # Errors
    /// Only one of the zones with roots is.
    pub(crate) fn with_conventional(mut self, zones: Vec<u32>) -> Result<Self, ZoneError> {
        self.conventional = zones;
        let [first, second] = ROOT_ZONES.map(|zone| self.is_conventional(LogSegmentId::new(zone)));
        if first != second {
            return Err(ZoneError::RootZones);
        }
        if first {
            // Behind the block in which roots that are appended have a label.
            let slots = |start: u64| (1..=CONVENTIONAL_SLOTS).map(move |slot| start + slot);
            self.roots = zone_starts(ROOT_ZONES, self.stride).into_iter().flat_map(slots).collect();
        }
        Ok(self)
    }

    /// The same on the zones of another layout of the same backing, if that has any.
    pub(crate) fn like(self, other: &Self) -> Self {
        if !other.is_zoned() {
            return self;
        }
        Self { conventional: other.conventional.clone(), roots: other.roots.clone(), ..self }
    }

    fn is_conventional(&self, segment: LogSegmentId) -> bool {
        self.conventional.binary_search(&segment.raw()).is_ok()
    }

    /// Whether a log segment is a zone with a write pointer.
    pub(crate) fn is_sequential(&self, segment: LogSegmentId) -> bool {
        self.is_zoned() && !self.is_conventional(segment)
    }

    /// Whether roots have slots; else they are appended.
    pub(crate) fn has_root_slots(&self) -> bool {
        !self.is_sequential(LogSegmentId::new(ROOT_ZONES[0]))
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

    /// Where copies of the label can be found on zones of so many blocks: those in zones of their own, and those that zones with roots
    /// begin with.
    pub(crate) fn label_places(zone_blocks: u32) -> Vec<u64> {
        [zone_starts(LABEL_ZONES, zone_blocks), zone_starts(ROOT_ZONES, zone_blocks)].concat()
    }

    /// Blocks of a log segment.
    pub(crate) const fn segment_blocks(&self) -> u32 {
        self.geometry.segment_blocks
    }

    /// Whether the backing has zones.
    #[must_use]
    pub const fn is_zoned(&self) -> bool {
        self.geometry.zone_blocks > 0
    }

    /// Blocks of the slots of the root; of zones to which roots are appended, their starts.
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

    /// Most blocks that can be exported: as many as the cleaner packs into the log segments that are left after its reserve.
    #[must_use]
    pub fn logical_max(&self) -> u64 {
        self.room() / u64::from(self.geometry.segment_blocks) * u64::from(self.packed())
    }

    /// Most records of moved blocks that a header has room for, with places where there may be packs.
    pub(crate) const fn clean_records_max(&self) -> u32 {
        if self.geometry.compress.is_some() { PACKED_RECORDS_MAX } else { CLEAN_RECORDS_MAX }
    }

    /// Blocks of a log segment beside headers, if all its batches are full.
    pub(crate) fn full_blocks(&self) -> u32 {
        let segment = self.geometry.segment_blocks;
        segment - segment.div_ceil(self.clean_records_max() + 1)
    }

    /// Live blocks of a log segment from which the cleaner gains for sure: 1/64 is left for the map, or, in short log segments, what
    /// batches that are not full are padded with. Two of them come with each log segment that is emptied.
    #[must_use]
    pub fn packed(&self) -> u32 {
        let Geometry { segment_blocks, unit_blocks, .. } = self.geometry;
        let spare = (segment_blocks / 64).max(1 + SENT_EARLY * (unit_blocks - 1));
        // Units are a quarter of a log segment at most.
        self.full_blocks() - spare
    }

    /// Blocks that can be in use, data and map, beside the reserve of the cleaner.
    #[must_use]
    pub fn room(&self) -> u64 {
        let segments = u64::from(self.usable_segments().saturating_sub(Self::kept()));
        segments * u64::from(self.geometry.segment_blocks)
    }

    /// Log segments that hold nothing where the volume is full: the reserve, and what is open or about to be free.
    pub(crate) const fn kept() -> u32 {
        Self::reserve() + OPEN_SEGMENTS
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

    /// The block of a location, and what of it that means.
    #[must_use]
    #[inline]
    pub fn split(&self, at: Location) -> (Location, Slot) {
        if self.geometry.compress.is_none() {
            return (at, Slot::WHOLE);
        }
        let (block, slot) = Slot::split(at);
        (Location::new(block), slot)
    }

    /// The block of a location.
    #[must_use]
    #[inline]
    pub fn block_of(&self, at: Location) -> Location {
        self.split(at).0
    }

    /// Quarters of a block that a location counts for.
    pub(crate) fn quarters_of(&self, at: Location) -> u32 {
        self.split(at).1.quarters()
    }

    /// A count of live quarters as a root has it: of whole blocks where there are no packs.
    pub(crate) const fn count_on_disk(&self, quarters: u32) -> u32 {
        if self.geometry.compress.is_some() { quarters } else { quarters / QUARTERS }
    }

    /// Live quarters from the count of a root.
    pub(crate) const fn count_of_disk(&self, count: u32) -> u32 {
        if self.geometry.compress.is_some() { count } else { count.saturating_mul(QUARTERS) }
    }

    /// The log segment of a location.
    #[must_use]
    #[inline]
    pub fn segment_of(&self, at: Location) -> LogSegmentId {
        LogSegmentId::new(self.block_of(at).raw() / self.stride)
    }

    /// The first block of a log segment.
    #[must_use]
    pub fn start_of(&self, segment: LogSegmentId) -> Location {
        Location::new(segment.raw() * self.stride)
    }

    /// Addresses from the start of a log segment to that of the next.
    #[must_use]
    pub const fn stride(&self) -> u32 {
        self.stride
    }
}

fn zone_starts(zones: [u32; 2], zone_blocks: u32) -> Vec<u64> {
    zones.map(|zone| u64::from(zone) * u64::from(zone_blocks)).to_vec()
}

impl Layout {
    /// Whether the version with this checksum is where a location says, of whose block this is the content.
    pub(crate) fn is_in(&self, at: Location, block: &[u8], crc: u32) -> bool {
        is_in(block, self.split(at).1, crc)
    }
}

#[cfg(test)]
mod tests {
    use super::Geometry;

    /// Zones of 2 GiB that take 1077 MiB were told as nearly twice the size of their device.
    #[test]
    fn of_a_zone_counts_what_it_takes() {
        let plain = Geometry {
            backing_blocks: 1 << 20,
            segment_blocks: 1024,
            zone_blocks: 0,
            unit_blocks: 1,
            logical_blocks: 1 << 19,
            compress: None,
        };
        assert_eq!(plain.writable_blocks(), 1 << 20);
        let zoned = Geometry { zone_blocks: 2048, ..plain };
        assert_eq!(zoned.writable_blocks(), 512 * 1024);
    }
}
