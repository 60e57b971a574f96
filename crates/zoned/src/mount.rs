//! Opening a volume (zoned.md, section 3, "Flush": restart takes the set with the highest valid generation).

use onefold_format::{DMZ_BLOCK_BYTES, DmzRoot, DmzRootError};
use onefold_units::convert::{index, low8, u32_from, u64_from};
use onefold_units::{Nanos, ZoneId};

use crate::backing::{Backing, ZoneReport};
use crate::block_map::BlockMap;
use crate::config::Options;
use crate::error::MountError;
use crate::geometry::{Geometry, ZoneKind};
use crate::layout::Layout;
use crate::load::{contradictions, give_up_twice, load};
use crate::meta::{Identity, Metadata, Stored};
use crate::metadata_sets::{choose, make_equal};
use crate::opening_io::{flush, read, write};
use crate::recovery::Recovery;
use crate::roots::find_roots;
use crate::sums::{Block, Sums};
use crate::volume::{Opened, Volume};
use crate::zones::Condition;

/// What the devices say of every zone; conventional ones are good.
pub(crate) fn report(
    backing: &mut dyn Backing,
    geometry: &Geometry,
) -> Result<Vec<ZoneReport>, MountError> {
    let of = |zone: ZoneId| {
        if geometry.kind(zone) != ZoneKind::Sequential {
            return Ok(ZoneReport { condition: Condition::Good, written: 0 });
        }
        let (device, at) = (geometry.device_of(zone), geometry.start(zone));
        let report = backing.report(device, at).map_err(|_| MountError::Device { device, at })?;
        let readable = report.condition == Condition::Good;
        let all = geometry.zone_blocks();
        // What a zone out of service says of its write pointer means nothing.
        Ok(ZoneReport { written: if readable { report.written.min(all) } else { all }, ..report })
    };
    geometry.ids().map(of).collect()
}

pub(crate) fn usable(reports: &[ZoneReport]) -> u32 {
    u32_from(reports.iter().filter(|report| report.condition == Condition::Good).count())
}

/// Opens a volume at time `now`.
///
/// Both metadata sets are made equal first. Differs from the kernel target, which copies only over a set whose root record is
/// damaged: a power cut while the second set is written leaves one with a valid root record of the old generation and some newer
/// blocks, which the next flush would complete with its root record but not with the blocks in between.
///
/// # Errors
/// [`MountError`]. Nothing was written then, unless a device failed.
pub fn mount(
    backing: &mut dyn Backing,
    geometry: &Geometry,
    options: Options,
    now: Nanos,
) -> Result<(Volume, Recovery), MountError> {
    let reports = report(backing, geometry)?;
    let roots = find_roots(backing, geometry)?;
    let mut chosen = choose(backing, geometry, &roots)?;
    if let Some(first) = chosen.lost.first().copied().filter(|_| !options.give_up_lost) {
        return Err(MountError::Damaged { blocks: u64_from(chosen.lost.len()), first });
    }
    chosen.give_up();
    let (layout, root) = (chosen.layout, chosen.root.clone());
    let (identity, damaged) = identity(backing, geometry, &root)?;
    let (meta, map) = chosen.bytes.split_at(index(layout.metadata_blocks) * DMZ_BLOCK_BYTES);
    let mut map = BlockMap::of(geometry.zone_blocks(), map).map_err(MountError::Journal)?;
    let mut meta = Metadata::of(&layout, meta);
    let lost = u64_from(chosen.lost.len());
    let mut recovery =
        Recovery { damaged_blocks: chosen.healed, lost_metadata: lost, ..Recovery::default() };
    let mut zones = load(geometry, &layout, (&mut meta, &mut map), &reports, &mut recovery)?;
    let mut twice = contradictions(geometry, &layout, &meta);
    if options.give_up_lost {
        for chunk in std::mem::take(&mut twice) {
            give_up_twice(geometry, &mut meta, &mut zones, chunk);
        }
    }
    recovery.damaged_chunks = u64_from(twice.len());
    // A device that does not hold what the metadata has there may be of another volume.
    let is_ours = options.give_up_lost && recovery.first_lost.is_none();
    if let Some((device, error)) = damaged.first().copied().filter(|_| !is_ours) {
        return Err(MountError::Copy { device, error });
    }
    if let Some(lost) = recovery.first_lost.filter(|_| !options.give_up_lost) {
        return Err(MountError::Lost(lost));
    }
    for (device, _) in damaged {
        write_copy(backing, geometry, (&layout, &identity), device, &reports)?;
    }
    let sums = if options.bytes { chosen.sums(geometry) } else { Sums::default() };
    if lost > 0 {
        meta.touch_all();
        map.touch_all();
    } else {
        recovery.repaired_blocks =
            make_equal(backing, geometry, &chosen, (&identity, &sums), &roots)?;
    }
    recovery.reset_zones = reset_unmapped(backing, geometry, &layout, &zones, &reports)?;
    let generation = root.generation;
    let geometry = geometry.clone();
    let damaged = twice;
    let opened = Opened { geometry, layout, identity, meta, sums, generation, damaged, zones, map };
    Ok((Volume::new(opened, options, now), recovery))
}

/// A device after the first whose copy of the root record is damaged, and what is wrong with it.
pub(crate) type DamagedCopy = (usize, DmzRootError);

