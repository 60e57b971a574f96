//! `onefold ssd`: an emulated SSD in an image file.

mod age;
pub(crate) mod check;
mod control;
mod create;
mod cut;
mod failure;
pub(crate) mod info;
pub(crate) mod lifetime;
mod reach;
mod remap;
pub(crate) mod render;
pub(crate) mod room;
pub(crate) mod serve;
mod snapshot;
pub(crate) mod zoned;
mod zones;

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;
use onefold_config::Config;
use onefold_device::{Access, Image};

use crate::error::CliError;
use crate::output::Global;

/// Subcommands of `onefold ssd`.
#[derive(Debug, Subcommand)]
pub(crate) enum Ssd {
    /// Make an image of a blank device
    Create(create::Create),
    /// Serve the device of an image until SIGTERM or Ctrl-C
    Serve(serve::Serve),
    /// Check an image: 0 clean, 1 damage given up, 4 damage left, 8 could not run
    Check(check::Check),
    /// Tell what an image holds, or what its running server counts
    Info(info::Info),
    /// Tell about the zones of an image with a zoned namespace, or reset, finish or fail them
    Zones(zones::Zones),
    /// Let ranges hold what other ranges hold, without copying where possible
    Remap(remap::Remap),
    /// Let one range hold what another holds: a copy that shares pages until either is written
    Clone(remap::Clone),
    /// Keep the content of ranges under names
    #[command(subcommand)]
    Snapshot(snapshot::Snapshot),
}

impl Ssd {
    /// Runs the command.
    pub(crate) fn run(self, global: &Global) -> Result<ExitCode, CliError> {
        match self {
            Self::Info(_) => {}
            Self::Create(_) => {
                global.interrupt.leaves("the image may not be whole; remove it and make it anew");
            }
            _ => global.interrupt.leaves(
                "what was under way is as after a power cut: nothing that was durable is lost, and the same command can be given again",
            ),
        }
        match self {
            Self::Create(create) => create.run(global),
            Self::Serve(serve) => serve.run(global),
            Self::Check(check) => check.run(global),
            Self::Info(info) => info.run(global),
            Self::Zones(zones) => zones.run(global),
            Self::Remap(remap) => remap.run(global),
            Self::Clone(clone) => clone.run(global),
            Self::Snapshot(snapshot) => snapshot.run(global),
        }
    }
}

/// Opens an image and reads the configuration in its label.
pub(crate) fn open(path: &Path, access: Access) -> Result<(Image, Config), CliError> {
    let image = Image::open(path, access)?;
    let config = Config::from_canonical(&image.label().config)?;
    Ok((image, config))
}
