//! `onefold volume`: a log-structured volume on a file, a block device, or an emulated SSD.

mod advise;
pub(crate) mod check;
pub(crate) mod control;
mod create;
pub(crate) mod dmz;
mod dump;
mod failure;
mod faulty;
mod info;
mod journal;
mod journals;
mod members;
mod modes;
mod rebuild;
mod resize;
mod scrub;
pub(crate) mod serve;
mod survey;
mod what;
mod write_log;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use onefold_device::{
    Access, DeviceError, DmzDevices, Image, Latency, OpenOptions, SsdDevice, VolumeBacking,
    VolumeDevice, ZonedDevice,
};

use crate::cmd::{control as control_socket, ssd};
use crate::error::{CliError, Exit};
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
    Snapshot(members::Snapshot),
    /// Make a clone of a volume, also while it is served: a device of its own, for `serve --member`
    Clone(members::Make),
    /// Say whether a volume would help: the load is simulated on a model of the drive, alone and through a volume. The device is
    /// only read unless told otherwise
    Advise(advise::Advise),
    /// Print what lies on the backing as JSON: label, root, segments, a segment, or a block of the map
    Dump(dump::Dump),
    /// List, replay and mark logs of what volumes sent to what they lie on (`serve --write-log`)
    #[command(subcommand)]
    WriteLog(write_log::WriteLogs),
}

impl Volume {
    /// What a signal leaves, unless it is all as it was.
    const fn leaves(&self) -> Option<&'static str> {
        match self {
            Self::Create(_) => {
                Some("the volume may not be whole; `volume create --force` makes it anew")
            }
            Self::WriteLog(write_log::WriteLogs::Replay(_)) => {
                Some("TARGET has a part of the log; replay it to a copy as it was before")
            }
            Self::Info(_)
            | Self::Journals(_)
            | Self::Advise(_)
            | Self::Dump(_)
            | Self::WriteLog(_) => None,
            // A server that is asked goes on with what it was asked for.
            _ => Some(
                "what was under way is as after a power cut: nothing that was durable is lost, and the same command can be given again",
            ),
        }
    }

    /// Runs the command.
    pub(crate) fn run(self, global: &Global) -> Result<ExitCode, CliError> {
        if let Some(left) = self.leaves() {
            global.interrupt.leaves(left);
        }
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

/// What a volume lies on, closed however the command ends: an image of an emulated SSD that is opened, to be looked at too, is
/// recovered when it is opened next, unless it was closed.
struct Below<T: Close = VolumeBacking> {
    inner: T,
    /// Somebody else closes it.
    is_left: bool,
}

/// What can be ended in good order, and once more without harm.
trait Close {
    fn end(&self) -> Result<(), CliError>;
}

impl Close for VolumeBacking {
    fn end(&self) -> Result<(), CliError> {
        Ok(self.close()?)
    }
}

impl Close for DmzDevices {
    fn end(&self) -> Result<(), CliError> {
        Ok(self.close()?)
    }
}

impl Below {
    /// What is closed by somebody else.
    fn into_inner(mut self) -> VolumeBacking {
        self.is_left = true;
        self.inner.clone()
    }
}

impl<T: Close> Below<T> {
    const fn new(inner: T) -> Self {
        Self { inner, is_left: false }
    }
}

impl<T: Close> Deref for Below<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: Close> Drop for Below<T> {
    fn drop(&mut self) {
        // Whoever has to know whether that worked closes it himself.
        if !self.is_left
            && let Err(error) = self.inner.end()
        {
            tracing::warn!(
                ?error,
                "what lies below could not be closed; it recovers when it is opened again"
            );
        }
    }
}

/// Opens what a volume lies on: an image of an emulated SSD, or any other file or block device.
fn open_backing(path: &Path, write: bool, global: &Global) -> Result<Below, CliError> {
    let backing = open_device(path, write, global)?;
    dmz::expect_none(path, &backing)?;
    Ok(backing)
}

/// As [`open_backing`], whatever it holds.
fn open_device(path: &Path, write: bool, global: &Global) -> Result<Below, CliError> {
    open_device_with(path, write, Latency::None, global)
}

/// The same; an emulated SSD answers when `latency` says.
fn open_device_with(
    path: &Path,
    write: bool,
    latency: Latency,
    global: &Global,
) -> Result<Below, CliError> {
    if !is_ssd_image(path) {
        expect_no_model(path, latency)?;
        return Ok(Below::new(VolumeBacking::open(path, write)?));
    }
    let (image, config) = ssd::open(path, Access::Exclusive)?;
    if let Some(zns) = config.zns(global.seed)? {
        expect_no_model(path, latency)?;
        return Ok(Below::new(VolumeBacking::zoned(ZonedDevice::open(image, &zns)?.device)));
    }
    let opened = SsdDevice::open(image, &config.ssd(global.seed)?, OpenOptions::new(latency))?;
    Ok(Below::new(VolumeBacking::ssd(opened.device)))
}

/// Refuses modelled time where nothing models it.
fn expect_no_model(path: &Path, latency: Latency) -> Result<(), CliError> {
    if latency == Latency::None {
        return Ok(());
    }
    let text = format!(
        "--latency model is for an emulated SSD without zones, and {} is none",
        path.display()
    );
    Err(CliError::new(Exit::Usage, "volume::latency", text).help("leave it out"))
}

/// The control socket of whoever serves a volume: the one that was asked for, or that of a volume that is busy. An image
/// of an emulated SSD, too, is busy as a file while it is served. Where nobody answers, the server is gone or has another socket:
/// opening the volume tells which.
fn server_of(path: &Path, asked: Option<&Path>) -> Option<PathBuf> {
    let default = || {
        let socket = control_socket::default_path(path);
        (VolumeBacking::is_busy(path) && control_socket::answers(&socket)).then_some(socket)
    };
    asked.map(Path::to_owned).or_else(default)
}

pub(crate) fn is_ssd_image(path: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0; 8];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    if read.is_err() || &magic != onefold_format::IMAGE_MAGIC {
        return false;
    }
    // One that somebody has open is one all the same: as any other file it would be overwritten.
    matches!(Image::open(path, Access::ReadOnly), Ok(_) | Err(DeviceError::Busy { .. }))
}
