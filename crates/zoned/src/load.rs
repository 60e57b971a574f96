//! The zones as map and validity have them, judged before they are believed.

use onefold_units::ZoneId;

use crate::backing::ZoneReport;
use crate::error::{Lost, MountError};
use crate::geometry::{Geometry, ZoneKind};
use crate::layout::Layout;
use crate::meta::Metadata;
use crate::mount::Recovery;
use crate::zones::{Condition, Role, Zones};

/// Gives every zone its role: mapped ones in the order of chunks, then free ones in the order of zones, reserved ones first.
pub(crate) fn load(
    geometry: &Geometry,
    layout: &Layout,
    meta: &mut Metadata,
    reports: &[ZoneReport],
    recovery: &mut Recovery,
) -> Result<Zones, MountError> {
    let mut zones = Zones::new(geometry);
    for (id, report) in geometry.ids().zip(reports) {
        let zone = zones.get_mut(id);
        zone.condition = report.condition;
        zone.wp = report.written;
    }
    for chunk in 0..layout.chunks {
        load_chunk(geometry, layout, meta, &mut zones, chunk)?;
    }
    for id in geometry.ids() {
        if layout.is_metadata(geometry, id) {
            continue;
        }
        if zones.get(id).is_mapped() {
            if let Some(lost) = lost_in(meta, &zones, id) {
                recovery.lost_blocks += u64::from(lost.blocks);
                recovery.first_lost = recovery.first_lost.or(Some(lost));
                meta.set_valid(id, lost.written..geometry.zone_blocks(), false);
            }
            zones.get_mut(id).weight = meta.weight(id);
        } else if zones.get(id).condition == Condition::Good {
            // What no chunk has is not valid, whatever the bits say.
            meta.set_valid(id, 0..geometry.zone_blocks(), false);
            let is_sequential = zones.get(id).is_sequential();
            let reserved = is_sequential && zones.reserved() < layout.reserved;
            let zone = zones.get_mut(id);
            zone.reserved = reserved;
            zone.wp = 0;
            zones.put_free(id);
        }
    }
    zones.count();
    Ok(zones)
}

fn load_chunk(
    geometry: &Geometry,
    layout: &Layout,
    meta: &Metadata,
    zones: &mut Zones,
    chunk: u32,
) -> Result<(), MountError> {
    let entry = meta.entry(chunk);
    let judge = |zones: &Zones, zone: ZoneId| {
        let bad = |what| Err(MountError::Map { chunk, zone, what });
        if zone.raw() >= geometry.zones() {
            bad("which does not exist")
        } else if layout.is_metadata(geometry, zone) {
            bad("which holds metadata")
        } else if zones.get(zone).is_mapped() {
            bad("which another chunk has")
        } else {
            Ok(())
        }
    };
    let Some(data) = entry.data else {
        let what = "but to no data zone";
        return entry.buffer.map_or(Ok(()), |zone| Err(MountError::Map { chunk, zone, what }));
    };
    judge(zones, data)?;
    zones.map(data, Role::Data, chunk, None);
    let Some(buffer) = entry.buffer else { return Ok(()) };
    judge(zones, buffer)?;
    let bad = |zone, what| Err(MountError::Map { chunk, zone, what });
    if geometry.kind(buffer) == ZoneKind::Sequential {
        return bad(buffer, "a buffer zone that is sequential");
    }
    if geometry.kind(data) != ZoneKind::Sequential {
        return bad(data, "a conventional zone, but has a buffer zone");
    }
    zones.map(buffer, Role::Buffer, chunk, Some(data));
    zones.get_mut(data).partner = Some(buffer);
    Ok(())
}

/// Blocks behind the write pointer of a zone that should hold data.
pub(crate) fn lost_in(meta: &Metadata, zones: &Zones, id: ZoneId) -> Option<Lost> {
    let zone = zones.get(id);
    let behind = meta.weight(id) - meta.weight_before(id, zone.wp);
    let lost = Lost { zone: id, chunk: zone.chunk, written: zone.wp, blocks: behind };
    (zone.is_sequential() && behind > 0).then_some(lost)
}
