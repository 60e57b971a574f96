//! Zones as the backing of a volume.

use onefold_units::ZoneId;
use onefold_units::convert::narrow;
use onefold_volume::{IoFailed, ZoneReport, ZoneStatus};

use crate::zoned::{Select, ZoneAction, ZoneInfo, ZonedDevice, ZonedError};

/// Blocks of all zones, those that cannot be written included.
pub(super) fn blocks(device: &ZonedDevice) -> u64 {
    let shape = device.shape();
    u64::from(shape.zones) * u64::from(shape.zone_blocks)
}

/// What a volume has to know of the zones.
pub(super) fn report(device: &ZonedDevice) -> Result<ZoneReport, IoFailed> {
    let shape = device.shape();
    let found =
        device.report(ZoneId::new(0), None).map_err(|error| failed("zone report", &error))?;
    Ok(ZoneReport {
        zone_blocks: shape.zone_blocks,
        max_open: shape.limits.max_open,
        max_active: shape.limits.max_active,
        zones: found.zones.iter().map(status_of).collect(),
    })
}

/// What a volume has to know of one zone.
pub(super) fn status(device: &ZonedDevice, zone: ZoneId) -> Result<ZoneStatus, IoFailed> {
    let info = device.zone(zone).map_err(|error| failed("zone report", &error))?;
    Ok(status_of(&info))
}

fn status_of(info: &ZoneInfo) -> ZoneStatus {
    if info.conventional {
        return ZoneStatus::conventional(info.state, info.capacity);
    }
    let written = info.write_pointer.map_or(0, |at| narrow(at - info.start));
    ZoneStatus { conventional: false, state: info.state, written, capacity: info.capacity }
}

pub(super) fn reset(device: &ZonedDevice, zone: ZoneId) -> Result<(), IoFailed> {
    judge("reset", device.manage(Select::One(zone), ZoneAction::Reset))
}

pub(super) fn finish(device: &ZonedDevice, zone: ZoneId) -> Result<(), IoFailed> {
    judge("finish", device.manage(Select::One(zone), ZoneAction::Finish))
}

pub(super) fn judge(action: &str, result: Result<(), ZonedError>) -> Result<(), IoFailed> {
    result.map_err(|error| failed(action, &error))
}

/// A volume goes on after most of these; what the device said is told here only.
fn failed(action: &str, error: &ZonedError) -> IoFailed {
    if let ZonedError::Held(held) = error {
        // The namespace told that once.
        return held.io_failed();
    }
    tracing::warn!(%error, action, "the zoned backing refused");
    IoFailed::Error
}
