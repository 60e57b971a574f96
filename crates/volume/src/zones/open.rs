//! What opening a volume does about zones (`crate::zones`, invariants 4 to 6).

use onefold_units::convert::narrow;
use onefold_units::{Location, ZoneId, ZoneState};

use super::{ZoneError, ZoneReport};
use crate::backing::Backing;
use crate::config::{CleanMove, JournalStreams, Options, OptionsError};
use crate::error::MountError;
use crate::layout::Layout;
use crate::recovery::replay::Candidate;

/// Zones written in part at once: data, what is cleaned, the map, and roots. With one more, journals have one of their own; with the
/// next, data is kept apart by how often it is written; with a third, journal headers are apart from rings.
// Differs from zoned.md, section 5, which has one zone for what is cleaned and the map before journals go with data: the two are
// emptied in different ways.
const ACTIVE_MIN: u32 = 4;

/// A layout on the zones of its backing, and what that says of them, if it is what the volume was made on.
pub(crate) fn layout_on(
    backing: &mut dyn Backing,
    layout: Layout,
) -> Result<(Layout, Option<ZoneReport>), MountError> {
    let report = report_of(backing, &layout)?;
    Ok((laid_out(layout, report.as_ref())?, report))
}

/// A layout on zones, if there are any.
pub(crate) fn laid_out(layout: Layout, report: Option<&ZoneReport>) -> Result<Layout, ZoneError> {
    let Some(report) = report else { return Ok(layout) };
    let conventional = report.iter().filter(|(_, status)| status.conventional);
    layout.with_conventional(conventional.map(|(zone, _)| zone.raw()).collect())
}

/// What the backing says of its zones, if it is what the volume was made on.
pub(super) fn report_of(
    backing: &mut dyn Backing,
    layout: &Layout,
) -> Result<Option<ZoneReport>, MountError> {
    let report = backing.zones().map_err(|_| MountError::Backing("its zones were reported"))?;
    let expected = layout.geometry().zone_blocks;
    let found = report.as_ref().map_or(0, |report| report.zone_blocks);
    if found != expected {
        return Err(ZoneError::Size { found, expected }.into());
    }
    let Some(report) = report else { return Ok(None) };
    let (found, expected) = (report.capacity()?, layout.geometry().segment_blocks);
    if found != expected {
        return Err(ZoneError::Capacity { zone: ZoneId::new(0), found, expected }.into());
    }
    match report.limit() {
        Some(found) if found < ACTIVE_MIN => {
            Err(ZoneError::Limit { found, min: ACTIVE_MIN }.into())
        }
        _ => Ok(Some(report)),
    }
}

/// Says of a block that cannot be read that its zone is offline, if it is.
pub(crate) fn of_zone(backing: &mut dyn Backing, layout: &Layout, error: MountError) -> MountError {
    let MountError::Read { what, at } = error else { return error };
    let Ok(Some(report)) = backing.zones() else { return error };
    let zone = ZoneId::new(layout.segment_of(Location::new(narrow(at))).raw());
    match report.status(zone.raw()).state {
        ZoneState::Offline => ZoneError::Checkpoint { zone, what }.into(),
        _ => error,
    }
}

impl ZoneReport {
    /// What candidates for batches behind a root can hold. Behind a `clean` one there are none.
    pub(crate) fn bound(
        &self,
        candidates: Vec<Candidate>,
        clean: bool,
        give_up: bool,
    ) -> Result<Vec<Candidate>, ZoneError> {
        let bound = |candidate: Candidate| {
            let zone = ZoneId::new(candidate.segment.raw());
            let (status, expected) = (self.status(zone.raw()), candidate.from);
            let found = status.end();
            if status.state == ZoneState::Offline {
                let may_hold = !clean && !give_up;
                return if may_hold { Err(ZoneError::Offline { zone }) } else { Ok(None) };
            }
            if found < expected {
                let refused = ZoneError::WritePointer { zone, found, expected };
                return if give_up { Ok(None) } else { Err(refused) };
            }
            Ok(Some(Candidate { end: candidate.end.min(found), ..candidate }))
        };
        let bounds: Result<Vec<_>, _> = candidates.into_iter().map(bound).collect();
        Ok(bounds?.into_iter().flatten().collect())
    }

    /// How a volume is run on these zones.
    pub(crate) fn adapt(&self, options: Options) -> Result<Options, OptionsError> {
        if options.clean_move == CleanMove::Remap {
            return Err(OptionsError::RemapZones);
        }
        let mut left = self.limit().map_or(u32::MAX, |limit| limit.saturating_sub(ACTIVE_MIN));
        let mut take = |wanted: bool| {
            let taken = wanted && left > 0;
            left -= u32::from(taken);
            taken
        };
        let journal = take(options.journal != JournalStreams::Off);
        let hot_cold = take(options.hot_cold);
        let journal = match options.journal {
            _ if !journal => JournalStreams::Off,
            JournalStreams::Apart if !take(true) => JournalStreams::Together,
            wanted => wanted,
        };
        Ok(Options { hot_cold, journal, ..options })
    }
}
