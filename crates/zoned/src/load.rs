//! The zones as map and validity have them, judged before they are believed.

use std::collections::BTreeSet;
use std::ops::Range;

use onefold_format::DmzMapEntry;
use onefold_units::ZoneId;
use onefold_units::convert::narrow;

use crate::backing::ZoneReport;
use crate::block_map::BlockMap;
use crate::error::{JournalFault, Lost, MountError};
use crate::geometry::{Geometry, ZoneKind};
use crate::layout::Layout;
use crate::meta::Metadata;
use crate::recovery::Recovery;
use crate::zones::{Condition, Role, Zones};

/// Gives every zone its role: mapped ones in the order of chunks, then free ones in the order of zones, reserved ones first.
pub(crate) fn load(
    geometry: &Geometry,
    layout: &Layout,
    (meta, map): (&mut Metadata, &mut BlockMap),
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
    load_set(geometry, layout, map, &mut zones).map_err(MountError::Journal)?;
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
    find_blocks(geometry, layout, meta, map).map_err(MountError::Journal)?;
    zones.count();
    Ok(zones)
}

/// The zones of the journal zone set.
fn load_set(
    geometry: &Geometry,
    layout: &Layout,
    map: &BlockMap,
    zones: &mut Zones,
) -> Result<(), JournalFault> {
    for one in map.zones() {
        let zone = one.zone;
        let bad = |what| Err(JournalFault::Zone { zone, what });
        if zone.raw() >= geometry.zones() {
            return bad("which does not exist");
        } else if layout.is_metadata(geometry, zone) {
            return bad("which holds metadata");
        } else if geometry.kind(zone) != ZoneKind::Sequential {
            return bad("which is not sequential");
        } else if zones.get(zone).is_mapped() {
            return bad("which is used already");
        }
        zones.get_mut(zone).role = Role::Journal;
    }
    Ok(())
}

/// Where the blocks lie that are valid in zones of the set.
fn find_blocks(
    geometry: &Geometry,
    layout: &Layout,
    meta: &Metadata,
    map: &mut BlockMap,
) -> Result<(), JournalFault> {
    let zone_blocks = u64::from(geometry.zone_blocks());
    let zones: Vec<ZoneId> = map.zones().iter().map(|one| one.zone).collect();
    for zone in zones {
        let mut next = 0;
        while let Some(run) = meta.first_valid(zone, next..geometry.zone_blocks()) {
            next = run.end;
            for at in run {
                let block = map.block_at((zone, at)).unwrap_or(u64::MAX);
                if block >= layout.blocks(geometry) {
                    return Err(JournalFault::Outside { block, zone });
                }
                let entry = meta.entry(narrow(block / zone_blocks));
                let offset = narrow(block % zone_blocks);
                let is_valid = |zone: ZoneId| meta.run(zone, offset..offset + 1).0;
                let is_elsewhere = [entry.data, entry.buffer].into_iter().flatten().any(is_valid);
                if is_elsewhere || !map.found(block, (zone, at)) {
                    return Err(JournalFault::Twice { block, zone });
                }
            }
        }
    }
    Ok(())
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
    let chunk = (zone.role != Role::Journal).then_some(zone.chunk);
    let lost = Lost { zone: id, chunk, written: zone.wp, blocks: behind };
    (zone.is_sequential() && behind > 0).then_some(lost)
}

/// Blocks of a chunk that are valid both in its data zone and in its buffer zone: which of them counts is not known.
fn twice(geometry: &Geometry, meta: &Metadata, chunk: u32) -> Vec<Range<u32>> {
    let DmzMapEntry { data: Some(data), buffer: Some(buffer) } = meta.entry(chunk) else {
        return Vec::new();
    };
    let (mut at, end, mut both) = (0, geometry.zone_blocks(), Vec::new());
    while let Some(run) = meta.first_valid(buffer, at..end) {
        at = run.end;
        let mut from = run.start;
        while let Some(here) = meta.first_valid(data, from..run.end) {
            from = here.end;
            both.push(here);
        }
    }
    both
}

/// How many such blocks a chunk has.
pub(crate) fn valid_twice(geometry: &Geometry, meta: &Metadata, chunk: u32) -> u32 {
    twice(geometry, meta, chunk).iter().map(|run| run.end - run.start).sum()
}

/// The chunks whose metadata contradicts itself.
pub(crate) fn contradictions(
    geometry: &Geometry,
    layout: &Layout,
    meta: &Metadata,
) -> BTreeSet<u32> {
    let is_damaged = |chunk: &u32| !twice(geometry, meta, *chunk).is_empty();
    (0..layout.chunks).filter(is_damaged).collect()
}

/// Such blocks are given up: they are valid nowhere.
pub(crate) fn give_up_twice(
    geometry: &Geometry,
    meta: &mut Metadata,
    zones: &mut Zones,
    chunk: u32,
) {
    let runs = twice(geometry, meta, chunk);
    let DmzMapEntry { data, buffer } = meta.entry(chunk);
    for zone in [data, buffer].into_iter().flatten() {
        for run in &runs {
            meta.set_valid(zone, run.clone(), false);
        }
        zones.get_mut(zone).weight = meta.weight(zone);
    }
}
