//! `onefold volume`: a log-structured volume on a file, a block device, or an emulated SSD.

mod check;
mod create;
mod dump;
mod failure;
mod family;
mod info;
mod serve;

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;
use onefold_device::{Access, Image, Latency, OpenOptions, SsdDevice, VolumeBacking, VolumeDevice};

use crate::cmd::ssd;
use crate::error::CliError;
use crate::output::Global;

/// Subcommands of `onefold volume`.
#[derive(Debug, Subcommand)]
pub(crate) enum Volume {
    /// Make an empty volume
    Create(create::Create),
    /// Serve a volume until SIGTERM or Ctrl-C
    Serve(serve::Serve),
    /// Check a volume: 0 clean, 1 repaired, 4 damage left, 8 could not run
    Check(check::Check),
    /// Tell what a volume is like and how full it is
    Info(info::Info),
    /// Make, list and delete snapshots of a volume that is not served
    #[command(subcommand)]
    Snapshot(family::Snapshot),
    /// Make a clone of a volume that is not served: a device of its own, served by `serve --member`
    Clone(family::Make),
    /// Print what lies on the backing as JSON: label, root, segments, a segment, or a block of the map
    Dump(dump::Dump),
}

impl Volume {
    /// Runs the command.
    pub(crate) fn run(self, global: &Global) -> Result<ExitCode, CliError> {
        global.expect_no_trace_format()?;
        match self {
            Self::Create(create) => create.run(global),
            Self::Serve(serve) => serve.run(global),
            Self::Check(check) => check.run(global),
            Self::Info(info) => info.run(global),
            Self::Snapshot(snapshot) => snapshot.run(global),
            Self::Clone(make) => make.run(global, VolumeDevice::make_clone),
            Self::Dump(dump) => dump.run(global),
        }
    }
}

/// Opens what a volume lies on: an image of an emulated SSD, or any other file or block device.
fn open_backing(path: &Path, write: bool, global: &Global) -> Result<VolumeBacking, CliError> {
    if !is_ssd_image(path) {
        return Ok(VolumeBacking::open(path, write)?);
    }
    let (image, config) = ssd::open(path, Access::Exclusive)?;
    let opened =
        SsdDevice::open(image, &config.ssd(global.seed)?, OpenOptions::new(Latency::None))?;
    Ok(VolumeBacking::ssd(opened.device))
}

fn is_ssd_image(path: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0; 8];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok()
        && &magic == onefold_format::IMAGE_MAGIC
        && Image::open(path, Access::ReadOnly).is_ok()
}
