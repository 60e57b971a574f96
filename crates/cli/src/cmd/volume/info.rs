//! `onefold volume info`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use onefold_units::PAGE_BYTES;
use onefold_units::convert::float;
use onefold_volume::{Options, mount_read_only, read_label};
use serde_json::{Value, json};

use crate::cmd::ssd::render;
use crate::error::CliError;
use crate::output::{Format, Global};

/// Options of `onefold volume info`.
#[derive(Debug, Args)]
pub(crate) struct Info {
    /// What the volume lies on
    #[arg(value_name = "PATH")]
    path: PathBuf,
}

impl Info {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let mut backing = super::open_backing(&self.path, false, global)?;
        let blocks = backing.blocks();
        let label = read_label(&mut backing, blocks)?;
        let (volume, recovery, _) = mount_read_only(&mut backing, blocks, Options::default())?;
        let (geometry, layout) = (volume.layout().geometry(), volume.layout());
        let bytes = |blocks: u64| blocks * PAGE_BYTES;
        let members: Vec<_> = volume.members().collect();
        let info = json!({
            "schema": "onefold.volume.info/1",
            "path": self.path.display().to_string(),
            "uuid": render::uuid(&label.uuid),
            "name": label.name.as_str(),
            "mode": "log",
            "logical_bytes": bytes(geometry.logical_blocks),
            "backing_bytes": bytes(geometry.backing_blocks),
            "log_bytes": bytes(layout.log_blocks()),
            "segment_bytes": bytes(geometry.segment_blocks.into()),
            "unit_bytes": bytes(geometry.unit_blocks.into()),
            "segments": layout.usable_segments(),
            "free_segments": volume.free_segments(),
            "live_bytes": bytes(volume.live_blocks()),
            "data_bytes": bytes(volume.usage().data_blocks),
            "members": super::family::describe(&members),
            "utilisation": float(volume.live_blocks()) / float(layout.log_blocks()),
            "closed": recovery.clean,
            "batches_to_replay": recovery.batches,
        });
        let text = match global.format() {
            Format::Json => format!("{info:#}\n"),
            Format::Table => table(&info),
        };
        global.emit(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn table(info: &Value) -> String {
    let size = |key: &str| render::size(info[key].as_u64().unwrap_or(0));
    let number = |key: &str| info[key].as_u64().unwrap_or(0);
    let closed = info["closed"].as_bool().unwrap_or(false);
    format!(
        "volume {} {}\n\
         exports {} on {} ({} of log), unit {}\n\
         {} log segments of {}, {} free; {} live, {:.1} % of the log\n\
         {} snapshots and clones\n\
         {}\n",
        info["uuid"].as_str().unwrap_or_default(),
        info["name"].as_str().unwrap_or_default(),
        size("logical_bytes"),
        size("backing_bytes"),
        size("log_bytes"),
        size("unit_bytes"),
        number("segments"),
        size("segment_bytes"),
        number("free_segments"),
        size("live_bytes"),
        100.0 * info["utilisation"].as_f64().unwrap_or(0.0),
        info["members"].as_array().map_or(0, Vec::len),
        if closed {
            "closed".to_owned()
        } else {
            format!("not closed: {} batches to replay", number("batches_to_replay"))
        },
    )
}
