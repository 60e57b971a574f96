//! The label of a volume to be made.

use onefold_format::volume::{VolumeLabel, VolumeMode};
use onefold_units::PAGE_BYTES;
use onefold_volume::{Geometry, Layout, MountError};

use super::backing::VolumeBacking;
use super::error::VolumeError;
use super::modes;
use super::spec::{VolumeSpec, random_uuid, share, spare_basis_points};

/// Log segments that a default size leaves at least: the fewest that a volume may have, and some for labels and roots.
const SEGMENTS_WANTED: u64 = 160;

/// Smallest log segment: 256 KiB.
const SEGMENT_BLOCKS_MIN: u32 = 64;

/// Largest log segment: 4 GiB.
const SEGMENT_BLOCKS_MAX: u32 = 1 << 20;

impl VolumeSpec {
    /// The label of a volume on a backing of so many blocks, without zones.
    ///
    /// # Errors
    /// What does not fit.
    pub fn label(&self, blocks: u64) -> Result<VolumeLabel, VolumeError> {
        if self.mode != VolumeMode::Log {
            if self.compress.is_some() {
                let what = "does not compress: leave out --compress or use mode log";
                return Err(VolumeError::Mode { mode: self.mode.name(), what });
            }
            return modes::label(self, blocks);
        }
        let unit = self.unit_blocks()?;
        let segment = match self.segment_bytes {
            Some(bytes) => Self::blocks_of("log segments", bytes, ", 4 GiB at most")?,
            None => self.default_segment(blocks, unit),
        };
        self.log_label(blocks, segment, 0)
    }

    /// The label of a volume on a backing. On one with zones, they are its log segments.
    ///
    /// # Errors
    /// What does not fit.
    pub fn label_on(&self, backing: &VolumeBacking) -> Result<VolumeLabel, VolumeError> {
        let report = backing.zones().map_err(|_| MountError::Backing("its zones were reported"))?;
        let Some(report) = report else {
            let is_log = self.mode == VolumeMode::Log;
            let unit_bytes = self.unit_bytes.or_else(|| is_log.then(|| backing.unit_bytes()));
            let superblock_bytes = self.superblock_bytes.or_else(|| backing.superblock_bytes());
            return Self { unit_bytes, superblock_bytes, ..self.clone() }.label(backing.blocks());
        };
        let refused = |what| VolumeError::Mode { mode: self.mode.name(), what };
        if self.mode != VolumeMode::Log {
            return Err(refused("overwrites in place, which zones do not take: use mode log"));
        }
        if self.segment_bytes.is_some() {
            return Err(refused("on zones has zones for log segments: leave out --segment"));
        }
        let capacity = report.capacity().map_err(MountError::Zones)?;
        self.log_label(backing.blocks(), capacity, report.zone_blocks)
    }

    /// Blocks of a log segment where nobody says how many: what the size of the backing suggests, as whole superblocks. Those of
    /// which too few would fit are left out of account: a part of a superblock gains nothing over smaller log segments.
    fn default_segment(&self, blocks: u64, unit: u32) -> u32 {
        let by_size = default_segment_blocks(blocks);
        let superblock = self.superblock_bytes.unwrap_or(0) / PAGE_BYTES;
        let whole = u64::from(by_size).checked_div(superblock).unwrap_or(0).max(1);
        let of_superblocks = u32::try_from(superblock.saturating_mul(whole)).ok();
        let fits = |segment: &u32| {
            (SEGMENT_BLOCKS_MIN..=SEGMENT_BLOCKS_MAX).contains(segment)
                && blocks / u64::from(*segment) >= SEGMENTS_WANTED
        };
        of_superblocks.filter(fits).unwrap_or(by_size).next_multiple_of(unit.max(1))
    }

    fn unit_blocks(&self) -> Result<u32, VolumeError> {
        let unit = self.unit_bytes.unwrap_or(PAGE_BYTES);
        Self::blocks_of("an indirection unit", unit, ", 256 KiB at most")
    }

    fn log_label(&self, blocks: u64, segment: u32, zone: u32) -> Result<VolumeLabel, VolumeError> {
        let geometry = Geometry {
            backing_blocks: blocks,
            segment_blocks: segment,
            zone_blocks: zone,
            unit_blocks: self.unit_blocks()?,
            logical_blocks: 1,
            compress: self.compress,
        };
        let layout = Layout::new(geometry).map_err(MountError::Geometry)?;
        let logical_blocks = match self.bytes {
            Some(bytes) => Self::whole_blocks(bytes)?,
            None => share(layout.log_blocks(), 1.0 - self.op).min(layout.logical_max()),
        };
        let geometry = Geometry { logical_blocks, ..geometry };
        Layout::new(geometry)
            .and_then(|layout| if self.thin { Ok(layout) } else { layout.not_thin() })
            .map_err(MountError::Geometry)?;
        Ok(VolumeLabel {
            name: self.name.clone(),
            op_basis_points: spare_basis_points(layout.log_blocks(), logical_blocks),
            ..geometry.label(VolumeMode::Log, [random_uuid()?, random_uuid()?])
        })
    }
}

/// clamp(next power of two(capacity / 512), 4 MiB, 1 GiB), and at least 128 of them where there is
/// room for log segments of 256 KiB (volume.md, section 5.1).
fn default_segment_blocks(blocks: u64) -> u32 {
    let wanted = (blocks / 512).next_power_of_two().clamp(1024, 262_144);
    let most = (blocks / SEGMENTS_WANTED).max(SEGMENT_BLOCKS_MIN.into());
    let most = if most.is_power_of_two() { most } else { most.next_power_of_two() / 2 };
    u32::try_from(wanted.min(most)).unwrap_or(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MiB of the log segments of a volume on so many GiB, on a drive with superblocks of so many bytes.
    fn segment(gib: u64, superblock_bytes: Option<u64>) -> u32 {
        let spec = VolumeSpec { superblock_bytes, ..VolumeSpec::default() };
        let label = spec.label(gib << 18).unwrap();
        label.segment_blocks / 256
    }

    #[test]
    fn log_segments_are_whole_superblocks_where_enough_of_them_fit() {
        const MIB: u64 = 1 << 20;
        assert_eq!([segment(4, None), segment(300, None)], [8, 1024]);
        let cases = [
            (32, 64, 64),
            (32, 48, 48),
            (300, 64, 1024),
            (300, 48, 1008),
            // Of whole ones there would be too few.
            (4, 64, 8),
            (4, 27, 8),
            (4, 25, 25),
            (4, 8192, 8),
        ];
        for (gib, superblock, expected) in cases {
            let found = segment(gib, Some(superblock * MIB));
            assert_eq!(found, expected, "{gib} GiB, {superblock} MiB");
        }
        // What no log segment can be, and what says nothing.
        for superblock in [0, 512, 4096, u64::MAX] {
            assert_eq!(segment(4, Some(superblock)), 8, "{superblock}");
        }
    }
}
