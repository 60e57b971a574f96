//! `onefold volume info` and `dump` of volumes in the modes `sung` and `han`.

use onefold_format::volume::{Transaction, VolumeLabel};
use onefold_modes::PartitionedVolume;
use onefold_units::PAGE_BYTES;
use onefold_units::convert::float;
use onefold_volume::{Backing, Engine};
use serde_json::{Value, json};

use super::what::What;
use crate::cmd::ssd::render;
use crate::error::{CliError, Exit};

/// The volume as JSON and as a table.
pub(super) fn info(volume: &PartitionedVolume) -> (Value, String) {
    let (areas, memory) = (volume.areas(), volume.memory());
    let bytes = |blocks: u64| blocks * PAGE_BYTES;
    let used = float(memory.valid_entries) / float(areas.data_blocks());
    let value = json!({
        "schema": "onefold.volume.info/1",
        "logical_bytes": bytes(areas.logical_blocks()),
        "backing_bytes": bytes(areas.backing_blocks()),
        "data_bytes": bytes(areas.data_blocks()),
        "partitions": areas.partitions(),
        "partition_bytes": bytes(areas.partition_blocks().into()),
        "free_bytes": bytes(volume.free_blocks()),
        "live_bytes": bytes(memory.valid_entries),
        "utilisation": used,
        "valid_entries": memory.valid_entries,
        "invalid_entries": memory.invalid_entries,
        "table_bytes": {"paper": memory.paper_bytes, "real": memory.real_bytes},
    });
    let text = format!(
        "exports {} on {} ({} of data), mode {}\n\
         {} partitions of {}, {} contiguous; {} live, {:.1} % of the data\n\
         tables: {} valid and {} invalid entries, {} as the papers count, {} taken\n",
        render::size(bytes(areas.logical_blocks())),
        render::size(bytes(areas.backing_blocks())),
        render::size(bytes(areas.data_blocks())),
        volume.mode().name(),
        areas.partitions(),
        render::size(bytes(areas.partition_blocks().into())),
        render::size(bytes(volume.free_blocks())),
        render::size(bytes(memory.valid_entries)),
        100.0 * used,
        memory.valid_entries,
        memory.invalid_entries,
        render::size(memory.paper_bytes),
        render::size(memory.real_bytes),
    );
    (value, text)
}

pub(super) fn dump(
    volume: &mut PartitionedVolume,
    backing: &mut dyn Backing,
    label: &VolumeLabel,
    what: &What,
) -> Result<Value, CliError> {
    let usage = |code, text| Err(CliError::new(Exit::Usage, code, text));
    Ok(match *what {
        What::Label => json!({
            "uuid": render::uuid(&label.uuid),
            "generation": label.generation,
            "name": label.name.as_str(),
            "mode": label.mode.name(),
            "compat": label.compat,
            "ro_compat": label.ro_compat,
            "incompat": label.incompat,
            "partition_blocks": label.segment_blocks,
            "logical_blocks": label.logical_blocks,
            "backing_blocks": label.devices.iter().map(|device| device.blocks).collect::<Vec<_>>(),
            "copies_at_blocks": volume.areas().labels(),
            "roots_at_blocks": volume.areas().roots(),
        }),
        What::Segments => volume
            .partition_infos()
            .map(|one| {
                json!({
                    "partition": one.number,
                    "first_block": one.blocks.start,
                    "blocks": one.blocks.end - one.blocks.start,
                    "valid_entries": one.valid,
                    "invalid_entries": one.invalid,
                    "table_at_block": one.table_at,
                })
            })
            .collect(),
        What::Segment { number } => {
            let Some(blocks) = volume.areas().file(number) else {
                let text =
                    format!("file {number}; expected one of 0 to {}", volume.areas().files() - 1);
                return usage("volume::segment", text);
            };
            json!({"file": number, "transactions": transactions(backing, &label.uuid, blocks)})
        }
        What::Members => json!([]),
        What::Map { lba, .. } => {
            let blocks = volume.areas().logical_blocks();
            let Some(small) = u32::try_from(lba).ok().filter(|_| lba < blocks) else {
                let text = format!("block {lba}; expected one of 0 to {}", blocks - 1);
                return usage("volume::block", text);
            };
            match volume.look_up(small) {
                Some(at) => json!({"block": lba, "mapped": true, "at_block": at.raw()}),
                None => json!({"block": lba, "mapped": false}),
            }
        }
    })
}

/// Transactions of a file as they lie there, those that do not count any more included.
fn transactions(
    backing: &mut dyn Backing,
    uuid: &[u8; 16],
    blocks: std::ops::Range<u32>,
) -> Vec<Value> {
    let mut list = Vec::new();
    for at in blocks {
        let mut block = [0; 4096];
        if backing.read(at.into(), &mut block).is_err() {
            break;
        }
        let Ok(one) = Transaction::decode(&block, uuid, at) else { break };
        let pair = |pair: &onefold_format::volume::Pair| {
            let to = pair.to.is_block().then(|| pair.to.raw());
            json!([pair.lba, to])
        };
        list.push(json!({
            "block": at,
            "seq": one.seq.raw(),
            "incarnation": one.incarnation,
            "pairs": one.pairs.iter().map(pair).collect::<Vec<_>>(),
        }));
    }
    list
}
