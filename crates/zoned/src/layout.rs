//! Where the metadata lies and what is left for chunks (zoned.md, section 3).

use onefold_format::{DMZ_BLOCK_BITS, DMZ_BLOCK_ENTRIES, DMZ_BLOCK_SUMS, DmzRoot};
use onefold_units::ZoneId;
use thiserror::Error;

use crate::geometry::{Geometry, ZoneKind};

/// Sequential zones that only reclaim may take, where there are enough conventional ones.
pub const RESERVED: u32 = 16;

/// Fewest conventional zones: two metadata sets, and one that data can be written to.
pub const CONVENTIONAL_MIN: u32 = 3;

/// Sizes of the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Blocks of a metadata set: root, map, validity.
    pub metadata_blocks: u32,
    /// Zones of a metadata set.
    pub metadata_zones: u32,
    /// Blocks of the map.
    pub map_blocks: u32,
    /// Blocks of validity bits.
    pub bitmap_blocks: u32,
    /// Blocks of validity bits of a zone.
    pub zone_bitmap_blocks: u32,
    /// Sequential zones that only reclaim may take.
    pub reserved: u32,
    /// Chunks of the exported device.
    pub chunks: u32,
}

/// Why zones have no room for a volume, or a root record is not of these zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// Too few conventional zones.
    #[error(
        "{found} conventional zones, expected at least {needed}, for two metadata sets and data: use a device with more"
    )]
    Conventional {
        /// How many there are.
        found: u32,
        /// How many it needs.
        needed: u32,
    },
    /// Too few zones for chunks.
    #[error(
        "{usable} usable zones, of which {taken} are taken by metadata and reserved: none is left for data"
    )]
    Zones {
        /// Zones that are not offline or read only.
        usable: u32,
        /// Those of both metadata sets and reserved ones.
        taken: u32,
    },
    /// A root record with other sizes than these devices can have.
    #[error("the root record says {found} {what}, expected {expected}: it is of other devices")]
    Root {
        /// Of what.
        what: &'static str,
        /// What it says.
        found: u32,
        /// What it may say at most, or has to say.
        expected: u32,
    },
}

impl Layout {
    /// The layout that `dmzadm --format` chooses, where `usable` zones are neither offline nor read only.
    ///
    /// # Errors
    /// [`LayoutError`] if there are too few zones.
    pub fn new(geometry: &Geometry, usable: u32) -> Result<Self, LayoutError> {
        let conventional = geometry.front();
        if conventional < CONVENTIONAL_MIN {
            let needed = CONVENTIONAL_MIN;
            return Err(LayoutError::Conventional { found: conventional, needed });
        }
        let reserved = if RESERVED > conventional { conventional - 1 } else { RESERVED };
        let zone_bitmap_blocks = (geometry.zone_blocks() / DMZ_BLOCK_BITS).max(1);
        let bitmap_blocks = geometry.zones() * zone_bitmap_blocks;
        // The map of a first estimate that leaves out the zones of the map itself decides how many zones the chunks lose.
        let bitmap_zones = bitmap_blocks.div_ceil(geometry.zone_blocks());
        let estimate = usable.saturating_sub(bitmap_zones + reserved).div_ceil(DMZ_BLOCK_ENTRIES);
        let metadata_zones = (1 + estimate + bitmap_blocks).div_ceil(geometry.zone_blocks());
        if 2 * metadata_zones >= conventional {
            let needed = 2 * metadata_zones + 1;
            return Err(LayoutError::Conventional { found: conventional, needed });
        }
        let taken = 2 * metadata_zones + reserved;
        if taken >= usable {
            return Err(LayoutError::Zones { usable, taken });
        }
        let chunks = usable - taken;
        let map_blocks = chunks.div_ceil(DMZ_BLOCK_ENTRIES);
        let metadata_blocks = 1 + map_blocks + bitmap_blocks;
        let metadata_zones = metadata_blocks.div_ceil(geometry.zone_blocks());
        Ok(Self {
            metadata_blocks,
            metadata_zones,
            map_blocks,
            bitmap_blocks,
            zone_bitmap_blocks,
            reserved,
            chunks,
        })
    }

