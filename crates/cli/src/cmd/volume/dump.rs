//! `onefold volume dump`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use onefold_device::VolumeError;
use onefold_format::volume::{BatchHeader, RecordList};
use onefold_modes::{PartitionedVolume, open_read_only};
use onefold_units::{Lba, LogSegmentId};
use onefold_volume::{Backing, MemberId, Options, SnapshotError, Volume, read_label};
use serde_json::{Value, json};

use super::dmz;
use super::what::What;
use crate::cmd::ssd::render;
use crate::error::{CliError, Exit};
use crate::output::Global;

/// Options of `onefold volume dump`.
#[derive(Debug, Args)]
pub(crate) struct Dump {
    /// What the volume lies on
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    cache: dmz::Cache,
    #[command(subcommand)]
    what: What,
}

impl Dump {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let cache = self.cache.path();
        if cache.is_some() || dmz::is_alone(&self.path, global)? {
            let value = dmz::dump(&self.path, cache, &self.what, global)?;
            global.emit(&format!("{value:#}\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let below = super::open_backing(&self.path, false, global)?;
        let mut backing = below.clone();
        let blocks = backing.blocks();
        let label = read_label(&mut backing, blocks)?;
        let (mut engine, ..) = open_read_only(&mut backing, blocks, Options::default())?;
        if let Some(volume) = engine.downcast_mut::<PartitionedVolume>() {
            let value = super::modes::dump(volume, &mut backing, &label, &self.what)?;
            global.emit(&format!("{value:#}\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let Some(volume) = engine.as_log_mut() else { return Ok(Exit::Failed.into()) };
        let value = match &self.what {
            What::Label => json!({
                "uuid": render::uuid(&label.uuid),
                "generation": label.generation,
                "name": label.name.as_str(),
                "compat": label.compat,
                "ro_compat": label.ro_compat,
                "incompat": label.incompat,
                "unit_blocks": label.unit_blocks,
                "segment_blocks": label.segment_blocks,
                "logical_blocks": label.logical_blocks,
                "backing_blocks": label.devices.iter().map(|device| device.blocks).collect::<Vec<_>>(),
                "copies_at_blocks": volume.layout().labels(),
                "roots_at_blocks": volume.layout().roots(),
            }),
            What::Segments => segments(volume),
            What::Segment { number } => segment(volume, &mut backing, &label.uuid, *number)?,
            What::Map { lba, member } => map(volume, &mut backing, *lba, member.as_deref())?,
            What::Members => super::members::describe(&volume.members().collect::<Vec<_>>()),
        };
        global.emit(&format!("{value:#}\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn segments(volume: &Volume) -> Value {
    let describe = |one: onefold_volume::SegmentInfo| {
        json!({
            "segment": one.segment.raw(),
            "state": one.state,
            "stream": one.stream,
            "live_blocks": one.live,
            "epoch": one.epoch,
        })
    };
    volume.segment_infos().map(describe).collect()
}

fn segment(
    volume: &Volume,
    backing: &mut dyn Backing,
    uuid: &[u8; 16],
    number: u32,
) -> Result<Value, CliError> {
    let layout = volume.layout();
    if number >= layout.segments() {
        let text = format!("log segment {number}; expected one of 0 to {}", layout.segments() - 1);
        return Err(CliError::new(Exit::Usage, "volume::segment", text));
    }
    let length = layout.geometry().segment_blocks;
    let start = layout.start_of(LogSegmentId::new(number)).raw();
    let mut batches = Vec::new();
    let mut at = 0;
    while at < length {
        let mut block = [0; 4096];
        let address = u64::from(start + at);
        if backing.read(address, &mut block).is_err() {
            break;
        }
        let Ok(batch) = BatchHeader::decode(&block, uuid, address) else { break };
        let header = &batch.header;
        let lbas: Vec<u64> = match &batch.records {
            RecordList::Meta(list) => list.iter().map(|record| record.object).collect(),
            _ => batch.versions().map(|one| one.lba.raw()).collect(),
        };
        batches.push(json!({
            "block": address,
            "seq": header.seq.raw(),
            "stream": header.stream,
            "attempt": header.attempt,
            "epoch": header.epoch,
            "incarnation": header.incarnation,
            "durable_seq": header.durable_seq.raw(),
            "padding_blocks": header.padding_blocks,
            "moved_blocks": batch.moved.len(),
            "trims": batch.trims.iter().map(|trim| json!([trim.lba.raw(), trim.blocks])).collect::<Vec<_>>(),
            "blocks": lbas,
        }));
        at += batch.blocks();
    }
    Ok(json!({"segment": number, "batches": batches}))
}

fn map(
    volume: &mut Volume,
    backing: &mut dyn Backing,
    lba: u64,
    member: Option<&str>,
) -> Result<Value, CliError> {
    let (member, blocks) = match member {
        None => (MemberId::DEVICE, volume.layout().geometry().logical_blocks),
        Some(name) => {
            let info = volume.member(name).ok_or(SnapshotError::Missing);
            info.map(|info| (info.id, info.blocks)).map_err(VolumeError::from)?
        }
    };
    if lba >= blocks {
        let text = format!("block {lba}; expected one of 0 to {}", blocks - 1);
        return Err(CliError::new(Exit::Usage, "volume::block", text));
    }
    let found = volume.look_up(backing, member, Lba::new(lba));
    let Some((at, crc)) = found else {
        let text = format!("the map of block {lba} cannot be read");
        return Err(CliError::new(Exit::Failed, "volume::damaged", text));
    };
    Ok(if at.is_block() {
        json!({"block": lba, "mapped": true, "at_block": at.raw(), "crc32c": format!("{crc:08x}")})
    } else {
        json!({"block": lba, "mapped": false})
    })
}
