//! `onefold volume snapshot` and `onefold volume clone`: members of a volume that nobody serves.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use onefold_device::{VolumeDevice, VolumeError, VolumeOptions};
use onefold_format::volume::VolumeName;
use onefold_volume::{MemberInfo, Options, mount_read_only};
use serde_json::{Value, json};

use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// Subcommands of `onefold volume snapshot`.
#[derive(Debug, Subcommand)]
pub(crate) enum Snapshot {
    /// Make a snapshot of a volume as it is now
    Create(Make),
    /// List the snapshots and clones of a volume
    List {
        /// What the volume lies on
        #[arg(value_name = "PATH")]
        path: PathBuf,
    },
    /// Delete a snapshot or a clone, and free what it alone holds
    Delete {
        /// What the volume lies on
        #[arg(value_name = "PATH")]
        path: PathBuf,
        /// Its name
        name: String,
    },
}

/// Options of `onefold volume snapshot create` and `onefold volume clone`.
#[derive(Debug, Args)]
pub(crate) struct Make {
    /// What the volume lies on
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Name of what is made, 1 to 32 bytes
    name: String,
    /// The snapshot or clone that it is made of [default: the device of the volume]
    #[arg(long, value_name = "NAME")]
    of: Option<String>,
}

impl Snapshot {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        match self {
            Self::Create(make) => make.run(global, VolumeDevice::make_snapshot),
            Self::List { path } => {
                let mut backing = super::open_backing(path, false, global)?;
                let blocks = backing.blocks();
                let (volume, ..) = mount_read_only(&mut backing, blocks, Options::default())?;
                let members: Vec<MemberInfo> = volume.members().collect();
                global.emit(&match global.format() {
                    Format::Json => format!("{:#}\n", describe(&members)),
                    Format::Table => {
                        members.iter().skip(1).map(|info| line(info, &members)).collect()
                    }
                })?;
                Ok(ExitCode::SUCCESS)
            }
            Self::Delete { path, name } => with(path, global, |device| {
                device.delete_member(name)?;
                device.wait_until_freed();
                Ok(())
            }),
        }
    }
}

impl Make {
    pub(super) fn run(
        &self,
        global: &Global,
        make: impl FnOnce(&VolumeDevice, &VolumeName) -> Result<(), VolumeError>,
    ) -> Result<ExitCode, CliError> {
        let name = VolumeName::new(&self.name)
            .map_err(|error| CliError::new(Exit::Usage, "volume::name", error))?;
        with(&self.path, global, |device| match &self.of {
            Some(of) => make(&device.member(of)?, &name),
            None => make(device, &name),
        })
    }
}

/// Does something with a volume that is opened for that.
fn with(
    path: &std::path::Path,
    global: &Global,
    what: impl FnOnce(&VolumeDevice) -> Result<(), VolumeError>,
) -> Result<ExitCode, CliError> {
    let backing = super::open_backing(path, true, global)?;
    let device = VolumeDevice::open(backing, VolumeOptions::default())?.device;
    let done = what(&device);
    let closed = device.close();
    // What went wrong first matters more.
    done?;
    closed?;
    Ok(ExitCode::SUCCESS)
}

const fn kind(info: &MemberInfo) -> &'static str {
    if info.writable { "clone" } else { "snapshot" }
}

fn line(info: &MemberInfo, all: &[MemberInfo]) -> String {
    let parent = all.iter().find(|other| other.id == info.parent);
    let parent = match parent.map(|parent| parent.name.as_str()) {
        Some("") => "the device",
        Some(name) => name,
        None => "one that was deleted",
    };
    let deleted = if info.deleted { ", being freed" } else { "" };
    format!("{}: {} of {parent}{deleted}\n", info.name, kind(info))
}

/// All members but the device.
pub(super) fn describe(members: &[MemberInfo]) -> Value {
    let one = |info: &MemberInfo| {
        json!({
            "id": info.id.raw(),
            "parent": info.parent.raw(),
            "name": info.name,
            "kind": kind(info),
            "deleted": info.deleted,
            "batch": info.seq,
        })
    };
    members.iter().skip(1).map(one).collect()
}