    /// The layout that a root record tells.
    ///
    /// # Errors
    /// [`LayoutError`] if these zones cannot have it.
    pub fn of_root(geometry: &Geometry, root: &DmzRoot) -> Result<Self, LayoutError> {
        // Zones may have gone out of service since: the kernel target refuses to start then, which helps nobody.
        let usable = geometry.zones();
        let zone_bitmap_blocks = (geometry.zone_blocks() / DMZ_BLOCK_BITS).max(1);
        let bitmap_blocks = geometry.zones() * zone_bitmap_blocks;
        let exactly = |what, found, expected| {
            if found == expected {
                Ok(())
            } else {
                Err(LayoutError::Root { what, found, expected })
            }
        };
        let at_most = |what, found: u32, expected: u32| {
            if (1..=expected).contains(&found) {
                Ok(())
            } else {
                Err(LayoutError::Root { what, found, expected })
            }
        };
        exactly("blocks of validity bits", root.bitmap_blocks, bitmap_blocks)?;
        at_most("chunks", root.chunks, usable)?;
        exactly("blocks of the map", root.map_blocks, root.chunks.div_ceil(DMZ_BLOCK_ENTRIES))?;
        let metadata_blocks = 1 + root.map_blocks + bitmap_blocks;
        exactly("metadata blocks", root.metadata_blocks, metadata_blocks)?;
        let metadata_zones = metadata_blocks.div_ceil(geometry.zone_blocks());
        at_most("metadata blocks", 2 * metadata_zones, geometry.front().saturating_sub(1))?;
        let most = metadata_zones * geometry.zone_blocks() - metadata_blocks;
        if root.journal_blocks > most {
            let (what, found) = ("blocks of a journal block map", root.journal_blocks);
            return Err(LayoutError::Root { what, found, expected: most });
        }
        let left = usable.saturating_sub(2 * metadata_zones);
        at_most("reserved zones", root.reserved, left.saturating_sub(1))?;
        at_most("chunks", root.chunks, left.saturating_sub(root.reserved))?;
        Ok(Self {
            metadata_blocks,
            metadata_zones,
            map_blocks: root.map_blocks,
            bitmap_blocks,
            zone_bitmap_blocks,
            reserved: root.reserved,
            chunks: root.chunks,
        })
    }

    /// Whether a zone holds metadata: both sets, and the copies of the root record on the devices after the first.
    #[must_use]
    pub fn is_metadata(&self, geometry: &Geometry, zone: ZoneId) -> bool {
        let device = geometry.device_of(zone);
        if device == 0 {
            zone.raw() < 2 * self.metadata_zones
        } else {
            zone == geometry.first_zone(device)
        }
    }

    /// First block of a metadata set, on the first device.
    #[must_use]
    pub fn set_block(&self, geometry: &Geometry, set: u32) -> u64 {
        u64::from(set * self.metadata_zones) * u64::from(geometry.zone_blocks())
    }

    /// Blocks of a metadata set that a journal block map may have. Where it takes those of the checksums there are none.
    #[must_use]
    pub fn journal_room(&self, geometry: &Geometry) -> u32 {
        self.metadata_zones * geometry.zone_blocks() - self.metadata_blocks
    }

    /// First block of the table of checksums, from the start of a metadata set: it takes the last blocks of its zones, as many as
    /// it needs for all of their blocks.
    #[must_use]
    pub fn sums_at(&self, geometry: &Geometry) -> u32 {
        let blocks = self.metadata_zones * geometry.zone_blocks();
        blocks - blocks.div_ceil(DMZ_BLOCK_SUMS)
    }

    /// Most sequential zones of the journal. There are as many zones for data as chunks and reserved zones, less the one that
    /// holds a copy of the root record on each device after the first. As long as one of these is not the journal's, a volume
    /// whose zones are all in use has a buffer zone, which reclaim can merge.
    #[must_use]
    pub fn journal_zones_max(&self, geometry: &Geometry) -> u32 {
        self.reserved.saturating_sub(Geometry::number(geometry.devices()))
    }

