//! Serving a volume of policy `dmz`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use onefold_device::{BlockDevice, DmzOpened, DmzOptions, DmzVolume};
use onefold_serve::Server;
use onefold_units::PAGE_BYTES;
use onefold_units::convert::float;
use serde_json::Value;

use super::describe;
use crate::cmd::control::{self, Command};
use crate::cmd::frontends::Frontends;
use crate::cmd::ssd::render;
use crate::error::CliError;
use crate::output::Global;

/// Options that only volumes of policy `dmz` have.
#[derive(Debug, Args)]
pub(crate) struct Served {
    /// PATH is the zoned device of a volume of policy dmz, and this the regular one; none beside conventional zones
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "snapshot", "members", "ack", "io", "no_direct", "map_memory", "hot_cold", "no_verify", "no_trim",
            "no_remap", "scrub", "write_log"
        ]
    )]
    cache: Option<PathBuf>,
}

impl Served {
    /// Whether PATH is to be, or is, a device of such a volume.
    pub(in super::super) fn is_of(&self, path: &Path, global: &Global) -> Result<bool, CliError> {
        Ok(self.cache.is_some() || super::is_alone(path, global)?)
    }
}

/// What the control socket answers.
const COMMANDS: &[Command<DmzVolume>] = &[("stats", stats), ("flush", flush)];

#[expect(clippy::unnecessary_wraps, reason = "the form of a command")]
fn stats(device: &DmzVolume, _: &Value) -> Result<Value, String> {
    Ok(describe::served(&device.details()))
}

fn flush(device: &DmzVolume, _: &Value) -> Result<Value, String> {
    device.flush().map(|_| Value::Null).map_err(|status| format!("the flush failed, as {status}"))
}

pub(in super::super) fn serve(
    path: &Path,
    asked: &Served,
    options: DmzOptions,
    (frontends, control): (&Frontends, Option<&Path>),
    global: &Global,
) -> Result<ExitCode, CliError> {
    let devices = super::open(path, asked.cache.as_deref(), true, global)?;
    let opened = DmzVolume::open(devices.clone(), options)?;
    for line in found(&opened) {
        global.say(line);
    }
    let device = opened.device;
    let served = run(path, &device, (frontends, control), global);
    report(global, &device);
    let closed = device.close();
    // What ended the serving matters more than what its end led to.
    served?;
    closed?;
    Ok(ExitCode::SUCCESS)
}

fn run(
    path: &Path,
    device: &DmzVolume,
    (frontends, control): (&Frontends, Option<&Path>),
    global: &Global,
) -> Result<(), CliError> {
    let _control = control::open(global, control, path, device.clone(), COMMANDS)?;
    let options = frontends.options(path);
    let ready = |server: &Server<DmzVolume>| {
        frontends.announce(global, path, server);
        Frontends::end_unmounted(global, server);
    };
    frontends.run(global, device.clone(), device.details().uuid, &options, ready)
}

/// How the volume was found.
pub(crate) fn found(opened: &DmzOpened) -> Vec<String> {
    let recovery = &opened.recovery;
    let sums = opened.device.details().cache_sums.unwrap_or_default();
    let mut lines = Vec::new();
    if sums.remade_regions > 0 {
        lines.push(format!(
            "the cache was not closed: the checksums of {} of its {} regions of 4 MiB made anew",
            sums.remade_regions, sums.regions,
        ));
    }
    if sums.unread_blocks > 0 {
        lines.push(format!(
            "{} of their blocks cannot be read: they are errors until they are written",
            sums.unread_blocks,
        ));
    }
    if recovery.repaired_blocks > 0 || recovery.reset_zones > 0 {
        lines.push(format!(
            "the volume was not closed: {} blocks of metadata made equal, {} zones reset, in {} ms",
            recovery.repaired_blocks,
            recovery.reset_zones,
            opened.took.as_millis(),
        ));
    }
    lines
}

/// Says what became of the writes.
fn report(global: &Global, device: &DmzVolume) {
    let details = device.details();
    let Some(amplification) = details.write_amplification() else { return };
    let written = details.stats.written * PAGE_BYTES;
    let shares: Vec<String> = details
        .sent_bytes()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(name, bytes)| format!("{name} {:.3}", float(bytes) / float(written)))
        .collect();
    global.say(format_args!(
        "{} written; sent to its devices per byte written: {amplification:.3} ({})",
        render::size(written),
        shares.join(", "),
    ));
}
