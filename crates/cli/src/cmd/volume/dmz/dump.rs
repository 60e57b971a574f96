//! What lies on the devices of a volume of policy `dmz`, as JSON.

use std::path::Path;

use onefold_device::DmzChecked;
use onefold_units::ZoneId;
use onefold_zoned::{Condition, Place, ZoneUse, ZoneView};
use serde_json::{Value, json};

use super::super::what::What;
use super::describe::{device_name, label};
use crate::cmd::ssd::render;
use crate::error::{CliError, Exit};
use crate::output::Global;

pub(in super::super) fn dump(
    path: &Path,
    cache: Option<&Path>,
    what: &What,
    global: &Global,
) -> Result<Value, CliError> {
    let devices = super::open(path, cache, false, global)?;
    let checked = devices.inspect()?;
    let value = tell(&checked, what);
    devices.close()?;
    value
}

fn tell(checked: &DmzChecked, what: &What) -> Result<Value, CliError> {
    let inspection = &checked.inspection;
    let (layout, geometry) = (&inspection.layout, inspection.geometry());
    let usage = |text: String| Err(CliError::new(Exit::Usage, "volume::dump", text));
    Ok(match what {
        What::Label => json!({
            "uuid": render::uuid(&inspection.identity.uuid),
            "name": label(&inspection.identity.label),
            "device_uuids": inspection.identity.device_uuids.iter().map(render::uuid).collect::<Vec<_>>(),
            "generation": inspection.generation,
            "set": inspection.set,
            "sets_at_blocks": [layout.set_block(geometry, 0), layout.set_block(geometry, 1)],
            "metadata_blocks": layout.metadata_blocks,
            "map_blocks": layout.map_blocks,
            "bitmap_blocks": layout.bitmap_blocks,
            "journal_blocks": inspection.journal_blocks(),
            "reserved_zones": layout.reserved,
            "chunks": layout.chunks,
            "zone_blocks": geometry.zone_blocks(),
        }),
        What::Segments => inspection.zones.iter().map(|zone| describe(checked, zone)).collect(),
        What::Segment { number } if *number >= layout.chunks => {
            return usage(format!("chunk {number}; expected one of 0 to {}", layout.chunks - 1));
        }
        What::Segment { number } => {
            let (data, buffer) = inspection.zones_of(*number);
            json!({"chunk": number, "data": data.map(ZoneId::raw), "buffer": buffer.map(ZoneId::raw)})
        }
        What::Map { member: Some(_), .. } | What::Members => {
            return usage("a volume of policy dmz has no snapshots and clones".to_owned());
        }
        What::Map { lba, .. } if *lba >= inspection.blocks() => {
            return usage(format!("block {lba}; expected one of 0 to {}", inspection.blocks() - 1));
        }
        What::Map { lba, .. } => match inspection.place(*lba) {
            Place::Zeroes => json!({"block": lba, "mapped": false}),
            Place::At { device, block, zone } => json!({
                "block": lba, "mapped": true, "device": device_name(geometry, device), "at_block": block, "zone": zone.raw(),
            }),
        },
    })
}

fn describe(checked: &DmzChecked, one: &ZoneView) -> Value {
    let geometry = checked.inspection.geometry();
    let chunk = match one.used {
        ZoneUse::Data(chunk) | ZoneUse::Buffer(chunk) => Some(chunk),
        _ => None,
    };
    let condition = match one.condition {
        Condition::Good => "good",
        Condition::Suspect => "suspect",
        Condition::ReadOnly => "read only",
        Condition::Offline => "offline",
    };
    let of_set = checked.inspection.journal_zones().find(|(zone, _)| *zone == one.zone);
    let stream = of_set.map(|(_, stream)| stream.name());
    json!({
        "zone": one.zone.raw(),
        "device": device_name(geometry, geometry.device_of(one.zone)),
        "at_block": geometry.start(one.zone),
        "use": one.used.name(),
        "stream": stream,
        "chunk": chunk,
        "condition": condition,
        "written_blocks": one.written,
        "valid_blocks": one.valid,
    })
}