    /// Blocks of the exported device.
    #[must_use]
    pub fn blocks(&self, geometry: &Geometry) -> u64 {
        u64::from(self.chunks) * u64::from(geometry.zone_blocks())
    }

    /// Zones for data of one kind.
    #[must_use]
    pub fn data_zones(&self, geometry: &Geometry, kind: ZoneKind) -> u32 {
        let of_kind =
            |zone: &ZoneId| geometry.kind(*zone) == kind && !self.is_metadata(geometry, *zone);
        onefold_units::convert::u32_from(geometry.ids().filter(of_kind).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::DeviceZones;

    fn choi(zone_mib: u32) -> (Geometry, Layout) {
        let zones = |mib: u32| mib / zone_mib;
        let devices = vec![
            DeviceZones { conventional: zones(1024), sequential: 0 },
            DeviceZones { conventional: 0, sequential: zones(4096) },
        ];
        let geometry = Geometry::new(zone_mib * 256, devices).unwrap();
        let layout = Layout::new(&geometry, geometry.zones()).unwrap();
        (geometry, layout)
    }

    /// The worked examples of zoned.md, section 3; the first was measured on the kernel target.
    #[test]
    fn worked_examples() {
        let (geometry, layout) = choi(64);
        assert_eq!((geometry.zones(), layout.metadata_blocks, layout.chunks), (80, 82, 62));
        let cache = layout.data_zones(&geometry, ZoneKind::Cache);
        let sequential = layout.data_zones(&geometry, ZoneKind::Sequential);
        assert_eq!((cache, sequential - layout.reserved, layout.reserved), (14, 47, 16));
        assert_eq!(layout.blocks(&geometry), 3968 * 256, "3.875 GiB");

        let (geometry, layout) = choi(128);
        assert_eq!((geometry.zones(), layout.chunks), (40, 31));
        let cache = layout.data_zones(&geometry, ZoneKind::Cache);
        let sequential = layout.data_zones(&geometry, ZoneKind::Sequential);
        assert_eq!((cache, sequential - layout.reserved, layout.reserved), (6, 24, 7));
    }

    #[test]
    fn a_zone_of_more_than_32768_blocks_has_more_than_one_bitmap_block() {
        let devices = vec![DeviceZones { conventional: 8, sequential: 56 }];
        let geometry = Geometry::new(65_536, devices).unwrap();
        let layout = Layout::new(&geometry, 64).unwrap();
        assert_eq!((layout.zone_bitmap_blocks, layout.bitmap_blocks), (2, 128));
        assert_eq!(layout.reserved, 7);
    }

    #[test]
    fn too_few_zones_are_refused() {
        let zones = |conventional, sequential| {
            let devices = vec![DeviceZones { conventional, sequential }];
            let geometry = Geometry::new(16_384, devices).unwrap();
            Layout::new(&geometry, geometry.zones())
        };
        assert_eq!(zones(2, 60), Err(LayoutError::Conventional { found: 2, needed: 3 }));
        assert_eq!(zones(3, 1), Err(LayoutError::Zones { usable: 4, taken: 4 }));
        assert_eq!(zones(3, 2).map(|layout| layout.chunks), Ok(1));
    }

    #[test]
    fn a_root_record_of_other_devices_is_refused() {
        let (geometry, layout) = choi(64);
        let mut root = crate::meta::Identity::default().root(
            &geometry,
            &layout,
            0,
            crate::meta::Stored::default(),
        );
        assert_eq!(Layout::of_root(&geometry, &root), Ok(layout));
        root.chunks = 63;
        let error = LayoutError::Root { what: "chunks", found: 63, expected: 62 };
        assert_eq!(Layout::of_root(&geometry, &root), Err(error));
        root.chunks = 0;
        assert!(Layout::of_root(&geometry, &root).is_err());
        root.chunks = 62;
        root.bitmap_blocks = 79;
        assert!(Layout::of_root(&geometry, &root).is_err());
        root.bitmap_blocks = 80;
        root.reserved = 0;
        assert!(Layout::of_root(&geometry, &root).is_err());
    }
}
