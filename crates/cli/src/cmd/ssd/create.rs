//! `onefold ssd create`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use onefold_device::Image;
use serde_json::json;

use super::render;
use crate::cmd::config::ConfigArgs;
use crate::error::CliError;
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

impl Create {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let mut config = self.config.load()?;
        if let Some(bytes) = self.size {
            config = config.with_logical_size(bytes)?;
        }
        let ssd = config.ssd(global.seed)?;
        let image = Image::create(&self.image, &ssd, config.to_toml())?;
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
        Ok(ExitCode::SUCCESS)
    }
}
