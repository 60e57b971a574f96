//! `onefold ssd info`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use onefold_device::{Access, DeviceError, HostRoom, Image};
use serde_json::{Value, json};

use super::room::shortage;
use super::{render, zoned};
use crate::cmd::control;
use crate::error::{CliError, Exit};
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
        if device.get("mode").is_some() {
            let image = self.image.display();
            let text =
                format!("a volume on {image} is served, and nothing tells of the drive meanwhile");
            let help = format!("`onefold volume info {image}` tells what the volume does");
            return Err(CliError::new(Exit::Busy, "ssd::volume", text).help(help));
        }
        Ok(json!({
            "schema": "onefold.ssd.info/1",
            "image": {"path": self.image.display().to_string()},
            "served": true,
            "device": device,
        }))
    }
}

/// What an image holds that nobody serves.
pub(crate) fn at_rest(image: &Image, global: &Global) -> Result<Value, CliError> {
    let label = image.label();
    let config = onefold_config::Config::from_canonical(&label.config)?;
    let found = if let Some(zns) = config.zns(global.seed)? {
        zoned::at_rest(image, &zns)?
    } else {
        let (details, recovery) = onefold_device::inspect(image, &config.ssd(global.seed)?)?;
        json!({
            "recovery": {
                "checkpoint": recovery.checkpoint,
                "torn_slots": recovery.torn_slots,
                "lost_units": recovery.lost_units,
            },
            "device": render::details(&details),
        })
    };
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
    let head = if info["served"] == true {
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
    match info["device"].get("zoned") {
        Some(zones) => head + &zoned::table(zones),
        None => head + &render::table(&info["device"]),
    }
}
