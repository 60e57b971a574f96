//! What defines a zoned namespace.

use onefold_nand::{FaultSpec, Geometry, GeometrySpec, TimingSpec};
use onefold_units::convert::narrow;

use crate::{BuildError, SsdConfig};

/// Bytes of a block.
pub(crate) const BLOCK: u32 = 4096;

/// How many zones may be open and active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneLimits {
    /// Open zones at most; `None`: any number.
    pub max_open: Option<u32>,
    /// Active zones at most; `None`: any number.
    pub max_active: Option<u32>,
}

/// A zoned namespace as configured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZnsConfig {
    /// The flash array, blocks of conventional zones included. Its units are 4 KiB: nothing is mapped below a zone.
    pub geometry: Geometry,
    /// Latencies and rates.
    pub timing: TimingSpec,
    /// Addresses of a zone in blocks (ZSZE): a power of two.
    pub zone_blocks: u32,
    /// Blocks of a zone that can be written (ZCAP).
    pub capacity_blocks: u32,
    /// Sequential zones.
    pub zones: u32,
    /// The device behind the conventional zones, which come first: as many as its logical units fill. Its geometry is the blocks
    /// that it has of every plane; the sequential zones have those before them.
    pub conventional: Option<SsdConfig>,
    /// Dies that a zone stripes over.
    pub zone_dies: u32,
    /// Open and active zones at most (MOR, MAR).
    pub limits: ZoneLimits,
    /// Blocks of an append at most (ZASL); `None`: as many as of a write.
    pub append_blocks: Option<u32>,
    /// A read may go on in the next zone.
    pub read_across: bool,
    /// Bytes of the write cache; 0: a write completes when its flash pages are programmed.
    pub cache_bytes: u64,
    /// A power cut loses what the cache holds and was not flushed.
    pub cache_volatile: bool,
    /// Injected faults of the sequential zones. A bad superblock costs its set.
    pub faults: FaultSpec,
}

/// Why a zoned namespace cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ZnsConfigError {
    /// The unit of the geometry is not a block.
    #[error("the mapping unit is {found} B, expected 4096 B on a zoned namespace")]
    Unit {
        /// What was found.
        found: u32,
    },
    /// Linux takes powers of two only.
    #[error("a zone is {found} blocks of 4 KiB, expected a power of two")]
    ZoneSize {
        /// What was found.
        found: u32,
    },
    /// The capacity does not fit the zone, or the flash page.
    #[error(
        "the capacity of a zone is {found} blocks of 4 KiB, expected whole flash pages of {page} blocks, and at most the \
         {zone} blocks of a zone"
    )]
    Capacity {
        /// What was found.
        found: u32,
        /// Blocks of a flash page.
        page: u32,
        /// Blocks of a zone.
        zone: u32,
    },
    /// The dies cannot be divided among zones.
    #[error(
        "a zone stripes over {found} dies, expected a divisor of {dies}, and all of them where a superblock spans the device"
    )]
    Dies {
        /// What was found.
        found: u32,
        /// Dies of the array.
        dies: u32,
    },
    /// Nothing would be left for blocks that fail.
    #[error(
        "{zones} zones and no spare one need {} sets of {superblocks} superblocks, expected at most the {sets} of the flash \
         array: lower capacity.logical, or raise geometry.blocks",
        u64::from(*zones) + 1
    )]
    Space {
        /// Zones.
        zones: u32,
        /// Superblocks of a set.
        superblocks: u32,
        /// Sets of the array.
        sets: u32,
    },
    /// The device of the conventional zones is not one of whole zones, or not on these dies.
    #[error(
        "the conventional zones have {units} blocks of 4 KiB on {blocks} flash blocks of each plane, expected whole zones of \
         {zone} blocks, on the dies of the sequential zones and less than their {all} flash blocks"
    )]
    Conventional {
        /// Blocks of 4 KiB.
        units: u64,
        /// Flash blocks per plane.
        blocks: u32,
        /// Blocks of 4 KiB of a zone.
        zone: u32,
        /// Flash blocks per plane of the array.
        all: u32,
    },
    /// The device of the conventional zones cannot be built.
    #[error("the conventional zones cannot work: {0}")]
    Mapped(#[from] BuildError),
    /// A limit that leaves no zone to write to, or contradicts the other.
    #[error("{what} is {found}, expected 1 to {max}")]
    Limit {
        /// Which one.
        what: &'static str,
        /// What was found.
        found: u32,
        /// Largest accepted value.
        max: u32,
    },
}

impl ZnsConfig {
    /// Conventional zones.
    #[must_use]
    pub fn conventional_zones(&self) -> u32 {
        let units = self.conventional.map_or(0, |device| device.ftl.logical_units);
        narrow(units / u64::from(self.zone_blocks.max(1)))
    }

    /// Zones of both kinds.
    #[must_use]
    pub fn all_zones(&self) -> u32 {
        self.conventional_zones() + self.zones
    }

    /// Blocks that can be written: conventional zones take as many as they have addresses.
    #[must_use]
    pub fn writable_blocks(&self) -> u64 {
        u64::from(self.conventional_zones()) * u64::from(self.zone_blocks)
            + u64::from(self.zones) * u64::from(self.capacity_blocks)
    }

    /// The flash blocks of the sequential zones.
    pub(crate) fn sequential_geometry(&self) -> Result<Geometry, ZnsConfigError> {
        let Some(device) = &self.conventional else { return Ok(self.geometry) };
        let (all, part) = (*self.geometry.spec(), *device.geometry.spec());
        let units = device.ftl.logical_units;
        let same_dies = GeometrySpec { blocks: all.blocks, ..part } == all;
        let whole = units.is_multiple_of(self.zone_blocks.max(1).into());
        let rest = all.blocks.checked_sub(part.blocks).filter(|_| same_dies && whole);
        let geometry = rest.and_then(|blocks| Geometry::new(GeometrySpec { blocks, ..all }).ok());
        geometry.ok_or(ZnsConfigError::Conventional {
            units,
            blocks: part.blocks,
            zone: self.zone_blocks,
            all: all.blocks,
        })
    }
}