/// The names of the volume, and whether every device belongs to it. A device whose copy of the root record is damaged gets another
/// UUID: its own is known from nowhere else.
pub(crate) fn identity(
    backing: &mut dyn Backing,
    geometry: &Geometry,
    root: &DmzRoot,
) -> Result<(Identity, Vec<DamagedCopy>), MountError> {
    let mut device_uuids = vec![root.device_uuid];
    let mut damaged = Vec::new();
    for device in 1..geometry.devices() {
        let mut block = [0; DMZ_BLOCK_BYTES];
        read(backing, device, 0, &mut block)?;
        let copy = match DmzRoot::decode(&block) {
            Ok(copy) => copy,
            Err(error) => {
                let mut uuid = root.uuid;
                uuid[15] ^= low8(u64_from(device)) | 0x80;
                device_uuids.push(uuid);
                damaged.push((device, error));
                continue;
            }
        };
        let first = u64::from(geometry.first_zone(device).raw());
        let place = first * u64::from(geometry.zone_blocks());
        if copy.uuid != root.uuid || copy.block != place {
            return Err(MountError::OtherVolume { device });
        }
        device_uuids.push(copy.device_uuid);
    }
    Ok((Identity { label: root.label, uuid: root.uuid, device_uuids }, damaged))
}

/// Makes the copy of the root record on a device after the first anew.
fn write_copy(
    backing: &mut dyn Backing,
    geometry: &Geometry,
    (layout, identity): (&Layout, &Identity),
    device: usize,
    reports: &[ZoneReport],
) -> Result<(), MountError> {
    let zone = geometry.first_zone(device);
    let is_sequential = geometry.kind(zone) == ZoneKind::Sequential;
    if is_sequential && reports[zone.index()].written > 0 {
        backing.reset(device, 0).map_err(|_| MountError::Device { device, at: 0 })?;
    }
    write(backing, device, 0, &identity.copy(geometry, layout, device).encode()[..])?;
    flush(backing, device)
}

/// Empties the sequential zones that no chunk has: targets of copies that a power cut ended, and resets that it undid.
fn reset_unmapped(
    backing: &mut dyn Backing,
    geometry: &Geometry,
    layout: &Layout,
    zones: &crate::zones::Zones,
    reports: &[ZoneReport],
) -> Result<u64, MountError> {
    let mut count = 0;
    for (id, report) in geometry.ids().zip(reports) {
        let zone = zones.get(id);
        let is_data = !layout.is_metadata(geometry, id) && zone.is_sequential();
        if is_data && !zone.is_mapped() && report.condition == Condition::Good && report.written > 0
        {
            let device = geometry.device_of(id);
            let failed = MountError::Device { device, at: zone.start };
            backing.reset(device, zone.start).map_err(|_| failed)?;
            count += 1;
        }
    }
    for device in geometry.zoned_devices().filter(|_| count > 0) {
        flush(backing, device)?;
    }
    Ok(count)
}

/// Makes a volume on devices, as `dmzadm --format` does: every sequential zone is reset, no chunk is mapped.
///
/// # Errors
/// [`MountError`].
pub fn format(
    backing: &mut dyn Backing,
    geometry: &Geometry,
    identity: &Identity,
) -> Result<Layout, MountError> {
    let known = |uuid: &[u8; 16]| uuid.iter().any(|byte| *byte != 0);
    let named = identity.device_uuids.len() == geometry.devices()
        && identity.device_uuids.iter().all(known);
    if !named || !known(&identity.uuid) {
        return Err(MountError::Identity);
    }
    let reports = report(backing, geometry)?;
    let layout = Layout::new(geometry, usable(&reports))?;
    let meta = Metadata::blank(&layout);
    for set in 0..2 {
        // An old volume must not come back if the power fails now.
        write(backing, 0, layout.set_block(geometry, set), &[0; DMZ_BLOCK_BYTES])?;
    }
    flush(backing, 0)?;
    for (zone, report) in geometry.ids().zip(&reports) {
        if geometry.kind(zone) == ZoneKind::Sequential
            && report.condition == Condition::Good
            && report.written > 0
        {
            let (device, at) = (geometry.device_of(zone), geometry.start(zone));
            backing.reset(device, at).map_err(|_| MountError::Device { device, at })?;
        }
    }
    let blocks: Vec<Block> =
        (0..layout.metadata_blocks).map(|block| (block, meta.block(block))).collect();
    let all: Vec<u8> = blocks.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
    let sums = Sums::of(layout.sums_at(geometry), &all, false);
    for set in 0..2 {
        for (block, bytes) in blocks.iter().skip(1).cloned().chain(sums.tables()) {
            let at = layout.set_block(geometry, set) + u64::from(block);
            write(backing, 0, at, &bytes)?;
        }
    }
    for device in 1..geometry.devices() {
        let copy = identity.copy(geometry, &layout, device).encode();
        write(backing, device, 0, &copy[..])?;
    }
    for device in 0..geometry.devices() {
        flush(backing, device)?;
    }
    for set in 0..2 {
        let stored = Stored { generation: 1, journal_blocks: 0, sums: sums.stored() };
        let root = identity.root(geometry, &layout, set, stored).encode();
        write(backing, 0, layout.set_block(geometry, set), &root[..])?;
    }
    flush(backing, 0)?;
    Ok(layout)
}
