//! `onefold ssd info`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use onefold_device::{Access, DeviceError, HostRoom, Image};
use serde_json::{Value, json};

use super::room::shortage;
use super::{lifetime, render, zoned};
use crate::cmd::control;
use crate::error::CliError;
use crate::output::{Format, Global};

/// Options of `onefold ssd info`.
#[derive(Debug, Args)]
pub(crate) struct Info {
    /// The image
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// Unix socket of its server [default: IMAGE.sock]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

impl Info {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let mut info = match Image::open(&self.image, Access::ReadOnly) {
            Ok(image) => at_rest(&image, global)?,
            Err(DeviceError::Busy { .. }) => self.served()?,
            Err(error) => return Err(error.into()),
        };
        if let Some(room) = HostRoom::at(&self.image) {
            info["image"]["host_free_bytes"] = room.free.into();
            info["image"]["shortage"] = shortage(&room).into();
        }
        let text = match global.format() {
            Format::Json => format!("{info:#}\n"),
            Format::Table => table(&info),
        };
        global.emit(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    fn served(&self) -> Result<Value, CliError> {
        let path = self.control.clone().unwrap_or_else(|| control::default_path(&self.image));
        let device = control::ask(&path, "stats")?;
        let of_a_volume = device.get("mode").is_some();
        let device = if of_a_volume {
            // Nobody tells of the drive, but its counters are in the image.
            let kept = Image::saved_lifetime(&self.image)?;
            json!({"lifetime": lifetime::as_json(kept, None)})
        } else {
            device
        };
        Ok(json!({
            "schema": "onefold.ssd.info/1",
            "image": {"path": self.image.display().to_string()},
            "served": true,
            "by_a_volume": of_a_volume,
            "device": device,
        }))
    }
}

/// What an image holds that nobody serves.
pub(crate) fn at_rest(image: &Image, global: &Global) -> Result<Value, CliError> {
    let label = image.label();
    let config = onefold_config::Config::from_canonical(&label.config)?;
    let mut retired = None;
    let mut found = if let Some(zns) = config.zns(global.seed)? {
        zoned::at_rest(image, &zns)?
    } else {
        let (details, recovery) = onefold_device::inspect(image, &config.ssd(global.seed)?)?;
        retired = Some(details.retired_superblocks);
        json!({
            "recovery": {
                "checkpoint": recovery.checkpoint,
                "torn_slots": recovery.torn_slots,
                "lost_units": recovery.lost_units,
            },
            "device": render::details(&details),
        })
    };
    found["device"]["lifetime"] = lifetime::as_json(image.lifetime(), retired);
    Ok(json!({
        "schema": "onefold.ssd.info/1",
        "image": {
            "path": image.path().display().to_string(),
            "uuid": render::uuid(&label.uuid),
            "generation": label.generation,
            "clean": label.clean,
            "file_bytes": image.file_bytes(),
            "allocated_bytes": image.allocated_bytes()?,
        },
        "served": false,
        "config": config.to_json(),
        "config_sha256": config.sha256(),
        "recovery": found["recovery"],
        "device": found["device"],
    }))
}

fn table(info: &Value) -> String {
    let image = &info["image"];
    let path = image["path"].as_str().unwrap_or_default();
    let head = if info["by_a_volume"] == true {
        format!(
            "{path}: a volume on it is served now; `onefold volume info {path}` tells of that\n"
        )
    } else if info["served"] == true {
        format!("{path}: served now\n")
    } else {
        let state =
            if image["clean"] == true { "shut down cleanly" } else { "not shut down cleanly" };
        let allocated = image["allocated_bytes"].as_u64().unwrap_or(0);
        format!(
            "{path}: {}, {state}, {} on disk, uuid {}\n",
            info["config"]["name"].as_str().unwrap_or_default(),
            render::size(allocated),
            image["uuid"].as_str().unwrap_or_default(),
        )
    };
    let warning = |text: &str| format!("warning: {path} {text}\n");
    let head = head + &image["shortage"].as_str().map(warning).unwrap_or_default();
    let device = &info["device"];
    let lifetime = lifetime::table(&device["lifetime"]);
    match device.get("zoned") {
        Some(zones) => head + &zoned::table(zones) + &lifetime,
        None if info["by_a_volume"] == true => head + &lifetime,
        None => head + &render::table(device) + &lifetime,
    }
}
