//! Making a volume on zones, and the copies of its label.

use onefold_format::volume::VolumeLabel;
use onefold_units::convert::narrow;
use onefold_units::{ZoneId, ZoneState};

use super::{ZoneError, report_of};
use crate::backing::Backing;
use crate::error::MountError;
use crate::io::IoFailed;
use crate::layout::{LABEL_ZONES, Layout, ROOT_ZONES};
use crate::mount::zone_blocks_of;

/// Empties all zones, and looks whether they are.
pub(crate) fn format_zones<B: Backing>(backing: &mut B, layout: &Layout) -> Result<(), MountError> {
    let failed = |_: IoFailed| MountError::Backing("its zones were reset");
    let Some(report) = report_of(backing, layout)? else { return Ok(()) };
    for zone in LABEL_ZONES.into_iter().chain(ROOT_ZONES) {
        if !report.status(zone).is_writable() {
            return Err(ZoneError::Fixed { zone: ZoneId::new(zone) }.into());
        }
    }
    for (zone, status) in report.iter() {
        if status.is_writable() && status.state != ZoneState::Empty {
            backing.reset(zone).map_err(failed)?;
        }
    }
    backing.flush().map_err(failed)?;
    let Some(report) = report_of(backing, layout)? else { return Ok(()) };
    let full = |status: super::ZoneStatus| status.is_writable() && status.state != ZoneState::Empty;
    match report.iter().find(|(_, status)| full(*status)) {
        Some((zone, _)) => Err(ZoneError::NotEmpty { zone }.into()),
        None => Ok(()),
    }
}

/// Writes the copy of the label at block `at`, one of [`Layout::labels`] or of the labels of another mode, and makes it durable. On zones that is the first block of
/// a zone that has nothing else, which is finished, so that it takes none of those that may be active.
///
/// # Errors
/// The backing failed.
pub fn write_label<B: Backing>(
    backing: &mut B,
    label: &VolumeLabel,
    at: u64,
) -> Result<(), IoFailed> {
    let block = label.encode(at);
    let zone = at.checked_div(zone_blocks_of(label).into()).map(|zone| ZoneId::new(narrow(zone)));
    if let Some(zone) = zone {
        backing.reset(zone)?;
    }
    backing.write(at, &block[..])?;
    if let Some(zone) = zone {
        backing.finish(zone)?;
    }
    backing.flush()
}
