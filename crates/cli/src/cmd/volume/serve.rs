//! `onefold volume serve`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use onefold_device::observed::Observed;
use onefold_device::{
    DmzOptions, MAP_PAGE_BYTES, OnFull, VolumeBacking, VolumeDevice, VolumeError, VolumeIo,
    VolumeOpened, VolumeOptions,
};
use onefold_format::volume::BlockError;
use onefold_serve::nbd::Endpoint;
use onefold_serve::{Options, Server};
use onefold_units::convert::index64;
use onefold_volume::{Acknowledge, MountError};

use super::dmz;
use super::journal::Journal;
use crate::cmd::control;
use crate::cmd::frontends::Frontends;
use crate::cmd::ssd::render;
use crate::cmd::ssd::serve::Latency;
use crate::cmd::written;
use crate::error::{CliError, Exit};
use crate::output::Global;

/// When writes are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Ack {
    /// When they are in memory; durable after a flush, as always
    Buffer,
    /// When the backing has them; durable after a flush, as always
    Complete,
}

/// What becomes of writes and flushes for which there is no space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Full {
    /// They fail with ENOSPC
    Error,
    /// They wait until trims, deleted snapshots or the host make room; reads go on
    Block,
}

impl From<Full> for OnFull {
    fn from(full: Full) -> Self {
        match full {
            Full::Error => Self::Error,
            Full::Block => Self::Block,
        }
    }
}

/// How requests get to the backing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Io {
    /// Through `io_uring` where the system allows it, else by threads
    Auto,
    /// Through `io_uring`, or not at all
    Uring,
    /// By threads
    Threads,
}

/// Options of `onefold volume serve`.
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// What the volume lies on
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    frontends: Frontends,
    #[command(flatten)]
    dmz: dmz::Served,
    #[command(flatten)]
    journal: Journal,
    /// Serve this snapshot or clone instead of the device of the volume; a snapshot cannot be written
    #[arg(long, value_name = "NAME")]
    snapshot: Option<String>,
    /// Serve a snapshot or clone beside it, over NBD at a place of its own (may be given several times)
    #[arg(long = "member", value_name = "NAME=unix:PATH|ADDR:PORT", value_parser = parse_member)]
    members: Vec<(String, Endpoint)>,
    /// When writes are answered
    #[arg(long, value_enum, default_value = "buffer", value_name = "WHEN")]
    ack: Ack,
    /// What becomes of writes for which there is no space beside snapshots
    #[arg(long, value_enum, default_value = "error", value_name = "WHAT")]
    on_full: Full,
    /// How requests get to a file or a block device
    #[arg(long, value_enum, default_value = "auto", value_name = "HOW")]
    io: Io,
    /// When an emulated SSD below it answers
    #[arg(long, value_enum, default_value = "none", value_name = "HOW")]
    latency: Latency,
    /// Go through the page cache
    #[arg(long)]
    no_direct: bool,
    /// Memory for the map (in mode sung for tables), at least 64MiB [default: all of it, 2 MiB per GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    map_memory: Option<u64>,
    /// Keep blocks that are written often apart from others
    #[arg(long)]
    hot_cold: bool,
    /// Do not check the checksums of what is read
    #[arg(long)]
    no_verify: bool,
    /// Do not tell the backing which log segments hold nothing (files are told only of those that stay free)
    #[arg(long)]
    no_trim: bool,
    /// Clean by copying, also on an emulated SSD that can remap
    #[arg(long)]
    no_remap: bool,
    /// Scrub it in the background now, and again so long after the last scrub began: hours or days, such as 7d
    #[arg(long, value_name = "EVERY", value_parser = super::scrub::parse_every)]
    scrub: Option<Duration>,
    /// Log all that is sent to a backing without zones in this new file, in the format of dm-log-writes
    #[arg(long, value_name = "FILE")]
    write_log: Option<PathBuf>,
    /// Unix socket for `onefold volume info` [default: PATH.sock]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

fn parse_member(text: &str) -> Result<(String, Endpoint), String> {
    let (name, place) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("found {text:?}, expected NAME=unix:PATH or NAME=ADDR:PORT"))?;
    let endpoint: Endpoint = place.parse().map_err(|error| format!("{error}"))?;
    Ok((name.to_owned(), endpoint))
}

fn parse_memory(text: &str) -> Result<u64, String> {
    let bytes = render::parse_size(text)?;
    if bytes < 64 << 20 {
        return Err(format!("found {text:?}, expected at least 64MiB"));
    }
    Ok(bytes)
}

