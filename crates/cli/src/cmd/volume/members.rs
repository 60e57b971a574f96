//! `onefold volume snapshot` and `onefold volume clone`: members of a volume, which its server makes if it is served.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use onefold_device::{VolumeDevice, VolumeError, VolumeOptions};
use onefold_format::volume::VolumeName;
use onefold_modes::open_read_only;
use onefold_units::PAGE_BYTES;
use onefold_volume::{MemberInfo, Options};
use serde_json::{Value, json};

use crate::cmd::control;
use crate::cmd::ssd::render;
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// Subcommands of `onefold volume snapshot`.
#[derive(Debug, Subcommand)]
pub(crate) enum Snapshot {
    /// Make a snapshot of a volume as it is now
    Create(Make),
    /// List the snapshots and clones of a volume
    List {
        #[command(flatten)]
        volume: Place,
    },
    /// Delete a snapshot or a clone, and free what it alone holds
    Delete {
        #[command(flatten)]
        volume: Place,
        /// Its name
        name: String,
    },
}

/// Where a volume is found.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// What the volume lies on
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Unix socket of its server [default: PATH.sock, if it is served]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

impl Place {
    /// Has the server do it, or opens the volume for that.
    fn with(
        &self,
        global: &Global,
        command: Value,
        what: impl FnOnce(&VolumeDevice) -> Result<(), VolumeError>,
    ) -> Result<ExitCode, CliError> {
        if let Some(server) = super::server_of(&self.path, self.control.as_deref()) {
            control::request(&server, command)?;
            return Ok(ExitCode::SUCCESS);
        }
        let below = super::open_backing(&self.path, true, global)?;
        let backing = below.clone();
        let device = VolumeDevice::open(backing, VolumeOptions::default())?.device;
        let done = what(&device);
        let closed = device.close();
        // What went wrong first matters more.
        done?;
        closed?;
        Ok(ExitCode::SUCCESS)
    }

    fn members(&self, global: &Global) -> Result<Value, CliError> {
        if let Some(server) = super::server_of(&self.path, self.control.as_deref()) {
            return control::ask(&server, "members");
        }
        let below = super::open_backing(&self.path, false, global)?;
        let mut backing = below.clone();
        let blocks = backing.blocks();
        let (volume, ..) = open_read_only(&mut backing, blocks, Options::default())?;
        let log = volume.as_log().ok_or(VolumeError::NoMembers)?;
        Ok(describe(&log.members().collect::<Vec<_>>()))
    }
}

/// Options of `onefold volume snapshot create` and `onefold volume clone`.
#[derive(Debug, Args)]
pub(crate) struct Make {
    #[command(flatten)]
    volume: Place,
    /// Name of what is made, 1 to 32 bytes
    name: String,
    /// The snapshot or clone that it is made of [default: the device of the volume]
    #[arg(long, value_name = "NAME")]
    of: Option<String>,
}

impl Snapshot {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        match self {
            Self::Create(make) => make.run(global, "snapshot", VolumeDevice::make_snapshot),
            Self::List { volume } => {
                let members = volume.members(global)?;
                global.emit(&match global.format() {
                    Format::Json => format!("{members:#}\n"),
                    Format::Table => lines(&members),
                })?;
                Ok(ExitCode::SUCCESS)
            }
            Self::Delete { volume, name } => {
                volume.with(global, json!({"cmd": "delete", "name": name}), |device| {
                    device.delete_member(name)?;
                    device.wait_until_freed();
                    Ok(())
                })
            }
        }
    }
}

impl Make {
    pub(super) fn run(
        &self,
        global: &Global,
        command: &str,
        make: impl FnOnce(&VolumeDevice, &VolumeName) -> Result<(), VolumeError>,
    ) -> Result<ExitCode, CliError> {
        let name = VolumeName::new(&self.name)
            .map_err(|error| CliError::new(Exit::Usage, "volume::name", error))?;
        let command = json!({"cmd": command, "name": self.name, "of": self.of});
        self.volume.with(global, command, |device| match &self.of {
            Some(of) => make(&device.member(of)?, &name),
            None => make(device, &name),
        })
    }
}

const fn kind(info: &MemberInfo) -> &'static str {
    if info.writable { "clone" } else { "snapshot" }
}

/// One line for each member that [`describe`] lists.
fn lines(members: &Value) -> String {
    let list = members.as_array().map(Vec::as_slice).unwrap_or_default();
    let line = |member: &Value| {
        let word = |key: &str| member[key].as_str().unwrap_or_default().to_owned();
        let parent = list.iter().find(|other| other["id"] == member["parent"]);
        let parent = match parent {
            Some(parent) => parent["name"].as_str().unwrap_or_default().to_owned(),
            None if member["parent"] == 0 => "the device".to_owned(),
            None => "one that was deleted".to_owned(),
        };
        let deleted = if member["deleted"] == true { ", being freed" } else { "" };
        let size = render::size(member["bytes"].as_u64().unwrap_or(0));
        format!("{}: {} of {parent}, {size}{deleted}\n", word("name"), word("kind"))
    };
    list.iter().map(line).collect()
}

/// All members but the device.
pub(super) fn describe(members: &[MemberInfo]) -> Value {
    let one = |info: &MemberInfo| {
        json!({
            "id": info.id.raw(),
            "parent": info.parent.raw(),
            "name": info.name,
            "kind": kind(info),
            "bytes": info.blocks * PAGE_BYTES,
            "deleted": info.deleted,
            "batch": info.seq,
        })
    };
    members.iter().skip(1).map(one).collect()
}
