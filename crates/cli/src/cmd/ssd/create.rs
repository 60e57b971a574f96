//! `onefold ssd create`.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use onefold_config::{Age, OF_A_DRIVE};
use onefold_device::{HostRoom, Image};
use serde_json::json;

use super::{age, render};
use crate::cmd::config::ConfigArgs;
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// Options of `onefold ssd create`.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// The file to make; one that exists is never touched
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    #[command(flatten)]
    config: ConfigArgs,
    /// Capacity that the host sees, such as 8GiB; geometry.blocks is chosen to fit [default: that
    /// of the configuration]
    #[arg(long, value_name = "SIZE", value_parser = render::parse_size)]
    size: Option<u64>,
    /// Make a used drive: how much of it holds data, and how often that was overwritten at random, such
    /// as fill=0.8,overwrite=1 [default: an empty one]
    #[arg(long, value_name = "STATE")]
    age: Option<Age>,
}

impl Create {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let config = self.config.load_of_size(self.size, global)?;
        let elsewhere = config.acting_elsewhere(OF_A_DRIVE)?;
        if !elsewhere.is_empty() {
            let keys = elsewhere.join(", ");
            global.say(format_args!("{keys}: not of a drive, so without effect on the image"));
        }
        for (key, why) in config.idle().into_iter().filter(|(key, _)| !elsewhere.contains(key)) {
            global.say(format_args!("{key}: without effect on the image: {why}"));
        }
        if config.volume()?.is_some() {
            let text =
                "volume.mode is for simulations, and an emulated SSD has no volume of its own";
            return Err(CliError::new(Exit::Infeasible, "config::volume", text).help(
                "leave volume.mode out; `onefold volume create IMAGE` makes a volume on it",
            ));
        }
        if self.age.is_some() && config.is_zoned() {
            let text = "--age is for drives without zones, in which nothing can be overwritten";
            return Err(CliError::new(Exit::Usage, "usage::age", text).help("leave it out"));
        }
        let image = match config.zns(global.seed)? {
            Some(zns) => Image::create(&self.image, &zns, config.to_toml())?,
            None => Image::create(&self.image, &config.ssd(global.seed)?, config.to_toml())?,
        };
        let (uuid, logical) = (render::uuid(&image.label().uuid), image.label().logical_bytes);
        let file_bytes = image.file_bytes();
        if let Some(used) = self.age {
            let _unfinished = global.interrupt.unfinished(&self.image);
            age::apply(used, image, &config, global)
                .inspect_err(|_| drop(fs::remove_file(&self.image)))?;
        }
        let text = match global.format() {
            Format::Json => format!(
                "{:#}\n",
                json!({
                    "schema": "onefold.ssd.create/1",
                    "image": self.image.display().to_string(),
                    "uuid": uuid,
                    "config": config.name(),
                    "logical_bytes": logical,
                    "file_bytes": file_bytes,
                })
            ),
            Format::Table => format!(
                "created {}: {} ({}), up to {} on disk, uuid {uuid}\n",
                self.image.display(),
                render::size(logical),
                config.name(),
                render::size(file_bytes),
            ),
        };
        global.emit(&text)?;
        if let Some(room) = HostRoom::at(&self.image) {
            super::room::warn(global, &self.image, &room);
        }
        Ok(ExitCode::SUCCESS)
    }
}
