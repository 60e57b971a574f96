//! `onefold volume journals`, and what `info` says about the content of a volume: a reading of the journal detector.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use onefold_device::VolumeBacking;
use onefold_journal::Found;
use onefold_modes::{PartitionedVolume, open_read_only};
use onefold_units::{Lba, Location, PAGE_BYTES};
use onefold_volume::{Backing, Engine, MemberId, Options, read_label};
use serde_json::{Value, json};

use super::dmz;
use super::survey::survey;
use crate::cmd::ssd::render;
use crate::error::CliError;
use crate::output::{Format, Global};

/// Options of `onefold volume journals`.
#[derive(Debug, Args)]
pub(crate) struct Journals {
    /// A volume, a block device, a file with the image of one, or an image made by `onefold ssd create`. It is only read
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    cache: dmz::Cache,
}

impl Journals {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let cache = self.cache.path();
        let (found, what) = if cache.is_some() || dmz::is_alone(&self.path, global)? {
            (dmz::journals(&self.path, cache, global)?, "volume")
        } else {
            self.find(global)?
        };
        let text = match global.format() {
            Format::Table => table(&found),
            Format::Json => {
                let mut value = as_json(&found);
                value["schema"] = "onefold.volume.journals/1".into();
                value["path"] = self.path.display().to_string().into();
                value["content_of"] = what.into();
                format!("{value:#}\n")
            }
        };
        global.emit(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    /// What is found, and in what.
    fn find(&self, global: &Global) -> Result<(Found, &'static str), CliError> {
        let below = super::open_backing(&self.path, false, global)?;
        let mut backing = below.clone();
        let blocks = backing.blocks();
        let is_volume = read_label(&mut backing, blocks).is_ok();
        let found = if is_volume {
            let (mut volume, ..) = open_read_only(&mut backing, blocks, Options::default())?;
            of_volume(volume.as_mut(), &mut backing)
        } else {
            survey(blocks, |lba, block| backing.read(lba.raw(), block).is_ok())
        };
        Ok((found, if is_volume { "volume" } else { "device" }))
    }
}

/// Looks at what a volume holds that is open to be read.
pub(super) fn of_volume(volume: &mut dyn Engine, backing: &mut VolumeBacking) -> Found {
    survey(volume.logical_blocks(), |lba, block| {
        let at = place_of(volume, backing, lba);
        match at {
            Some(at) if at.is_block() => backing.read(at.raw().into(), block).is_ok(),
            Some(Location::UNMAPPED) => {
                block.fill(0);
                true
            }
            _ => false,
        }
    })
}

/// Where a block lies; `None` if its map cannot be read.
fn place_of(volume: &mut dyn Engine, backing: &mut VolumeBacking, lba: Lba) -> Option<Location> {
    if let Some(log) = volume.as_log_mut() {
        return Some(log.look_up(backing, MemberId::DEVICE, lba)?.0);
    }
    let volume = volume.downcast_mut::<PartitionedVolume>()?;
    let at = volume.look_up(u32::try_from(lba.raw()).ok()?);
    Some(at.unwrap_or(Location::UNMAPPED))
}

/// The reading as JSON.
pub(super) fn as_json(found: &Found) -> Value {
    let ranges: Vec<Value> = found
        .ranges
        .iter()
        .map(|range| {
            json!({
                "class": range.class.name(),
                "first_block": range.first.raw(),
                "blocks": range.blocks(),
                "confidence": range.confidence.name(),
                "system": range.origin.system.name(),
                "at_byte": range.origin.at,
                "why": range.origin.why,
            })
        })
        .collect();
    let remarks: Vec<Value> = found
        .remarks
        .iter()
        .map(|it| json!({"system": it.system.name(), "at_byte": it.at, "why": it.why}))
        .collect();
    json!({"ranges": ranges, "remarks": remarks, "blocks_read": found.read_from.len()})
}

/// The ranges of a reading that came as JSON, a line for each.
pub(super) fn lines(content: &Value) -> String {
    let line = |range: &Value| {
        format!(
            "{:<8}  {:>9} from block {}, confidence {}: {} at byte {}: {}\n",
            range["class"].as_str().unwrap_or_default(),
            render::size(range["blocks"].as_u64().unwrap_or(0) * PAGE_BYTES),
            range["first_block"],
            range["confidence"].as_str().unwrap_or_default(),
            range["system"].as_str().unwrap_or_default(),
            range["at_byte"],
            range["why"].as_str().unwrap_or_default(),
        )
    };
    content["ranges"].as_array().into_iter().flatten().map(line).collect()
}

/// The reading for people, a line for each range and remark.
pub(super) fn table(found: &Found) -> String {
    let mut text = String::new();
    for range in &found.ranges {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<8}  {:>9} from block {}, confidence {}: {}",
            range.class.name(),
            render::size(range.blocks() * PAGE_BYTES),
            range.first.raw(),
            range.confidence.name(),
            range.origin
        );
    }
    for remark in &found.remarks {
        let _ = writeln!(text, "no range  {remark}");
    }
    if text.is_empty() { "no file system that keeps a journal\n".to_owned() } else { text }
}