impl Serve {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        if self.dmz.is_of(&self.path, global)? {
            self.expect_dmz()?;
            let control = self.control.as_deref();
            return dmz::serve(
                &self.path,
                &self.dmz,
                DmzOptions { on_full: self.on_full.into(), ..self.journal.of_dmz() },
                (&self.frontends, control),
                global,
            );
        }
        let below = super::open_device_with(&self.path, true, self.latency.into(), global)?;
        dmz::expect_none(&self.path, &below)?;
        let mut backing = below.clone();
        if let Some(log) = &self.write_log {
            backing = backing.with_write_log(log)?;
        }
        let opened = VolumeDevice::open(backing, self.options()?)
            .map_err(|error| self.without_volume(&below, error))?;
        for line in found(&opened) {
            global.say(line);
        }
        let device = opened.device;
        let served = self.serve(global, &device);
        written::report(global, &device);
        let closed = device.close();
        // What ended the serving matters more than what its end led to.
        served?;
        closed?;
        Ok(ExitCode::SUCCESS)
    }

    /// An image of an SSD that holds no volume is no damaged volume.
    fn without_volume(&self, below: &VolumeBacking, error: VolumeError) -> CliError {
        let is_ssd = below.as_ssd().is_some();
        let holds_none =
            matches!(error, VolumeError::Mount(MountError::Label(BlockError::NotOurs)));
        if !holds_none || !(is_ssd || below.as_zoned().is_some()) {
            return error.into();
        }
        let path = self.path.display();
        let text = format!("{path} is the image of an emulated SSD and holds no volume");
        let make = format!("`onefold volume create {path}` makes one");
        CliError::new(Exit::Failed, "volume::label", text).help(if is_ssd {
            format!("`onefold ssd serve {path}` serves the drive itself; {make}")
        } else {
            make
        })
    }

    /// Refuses what volumes of policy dmz do not have.
    fn expect_dmz(&self) -> Result<(), CliError> {
        let given = [
            ("--snapshot", self.snapshot.is_some()),
            ("--member", !self.members.is_empty()),
            ("--ack", self.ack != Ack::Buffer),
            ("--io", self.io != Io::Auto),
            ("--latency", self.latency != Latency::None),
            ("--no-direct", self.no_direct),
            ("--map-memory", self.map_memory.is_some()),
            ("--hot-cold", self.hot_cold),
            ("--no-verify", self.no_verify),
            ("--no-trim", self.no_trim),
            ("--no-remap", self.no_remap),
            ("--scrub", self.scrub.is_some()),
            ("--write-log", self.write_log.is_some()),
        ];
        let Some((option, _)) = given.into_iter().find(|(_, given)| *given) else { return Ok(()) };
        let text = format!("{option} is not for volumes of policy dmz, and this is one");
        Err(CliError::new(Exit::Usage, "volume::dmz", text).help("leave it out"))
    }

    fn serve(&self, global: &Global, device: &VolumeDevice) -> Result<(), CliError> {
        let (asked, commands) = (self.control.as_deref(), super::control::COMMANDS);
        let _control = control::open(global, asked, &self.path, device.clone(), commands)?;
        let mut options = self.frontends.options(&self.path);
        let served = match &self.snapshot {
            Some(name) => device.member(name)?,
            None => device.clone(),
        };
        options.read_only = !served.is_writable();
        let mut beside = Vec::new();
        for (name, endpoint) in &self.members {
            let member = device.member(name)?;
            let mut options = Options::new(name.clone());
            options.read_only = !member.is_writable();
            options.nbd.push(endpoint.clone());
            let extra = Server::start(Observed::new(member), &options)?;
            global.say(format_args!("member {name} on {}", extra.endpoints()[0]));
            beside.push(extra);
        }
        let ready = |server: &Server<VolumeDevice>| {
            self.frontends.announce(global, &self.path, server);
            // Members are served on endpoints of their own.
            if self.members.is_empty() {
                Frontends::end_unmounted(global, server);
            }
        };
        let uuid = device.details().uuid;
        let served = self.frontends.run(global, served, uuid, &options, ready);
        let stopped: Result<Vec<()>, _> = beside.into_iter().map(Server::stop).collect();
        served?;
        stopped?;
        Ok(())
    }

    fn options(&self) -> Result<VolumeOptions, CliError> {
        let mut options = VolumeOptions::default();
        options.engine.acknowledge = match self.ack {
            Ack::Buffer => Acknowledge::Buffered,
            Ack::Complete => Acknowledge::Complete,
        };
        options.on_full = self.on_full.into();
        options.io = match self.io {
            Io::Auto => VolumeIo::Auto,
            Io::Uring => VolumeIo::Uring,
            Io::Threads => VolumeIo::Threads,
        };
        options.direct = !self.no_direct;
        options.remap = !self.no_remap;
        options.scrub = self.scrub;
        if let Some(bytes) = self.map_memory {
            options.engine.map_pages = index64(bytes / MAP_PAGE_BYTES);
            options.engine.table_bytes = bytes;
        }
        options.engine.hot_cold = self.hot_cold;
        options.engine.verify = !self.no_verify;
        options.trim = !self.no_trim;
        options.journals = self.journal.of_log()?;
        Ok(options)
    }
}

/// How the volume was found.
pub(crate) fn found(opened: &VolumeOpened) -> Vec<String> {
    let recovery = &opened.recovery;
    let recovered = (!recovery.clean).then(|| {
        format!(
            "the volume was not closed: recovered {} batches ({} headers read, {} blocks checked) in {} ms",
            recovery.batches,
            recovery.headers,
            recovery.checked_blocks,
            opened.took.as_millis(),
        )
    });
    let details = opened.device.details();
    let remaps = if details.remaps { "; the cleaner moves blocks by remap" } else { "" };
    recovered.into_iter().chain([format!("backing: {}{remaps}", details.io)]).collect()
}
