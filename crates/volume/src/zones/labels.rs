//! Making a volume on zones, and the copies of its label.

use onefold_format::volume::VolumeLabel;
use onefold_units::ZoneId;
use onefold_units::convert::narrow;

use super::open::report_of;
use super::{ZoneError, ZoneReport};
use crate::backing::Backing;
use crate::error::MountError;
use crate::io::IoFailed;
use crate::layout::{Layout, zone_blocks_of};
use crate::zones::{LABEL_ZONES, ROOT_ZONES};

/// Empties all zones with a write pointer, and looks whether they are.
pub(crate) fn format_zones(
    backing: &mut dyn Backing,
    layout: &Layout,
    report: &ZoneReport,
) -> Result<(), MountError> {
    let failed = |_: IoFailed| MountError::Backing("its zones were reset");
    for zone in LABEL_ZONES.into_iter().chain(ROOT_ZONES) {
        if !report.status(zone).is_writable() {
            return Err(ZoneError::Fixed { zone: ZoneId::new(zone) }.into());
        }
    }
    for (zone, status) in report.iter() {
        if status.has_to_be_reset() {
            backing.reset(zone).map_err(failed)?;
        }
    }
    backing.flush().map_err(failed)?;
    let Some(report) = report_of(backing, layout)? else { return Ok(()) };
    match report.iter().find(|(_, status)| status.has_to_be_reset()) {
        Some((zone, _)) => Err(ZoneError::NotEmpty { zone }.into()),
        None => Ok(()),
    }
}

/// Writes the copy of the label at block `at`, one of [`Layout::labels`] or of the labels of another mode, and makes it durable. On zones that is the first block of
/// a zone that has nothing else, which is finished if it has a write pointer, so that it takes none of those that may be active.
///
/// # Errors
/// The backing failed, or the zone cannot be written.
pub fn write_label(
    backing: &mut dyn Backing,
    label: &VolumeLabel,
    at: u64,
) -> Result<(), IoFailed> {
    let block = label.encode(at);
    let zone = at.checked_div(zone_blocks_of(label).into()).map(|zone| ZoneId::new(narrow(zone)));
    let report = if zone.is_some() { backing.zones()? } else { None };
    let status = zone.zip(report).map(|(zone, report)| report.status(zone.raw()));
    if status.is_some_and(|status| !status.is_writable()) {
        return Err(IoFailed::Error);
    }
    let zone = zone.filter(|_| status.is_some_and(|status| !status.conventional));
    if let Some(zone) = zone {
        backing.reset(zone)?;
    }
    backing.write(at, &block[..])?;
    if let Some(zone) = zone {
        backing.finish(zone)?;
    }
    backing.flush()
}
