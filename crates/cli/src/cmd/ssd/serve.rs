//! `onefold ssd serve`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use onefold_device::{Access, OpenOptions, Opened, SsdDevice};
use onefold_serve::Server;

use super::cut::Cut;
use crate::cmd::control;
use crate::cmd::frontends::Frontends;
use crate::cmd::written;
use crate::error::{CliError, Exit};
use crate::interrupt::Served;
use crate::output::Global;

/// When requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Latency {
    /// Not before the modelled device would
    Model,
    /// At once
    None,
}

impl From<Latency> for onefold_device::Latency {
    fn from(latency: Latency) -> Self {
        match latency {
            Latency::Model => Self::Model,
            Latency::None => Self::None,
        }
    }
}

/// What becomes of writes while the host has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Full {
    /// They fail
    Error,
    /// They wait for it
    Block,
}

/// Options of `onefold ssd serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The image, made by `onefold ssd create`
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    #[command(flatten)]
    frontends: Frontends,
    /// Change a key of `buffer` or `timing` while the device is served (may be given several times)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// When requests are answered
    #[arg(long, value_enum, default_value = "model", value_name = "HOW")]
    latency: Latency,
    /// What becomes of writes and flushes while the file system under the image is full
    #[arg(long, value_enum, default_value = "error", value_name = "WHAT")]
    on_full: Full,
    /// Cut the power of the drive while it is served: after=Nwrites, every=TIME, or signal for SIGUSR1. What was not
    /// flushed may be lost, NBD clients have to connect again, and the FUSE file fails what is in flight
    #[arg(long, value_name = "WHEN", conflicts_with = "tape")]
    cut: Option<Cut>,
    /// Unix socket for `onefold ssd info` [default: IMAGE.sock]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

impl Serve {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let (image, config) = super::open(&self.image, Access::Exclusive)?;
        if config.zns(global.seed)?.is_some() {
            return Err(self.no_zones());
        }
        let ssd = config.with_sets(&self.sets, onefold_config::SERVED)?.ssd(global.seed)?;
        let mut options = OpenOptions::new(self.latency.into());
        if self.on_full == Full::Block {
            if self.cut.is_some() {
                return Err(no_cut_beside_waiting());
            }
            options = options.waiting_for_room();
        }
        if let Some(cut) = self.cut {
            cut.listen(global)?;
        }
        let opened = SsdDevice::open(image, &ssd, options)?;
        for line in found(&opened) {
            global.say(line);
        }
        let device = opened.device;
        let served = self.serve(global, &device);
        self.tell_unrecorded(global, &device);
        written::report(global, &device);
        let closed = device.close();
        // What ended the serving matters more than what its end led to.
        served?;
        closed?;
        Ok(ExitCode::SUCCESS)
    }

    fn no_zones(&self) -> CliError {
        let path = self.image.display();
        let text = format!(
            "{path} has a zoned namespace, and neither NBD nor FUSE has commands for zones"
        );
        CliError::new(Exit::Usage, "serve::zoned", text).help(format_args!(
            "`onefold volume create {path}` makes a volume on it, which `onefold volume serve {path}` exports"
        ))
    }

    fn serve(&self, global: &Global, device: &SsdDevice) -> Result<(), CliError> {
        let asked = self.control.as_deref();
        let device_of_control = device.clone();
        let _control =
            control::open(global, asked, &self.image, device_of_control, super::control::COMMANDS)?;
        let ready = |server: &Server<SsdDevice>| {
            if let Some(cut) = self.cut {
                cut.arm(global, server);
            }
            self.frontends.announce(global, &self.image, server);
            Frontends::end_unmounted(global, server);
        };
        let options = self.frontends.options(&self.image);
        let mut was_cut = Ok(());
        let wait = |server: &Server<SsdDevice>, signals: &Served| match self.cut {
            Some(cut) => was_cut = cut.serve(global, server, signals),
            None => signals.wait(),
        };
        let uuid = device.uuid();
        let served = self.frontends.run_until(global, device.clone(), uuid, &options, ready, wait);
        // A drive that did not come up again cannot be flushed at the end either.
        was_cut?;
        served
    }

    /// A trace has no place for snapshots, and the contents of a tape none for what was not sent.
    fn tell_unrecorded(&self, global: &Global, device: &SsdDevice) {
        let Some(details) = device.details() else { return };
        let units = details.snapshot_units;
        if let Some(path) = self.frontends.record().filter(|_| units > 0) {
            global.say(format_args!(
                "snapshots are not recorded: {} lacks what they did with {units} mapping units, and a \
                 replay of it does without that",
                path.display()
            ));
        }
        let pages = details.host.remap_pages;
        if let Some(path) = self.frontends.tape().filter(|_| pages > 0 || units > 0) {
            global.say(format_args!(
                "the contents of {} lack what remaps of {pages} pages and snapshots changed: its states \
                 after a power cut are not those of the drive",
                path.display()
            ));
        }
    }
}

fn no_cut_beside_waiting() -> CliError {
    let text = "--cut and --on-full block exclude each other: a request that waits for room on the host would hold up the cut";
    CliError::new(Exit::Usage, "serve::cut", text).help("leave one of them out")
}

/// How the device was found.
pub(crate) fn found(opened: &Opened) -> Vec<String> {
    let recovery = &opened.recovery;
    let mut lines = Vec::new();
    if !opened.was_clean {
        lines.push(format!(
            "the device was not shut down cleanly: recovered {} units, {} torn slots, {} lost units",
            recovery.mapped_units, recovery.torn_slots, recovery.lost_units,
        ));
    }
    if opened.was_clean && recovery.lost_units > 0 {
        lines.push(format!("{} units are lost and read as errors", recovery.lost_units));
    }
    if opened.buffer_made_volatile {
        lines.push(
            "buffer.volatile = false does not hold for a process: what is not flushed is lost with \
             it, and FLUSH writes the buffer out"
                .to_owned(),
        );
    }
    lines
}
