//! `onefold volume resize`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgGroup, Args};
use onefold_device::{VolumeBacking, VolumeDevice, VolumeError, VolumeOptions, VolumeResize};
use onefold_modes::open_read_only;
use onefold_units::PAGE_BYTES;
use onefold_volume::{
    Codec, Geometry, Layout, MemberInfo, MountError, Options, ResizeError, read_label,
};
use serde_json::{Value, json};

use crate::cmd::control;
use crate::cmd::ssd::render;
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// Options of `onefold volume resize`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
pub(crate) struct ResizeVolume {
    /// What the volume lies on
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// New capacity of the volume, such as 8GiB. Snapshots and clones keep theirs
    #[arg(long, value_name = "SIZE", group = "what", value_parser = render::parse_size)]
    size: Option<u64>,
    /// New size of what it lies on: a file is made as large; a block device has to be as large, or may become as small
    /// afterwards
    #[arg(long, value_name = "SIZE", group = "what", value_parser = render::parse_size)]
    backing_size: Option<u64>,
    /// The clone that gets the new capacity [default: the device of the volume]
    #[arg(long, value_name = "NAME", requires = "size")]
    member: Option<String>,
    /// Lose what lies behind a smaller capacity; without, it has to be trimmed before
    #[arg(long)]
    discard_tail: bool,
    /// Say whether it fits, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Unix socket of its server [default: PATH.sock, if it is served]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

impl ResizeVolume {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        if let Some(server) = super::server_of(&self.path, self.control.as_deref()) {
            return self.ask(&server, global);
        }
        let below = super::open_backing(&self.path, !self.dry_run, global)?;
        let mut backing = below.clone();
        let blocks = backing.blocks();
        let label = read_label(&mut backing, blocks)?;
        let device = Geometry::of(&label);
        let old = match self.clone_of(&mut backing)? {
            Some(info) => Geometry { logical_blocks: info.blocks, ..device },
            None => device,
        };
        let new = Geometry {
            backing_blocks: self.backing_size.map_or(old.backing_blocks, |size| size / PAGE_BYTES),
            logical_blocks: self.size.map_or(old.logical_blocks, |size| size / PAGE_BYTES),
            ..old
        };
        // Both together, before the first of them is changed.
        let was_thin = Layout::new(device).is_ok_and(|layout| layout.is_thin());
        Layout::new(new)
            .and_then(|layout| if was_thin { Ok(layout) } else { layout.not_thin() })
            .map_err(MountError::Geometry)?;
        if !self.dry_run {
            let opened = VolumeDevice::open(backing, VolumeOptions::default())?;
            let to = VolumeResize {
                bytes: self.size,
                backing_bytes: self.backing_size,
                discard_tail: self.discard_tail,
            };
            let done = match &self.member {
                Some(name) => opened.device.member(name).and_then(|clone| clone.resize(&to)),
                None => opened.device.resize(&to),
            };
            opened.device.close()?;
            done?;
        }
        global.emit(&self.text(&old, &new, global))?;
        Ok(ExitCode::SUCCESS)
    }

    /// The clone that is meant, of a volume that is not served.
    fn clone_of(&self, backing: &mut VolumeBacking) -> Result<Option<MemberInfo>, CliError> {
        let Some(name) = &self.member else { return Ok(None) };
        let blocks = backing.blocks();
        let (volume, ..) = open_read_only(backing, blocks, Options::default())?;
        let log = volume.as_log().ok_or(VolumeError::NoMembers)?;
        let info = log.member(name).ok_or(ResizeError::Missing).map_err(VolumeError::from)?;
        if info.writable {
            Ok(Some(info))
        } else {
            Err(VolumeError::from(ResizeError::Snapshot).into())
        }
    }

    /// Has the server do it.
    fn ask(&self, server: &Path, global: &Global) -> Result<ExitCode, CliError> {
        if self.dry_run {
            let text = "the volume is served; --dry-run takes one that is not".to_owned();
            return Err(CliError::new(Exit::Usage, "volume::served", text));
        }
        let (bytes, backing) = (self.size, self.backing_size);
        let tail = self.discard_tail;
        let member = self.member.as_deref();
        let command = json!({
            "cmd": "resize",
            "bytes": bytes,
            "backing_bytes": backing,
            "discard_tail": tail,
            "member": member,
        });
        let before = geometry_of(&control::ask(server, "stats")?, member);
        control::request(server, command)?;
        let after = geometry_of(&control::ask(server, "stats")?, member);
        global.emit(&self.text(&before, &after, global))?;
        Ok(ExitCode::SUCCESS)
    }

    fn text(&self, old: &Geometry, new: &Geometry, global: &Global) -> String {
        let bytes = |blocks: u64| blocks * PAGE_BYTES;
        match global.format() {
            Format::Json => {
                let value = json!({
                    "schema": "onefold.volume.resize/1",
                    "path": self.path.display().to_string(),
                    "member": self.member,
                    "dry_run": self.dry_run,
                    "logical_bytes": bytes(new.logical_blocks),
                    "logical_bytes_before": bytes(old.logical_blocks),
                    "backing_bytes": bytes(new.backing_blocks),
                    "backing_bytes_before": bytes(old.backing_blocks),
                });
                format!("{value:#}\n")
            }
            Format::Table => format!(
                "{}{}: {} of {}, before {} of {}{}\n",
                self.path.display(),
                self.member.as_ref().map_or_else(String::new, |name| format!(", {name}")),
                render::size(bytes(new.logical_blocks)),
                render::size(bytes(new.backing_blocks)),
                render::size(bytes(old.logical_blocks)),
                render::size(bytes(old.backing_blocks)),
                if self.dry_run { "; nothing was changed" } else { "" },
            ),
        }
    }
}

fn codec(name: &str) -> Option<Codec> {
    [Codec::Lz4, Codec::Zstd].into_iter().find(|codec| codec.name() == name)
}

/// The geometry that a server tells, with the size of a member if one is named.
fn geometry_of(stats: &Value, member: Option<&str>) -> Geometry {
    let bytes = |key: &str| stats[key].as_u64().unwrap_or(0);
    let blocks = |key: &str| bytes(key) / PAGE_BYTES;
    let members = stats["members"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named = members.iter().find(|one| member.is_some() && one["name"].as_str() == member);
    let logical =
        named.map_or_else(|| bytes("logical_bytes"), |one| one["bytes"].as_u64().unwrap_or(0));
    let narrow = |blocks: u64| u32::try_from(blocks).unwrap_or(u32::MAX);
    Geometry {
        backing_blocks: blocks("backing_bytes"),
        segment_blocks: narrow(blocks("segment_bytes")),
        zone_blocks: 0,
        unit_blocks: narrow(blocks("unit_bytes")),
        logical_blocks: logical / PAGE_BYTES,
        compress: stats["compress"].as_str().and_then(codec),
    }
}
