//! What can go wrong with a zoned volume.

use onefold_format::CacheHeaderError;
use onefold_units::PAGE_BYTES;
use onefold_zoned::{GeometryError, MountError};
use thiserror::Error;

use crate::contents::Contents;
use crate::volume::VolumeError;

/// Why a zoned volume of policy `dmz` cannot be made, opened or closed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DmzError {
    /// The device that should be zoned is not.
    #[error(
        "policy dmz needs a zoned device, and this one has no zones: use an image of `onefold ssd create --preset zns-proto`"
    )]
    NotZoned,
    /// There is nowhere to write at random.
    #[error(
        "policy dmz needs space for random writes, and the device has no conventional zones: name a regular file or block device \
         with --cache"
    )]
    NoCache,
    /// Random writes would have two places to go to.
    #[error(
        "the device has {conventional} conventional zones, which take the place of a cache: leave --cache out"
    )]
    CacheBeside {
        /// How many.
        conventional: u32,
    },
    /// Zones in another order than dm-zoned knows.
    #[error(
        "zone {zone} is conventional and comes behind sequential ones; policy dmz takes devices whose conventional zones come first"
    )]
    Order {
        /// The zone.
        zone: u32,
    },
    /// The device that should be regular has zones.
    #[error("the cache of policy dmz is a regular file or block device, and this one has zones")]
    ZonedCache,
    /// Zones that cannot be written to their end.
    #[error(
        "{capacity} of each {size} blocks of zone {zone} can be written; policy dmz needs zones that can be written to their \
         end, as dm-zoned does"
    )]
    Capacity {
        /// The zone.
        zone: u32,
        /// Blocks of 4 KiB that can be written.
        capacity: u32,
        /// Its addresses.
        size: u32,
    },
    /// Too few zones may be active.
    #[error(
        "the device allows {limit} active zones, and policy dmz may leave each of its {zones} zones partly written: use a device \
         without a limit (namespace.max_active = 0) or with one of at least {zones}"
    )]
    Active {
        /// What the device allows.
        limit: u32,
        /// Its zones.
        zones: u32,
    },
    /// The cache is cut into pieces of a zone's size.
    #[error(
        "the cache has {bytes} B, expected a multiple of the zone size, {zone_bytes} B: choose --cache-size so"
    )]
    CacheSize {
        /// What it has.
        bytes: u64,
        /// Bytes of a zone.
        zone_bytes: u64,
    },
    /// Served volumes keep what they promise.
    #[error("`kernel_flush` loses what was flushed; it is for simulations only")]
    KernelFlush,
    /// The zones cannot carry a volume.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The volume cannot be made or opened.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// A device holds something.
    #[error("the {device} holds {what}; nothing was changed. Give --force to lose that")]
    Holds {
        /// Which device.
        device: &'static str,
        /// What it looks like.
        what: Contents,
    },
    /// A device could not be opened, asked or closed.
    #[error(transparent)]
    Device(#[from] VolumeError),
    /// The checksums of the cache cannot be used.
    #[error(transparent)]
    Header(#[from] CacheHeaderError),
    /// The checksums of the cache cannot be read or written.
    #[error("the checksums of the cache cannot be read or written")]
    Sums,
    /// What the zones are cannot be asked.
    #[error("the zoned device does not tell about its zones")]
    Report,
    /// A device failed while the volume was served.
    #[error(
        "a device of the volume failed; what was flushed before that is safe. Check the volume before it is used again"
    )]
    Failed,
}

impl DmzError {
    pub(super) fn cache_size(blocks: u64, zone_blocks: u32) -> Self {
        let zone_bytes = u64::from(zone_blocks) * PAGE_BYTES;
        Self::CacheSize { bytes: blocks * PAGE_BYTES, zone_bytes }
    }
}
