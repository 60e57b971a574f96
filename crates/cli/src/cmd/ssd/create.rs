//! `onefold ssd create`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use onefold_config::{Config, OF_A_DRIVE};
use onefold_device::{HostRoom, Image};
use serde_json::json;

use super::render;
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
}

/// Blocks per plane added at most for what collection keeps free.
const MORE_BLOCKS_MAX: u32 = 256;

impl Create {
    /// The configuration of the image. Where the spare blocks of a small device are fewer than
    /// collection keeps free, it gets more of them: that is what the same share of a large one has.
    fn configuration(&self, global: &Global) -> Result<Config, CliError> {
        let config = self.config.load()?;
        let Some(bytes) = self.size else { return Ok(config) };
        let config = config.with_logical_size(bytes)?;
        let fits = |config: &Config| -> Result<bool, CliError> {
            Ok(match config.zns(global.seed)? {
                Some(zns) => Image::can_create(&self.image, &zns).is_ok(),
                None => Image::can_create(&self.image, &config.ssd(global.seed)?).is_ok(),
            })
        };
        if fits(&config)? {
            return Ok(config);
        }
        let blocks = config.geometry()?.spec().blocks;
        for more in 1..=MORE_BLOCKS_MAX {
            let mut sets = self.config.sets.clone();
            sets.push(format!("geometry.blocks={}", blocks + more));
            sets.push(format!("capacity.logical={bytes}B"));
            let larger = ConfigArgs {
                config: self.config.config.clone(),
                preset: self.config.preset.clone(),
                sets,
            };
            let larger = larger.load()?;
            if fits(&larger)? {
                global.say(format_args!(
                    "geometry.blocks is {} instead of {blocks}: collection needs the room",
                    blocks + more
                ));
                return Ok(larger);
            }
        }
        // Too few blocks is not what is wrong; the attempt to make the image tells.
        Ok(config)
    }

    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let config = self.configuration(global)?;
        let elsewhere = config.acting_elsewhere(OF_A_DRIVE)?;
        if !elsewhere.is_empty() {
            let keys = elsewhere.join(", ");
            global.say(format_args!("{keys}: not of a drive, so without effect on the image"));
        }
        if config.volume()?.is_some() {
            let text =
                "volume.mode is for simulations, and an emulated SSD has no volume of its own";
            return Err(CliError::new(Exit::Infeasible, "config::volume", text).help(
                "leave volume.mode out; `onefold volume create IMAGE` makes a volume on it",
            ));
        }
        let image = match config.zns(global.seed)? {
            Some(zns) => Image::create(&self.image, &zns, config.to_toml())?,
            None => Image::create(&self.image, &config.ssd(global.seed)?, config.to_toml())?,
        };
        let (uuid, logical) = (render::uuid(&image.label().uuid), image.label().logical_bytes);
        let text = match global.format() {
            Format::Json => format!(
                "{:#}\n",
                json!({
                    "schema": "onefold.ssd.create/1",
                    "image": image.path().display().to_string(),
                    "uuid": uuid,
                    "config": config.name(),
                    "logical_bytes": logical,
                    "file_bytes": image.file_bytes(),
                })
            ),
            Format::Table => format!(
                "created {}: {} ({}), up to {} on disk, uuid {uuid}\n",
                image.path().display(),
                render::size(logical),
                config.name(),
                render::size(image.file_bytes()),
            ),
        };
        global.emit(&text)?;
        if let Some(room) = HostRoom::at(&self.image) {
            super::room::warn(global, &self.image, &room);
        }
        Ok(ExitCode::SUCCESS)
    }
}
