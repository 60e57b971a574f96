//! The devices of a zoned volume: a zoned one, and unless its first zones are conventional a regular one, whose space is the cache.

use std::ops::Range;

use onefold_units::convert::{index64, u32_from};
use onefold_units::{PAGE_BYTES, ZoneId, ZoneState};
use onefold_volume::{ZoneReport as Zones, ZoneStatus};
use onefold_zoned::{
    Backing, Condition, DeviceZones, Geometry, Io, IoFailed, IoKind, Layout, LayoutError,
    ZoneReport,
};

use super::{DmzCache, DmzError};
use crate::contents::Contents;
use crate::volume::VolumeBacking;

/// The devices of a zoned volume.
#[derive(Clone)]
pub struct DmzDevices {
    /// A file or a block device; none beside conventional zones.
    pub cache: Option<DmzCache>,
    /// A device with zones.
    pub zoned: VolumeBacking,
}

impl DmzDevices {
    /// Asks the devices for their zones, and judges whether a volume can lie on them.
    pub(super) fn look(&self) -> Result<Looked, DmzError> {
        if self.cache.as_ref().is_some_and(DmzCache::is_zoned) {
            return Err(DmzError::ZonedCache);
        }
        let zones = self.zoned.zones().map_err(|_| DmzError::Report)?;
        let Zones { zone_blocks, max_active, zones, .. } = zones.ok_or(DmzError::NotZoned)?;
        let conventional = zones.iter().take_while(|zone| zone.conventional).count();
        if let Some(behind) = zones[conventional..].iter().position(|zone| zone.conventional) {
            return Err(DmzError::Order { zone: u32_from(conventional + behind) });
        }
        let (conventional, count) = (u32_from(conventional), u32_from(zones.len() - conventional));
        if let Some(at) = zones.iter().position(|zone| zone.capacity < zone_blocks) {
            let (capacity, size) = (zones[at].capacity, zone_blocks);
            let zone = u32_from(at);
            return Err(DmzError::Capacity { zone, capacity, size });
        }
        if let Some(limit) = max_active.filter(|limit| *limit < count) {
            return Err(DmzError::Active { limit, zones: count });
        }
        let mut devices = vec![DeviceZones { conventional, sequential: count }];
        match &self.cache {
            Some(_) if conventional > 0 => return Err(DmzError::CacheBeside { conventional }),
            Some(cache) => devices.insert(0, pieces(cache.blocks(zone_blocks), zone_blocks)?),
            None if conventional == 0 => return Err(DmzError::NoCache),
            None => {}
        }
        let geometry = Geometry::new(zone_blocks, devices)?;
        Ok(Looked { devices: self.clone(), geometry, zones })
    }

    /// The cache, if that is the device with this number.
    fn cache(&self, number: u32) -> Option<&DmzCache> {
        self.cache.as_ref().filter(|_| number == 0)
    }

    pub(super) fn read(&self, device: u32, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        match self.cache(device) {
            Some(cache) => cache.read(at, bytes),
            None => self.zoned.read(at, bytes),
        }
    }

    fn write(&self, device: u32, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        match self.cache(device) {
            Some(cache) => cache.write(at, bytes),
            None => self.zoned.write(at, bytes),
        }
    }

    fn flush(&self, device: u32) -> Result<(), IoFailed> {
        self.cache(device).map_or_else(|| self.zoned.flush(), DmzCache::flush)
    }

    fn reset(&self, device: u32, zone: ZoneId) -> Result<(), IoFailed> {
        match self.cache(device) {
            Some(_) => Err(IoFailed::Error),
            None => self.zoned.reset(zone),
        }
    }

