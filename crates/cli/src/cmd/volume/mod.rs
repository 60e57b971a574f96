//! `onefold volume`: a log-structured volume on a file, a block device, or an emulated SSD.

mod advise;
mod check;
mod control;
mod create;
mod dmz;
mod dump;
mod failure;
mod family;
mod info;
mod journal;
mod journals;
mod modes;
mod rebuild;
mod resize;
mod scrub;
mod serve;
mod write_log;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use onefold_device::{
    Access, Image, Latency, OpenOptions, SsdDevice, VolumeBacking, VolumeDevice, ZonedDevice,
};

use crate::cmd::{control as control_socket, ssd};
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
    /// Read all that is live along the log, compare it with its checksums, and write anew what can be: headers and blocks of the
    /// map are looked at too, which `check --data` does not do. A served volume does it beside all else. Exit codes as of check
    Scrub(scrub::Scrub),
    /// Tell what a volume is like and how full it is
    Info(info::Info),
    /// Tell where file systems keep their journals on a volume, or on any device or image of one
    Journals(journals::Journals),
    /// Change the capacity of a volume, or the size of what it lies on
    Resize(resize::ResizeVolume),
    /// Make, list and delete snapshots of a volume, also while it is served
    #[command(subcommand)]
    Snapshot(family::Snapshot),
    /// Make a clone of a volume, also while it is served: a device of its own, for `serve --member`
    Clone(family::Make),
    /// Say whether a volume would help on a device, and why; only reads it unless told otherwise
    Advise(advise::Advise),
    /// Print what lies on the backing as JSON: label, root, segments, a segment, or a block of the map
    Dump(dump::Dump),
    /// List, replay and mark logs of what volumes sent to what they lie on (`serve --write-log`)
    #[command(subcommand)]
    WriteLog(write_log::WriteLogs),
}

impl Volume {
    /// Runs the command.
    pub(crate) fn run(self, global: &Global) -> Result<ExitCode, CliError> {
        global.expect_no_trace_format()?;
        match self {
            Self::Create(create) => create.run(global),
            Self::Serve(serve) => serve.run(global),
            Self::Check(check) => check.run(global),
            Self::Scrub(scrub) => scrub.run(global),
            Self::Info(info) => info.run(global),
            Self::Journals(journals) => journals.run(global),
            Self::Resize(resize) => resize.run(global),
            Self::Snapshot(snapshot) => snapshot.run(global),
            Self::Clone(make) => make.run(global, "clone", VolumeDevice::make_clone),
            Self::Advise(advise) => advise.run(global),
            Self::Dump(dump) => dump.run(global),
            Self::WriteLog(logs) => logs.run(global),
        }
    }
}

/// Opens what a volume lies on: an image of an emulated SSD, or any other file or block device.
fn open_backing(path: &Path, write: bool, global: &Global) -> Result<VolumeBacking, CliError> {
    let backing = open_device(path, write, global)?;
    dmz::expect_none(path, &backing)?;
    Ok(backing)
}

/// The same, whatever it holds.
fn open_device(path: &Path, write: bool, global: &Global) -> Result<VolumeBacking, CliError> {
    if !is_ssd_image(path) {
        return Ok(VolumeBacking::open(path, write)?);
    }
    let (image, config) = ssd::open(path, Access::Exclusive)?;
    if let Some(zns) = config.zns(global.seed)? {
        return Ok(VolumeBacking::zoned(ZonedDevice::open(image, &zns)?.device));
    }
    let opened =
        SsdDevice::open(image, &config.ssd(global.seed)?, OpenOptions::new(Latency::None))?;
    Ok(VolumeBacking::ssd(opened.device))
}

/// The control socket of whoever serves a volume: the one that was asked for, or that of a volume that is busy. An image
/// of an emulated SSD, too, is busy as a file while it is served.
fn server_of(path: &Path, asked: Option<&Path>) -> Option<PathBuf> {
    let default = || VolumeBacking::is_busy(path).then(|| control_socket::default_path(path));
    asked.map(Path::to_owned).or_else(default)
}

fn is_ssd_image(path: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0; 8];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok()
        && &magic == onefold_format::IMAGE_MAGIC
        && Image::open(path, Access::ReadOnly).is_ok()
}
