//! The zones of a set of devices.

use onefold_units::ZoneId;
use onefold_units::convert::{index, u32_from};
use thiserror::Error;

/// The zones of a device: conventional ones first, then sequential ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceZones {
    /// Zones that can be written anywhere. On a device without sequential zones they are pieces of a zone's size.
    pub conventional: u32,
    /// Zones that are written from start to end and reset as a whole.
    pub sequential: u32,
}

impl DeviceZones {
    /// All of them.
    const fn count(self) -> u32 {
        self.conventional + self.sequential
    }
}

/// What a zone is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ZoneKind {
    /// A piece of the regular device of a set-up with several devices.
    Cache,
    /// A conventional zone of a zoned device.
    Random,
    /// Written from start to end.
    Sequential,
}

/// Most zones of all devices together.
pub const ZONES_MAX: u32 = 1 << 24;

/// Most devices.
pub const DEVICES_MAX: usize = 16;

/// Smallest zone in blocks of 4 KiB.
pub const ZONE_BLOCKS_MIN: u32 = 8;

/// Largest zone in blocks of 4 KiB (8 GiB).
pub const ZONE_BLOCKS_MAX: u32 = 1 << 21;

/// The zones of all devices, numbered one device after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    zone_blocks: u32,
    devices: Vec<DeviceZones>,
    /// First zone of each device.
    first: Vec<u32>,
    zones: u32,
}

/// Why zones cannot carry a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// Linux shifts zone numbers, and validity bits fill blocks.
    #[error(
        "zones of {0} blocks of 4 KiB, expected a power of two from {ZONE_BLOCKS_MIN} to {ZONE_BLOCKS_MAX}: \
         choose another zone size"
    )]
    ZoneBlocks(u32),
    /// Too many or none.
    #[error("{0} devices, expected 1 to {DEVICES_MAX}")]
    Devices(usize),
    /// Too many zones.
    #[error("{0} zones, expected at most {ZONES_MAX}: choose larger zones")]
    Zones(u64),
    /// A device has none of what it is for.
    #[error(
        "device {device} has {conventional} conventional and {sequential} sequential zones, expected {expected}"
    )]
    Device {
        /// The device, from 0 on.
        device: usize,
        /// Its conventional zones.
        conventional: u32,
        /// Its sequential zones.
        sequential: u32,
        /// What it has to be.
        expected: &'static str,
    },
}

impl Geometry {
    /// One zoned device, or a regular device and zoned ones after it. `zone_blocks` is the size of every zone in blocks of
    /// 4 KiB; a zone has to take as many blocks as it is long, as dm-zoned wants it.
    ///
    /// # Errors
    /// [`GeometryError`].
    pub fn new(zone_blocks: u32, devices: Vec<DeviceZones>) -> Result<Self, GeometryError> {
        if !zone_blocks.is_power_of_two()
            || !(ZONE_BLOCKS_MIN..=ZONE_BLOCKS_MAX).contains(&zone_blocks)
        {
            return Err(GeometryError::ZoneBlocks(zone_blocks));
        }
        if devices.is_empty() || devices.len() > DEVICES_MAX {
            return Err(GeometryError::Devices(devices.len()));
        }
        let both =
            |zones: &DeviceZones| u64::from(zones.conventional) + u64::from(zones.sequential);
        let zones: u64 = devices.iter().map(both).sum();
        if zones > u64::from(ZONES_MAX) {
            return Err(GeometryError::Zones(zones));
        }
        for (device, zones) in devices.iter().enumerate() {
            let expected = match (device, devices.len()) {
                (0, 1) if zones.sequential == 0 => "sequential zones on the only device",
                (0, 2..) if zones.sequential > 0 => "a regular device before the zoned ones",
                (1.., _) if zones.sequential == 0 => {
                    "sequential zones on every device but the first"
                }
                _ => continue,
            };
            let DeviceZones { conventional, sequential } = *zones;
            return Err(GeometryError::Device { device, conventional, sequential, expected });
        }
        let mut first = Vec::with_capacity(devices.len());
        let mut next = 0;
        for device in &devices {
            first.push(next);
            next += device.count();
        }
        Ok(Self { zone_blocks, devices, first, zones: next })
    }

    /// Blocks of 4 KiB of a zone.
    #[must_use]
    pub const fn zone_blocks(&self) -> u32 {
        self.zone_blocks
    }

    /// Number of devices.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// The zones of a device.
    #[must_use]
    pub fn device(&self, device: usize) -> DeviceZones {
        self.devices[device]
    }

    /// Number of zones of all devices.
    #[must_use]
    pub const fn zones(&self) -> u32 {
        self.zones
    }

    /// Every zone, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = ZoneId> + use<> {
        (0..self.zones).map(ZoneId::new)
    }

    /// First zone of a device.
    #[must_use]
    pub fn first_zone(&self, device: usize) -> ZoneId {
        ZoneId::new(self.first[device])
    }

    /// The device of a zone.
    #[must_use]
    pub fn device_of(&self, zone: ZoneId) -> usize {
        self.first.partition_point(|first| *first <= zone.raw()) - 1
    }

    /// Where a zone begins on its device, in blocks of 4 KiB.
    #[must_use]
    pub fn start(&self, zone: ZoneId) -> u64 {
        let within = zone.raw() - self.first[self.device_of(zone)];
        u64::from(within) * u64::from(self.zone_blocks)
    }

    /// What a zone is.
    #[must_use]
    pub fn kind(&self, zone: ZoneId) -> ZoneKind {
        let device = self.device_of(zone);
        if zone.raw() - self.first[device] >= self.devices[device].conventional {
            ZoneKind::Sequential
        } else if device == 0 {
            self.random_kind()
        } else {
            ZoneKind::Random
        }
    }

    /// Whether the first device is a regular one: chunks are cached there.
    #[must_use]
    pub fn has_cache(&self) -> bool {
        self.devices.len() > 1
    }

    /// What zones that are written anywhere are: those of the first device.
    #[must_use]
    pub fn random_kind(&self) -> ZoneKind {
        if self.has_cache() { ZoneKind::Cache } else { ZoneKind::Random }
    }

    /// Devices that have a reclaim worker: the zoned ones.
    pub(crate) fn zoned_devices(&self) -> std::ops::Range<usize> {
        usize::from(self.has_cache())..self.devices.len()
    }

    /// Zone number of a device's zone; `None` if it has no such zone.
    #[must_use]
    pub fn zone_at(&self, device: usize, block: u64) -> Option<ZoneId> {
        let within = u32::try_from(block / u64::from(self.zone_blocks)).ok()?;
        let zones = self.devices.get(device)?.count();
        (within < zones).then(|| ZoneId::new(self.first[device] + within))
    }

    /// The conventional zones at the start of the first device: metadata lies there.
    pub(crate) fn front(&self) -> u32 {
        self.devices[0].conventional
    }

    /// A table with an entry per device.
    pub(crate) fn per_device<T: Default>(&self) -> Vec<T> {
        self.devices.iter().map(|_| T::default()).collect()
    }

    /// Index of a device as it is stored in requests.
    pub(crate) fn number(device: usize) -> u32 {
        u32_from(device)
    }

    /// The other way round.
    pub(crate) const fn at(device: u32) -> usize {
        index(device)
    }
}