    /// Carries out a request of a volume; `bytes` are what it reads or writes.
    pub(super) fn execute(
        &self,
        io: &Io,
        zone_blocks: u32,
        bytes: &mut [u8],
    ) -> Result<(), IoFailed> {
        match io.kind {
            IoKind::Read => self.read(io.device, io.at, bytes),
            IoKind::Write => self.write(io.device, io.at, bytes),
            IoKind::Flush => self.flush(io.device),
            IoKind::Reset => self.reset(io.device, zone_of(io.at, zone_blocks)),
        }
    }

    /// Where the metadata of a volume that is made will lie, in bytes.
    pub(super) fn sets(geometry: &Geometry) -> Result<Vec<Range<u64>>, LayoutError> {
        let layout = Layout::new(geometry, geometry.zones())?;
        let bytes = u64::from(layout.metadata_blocks) * PAGE_BYTES;
        let set = |set| layout.set_block(geometry, set) * PAGE_BYTES;
        Ok((0..2).map(set).map(|at| at..at + bytes).collect())
    }

    /// What one of the devices holds, and which.
    pub(super) fn contents(&self, geometry: &Geometry) -> Option<(&'static str, Contents)> {
        let (written, zone) = (Self::sets(geometry).unwrap_or_default(), geometry.zone_blocks());
        let cache = || self.cache.as_ref()?.contents(zone, &written).map(|what| ("cache", what));
        let zoned = || self.zoned.contents(&written).map(|what| ("zoned device", what));
        cache().or_else(zoned)
    }

    /// Ends all devices in good order.
    ///
    /// # Errors
    /// An image could not be closed cleanly; it recovers when it is opened again.
    pub fn close(&self) -> Result<(), DmzError> {
        let zoned = self.zoned.close();
        if let Some(cache) = &self.cache {
            cache.close()?;
        }
        Ok(zoned?)
    }
}

/// The zones of a regular device: pieces of it.
fn pieces(blocks: u64, zone_blocks: u32) -> Result<DeviceZones, DmzError> {
    if !blocks.is_multiple_of(zone_blocks.into()) {
        return Err(DmzError::cache_size(blocks, zone_blocks));
    }
    let pieces = u32::try_from(blocks / u64::from(zone_blocks));
    let conventional = pieces.unwrap_or(onefold_zoned::ZONES_MAX);
    Ok(DeviceZones { conventional, sequential: 0 })
}

fn zone_of(block: u64, zone_blocks: u32) -> ZoneId {
    ZoneId::new(onefold_units::convert::narrow(block / u64::from(zone_blocks)))
}

/// Devices whose zones are known, for making, opening and checking volumes.
pub(super) struct Looked {
    pub(super) devices: DmzDevices,
    pub(super) geometry: Geometry,
    zones: Vec<ZoneStatus>,
}

impl Backing for Looked {
    /// What is read here is metadata.
    fn read(&mut self, device: usize, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        match self.devices.cache(u32_from(device)) {
            Some(cache) => cache.read_unjudged(at, bytes),
            None => self.devices.zoned.read(at, bytes),
        }
    }

    fn write(&mut self, device: usize, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        self.devices.write(u32_from(device), at, bytes)
    }

    fn flush(&mut self, device: usize) -> Result<(), IoFailed> {
        self.devices.flush(u32_from(device))
    }

    fn reset(&mut self, device: usize, at: u64) -> Result<(), IoFailed> {
        let zone = zone_of(at, self.geometry.zone_blocks());
        self.devices.reset(u32_from(device), zone)
    }

    fn report(&mut self, _: usize, at: u64) -> Result<ZoneReport, IoFailed> {
        let zone = at / u64::from(self.geometry.zone_blocks());
        let status = self.zones.get(index64(zone)).ok_or(IoFailed::Error)?;
        let condition = match status.state {
            ZoneState::ReadOnly => Condition::ReadOnly,
            ZoneState::Offline => Condition::Offline,
            _ => Condition::Good,
        };
        let full = status.state == ZoneState::Full;
        let written = if full { status.capacity } else { status.written };
        Ok(ZoneReport { condition, written })
    }
}
