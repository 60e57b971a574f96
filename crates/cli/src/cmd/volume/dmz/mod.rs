//! Volumes of policy `dmz` behind `onefold volume`: a zoned image and a regular device beside it, which `--cache` names.

mod check;
mod create;
mod describe;
mod dump;
mod serve;

use std::path::{Path, PathBuf};

use clap::Args;
use onefold_device::{DmzDevices, VolumeBacking};
use onefold_format::DmzRoot;
use onefold_journal::Found;
use onefold_volume::Backing;

use crate::error::{CliError, Exit};
use crate::output::Global;

pub(super) use check::check;
pub(super) use create::{CacheToMake, Making, create};
pub(super) use describe::{info, state, table};
pub(super) use dump::dump;
pub(super) use serve::{Served, serve};

/// The regular device of a volume of policy `dmz`.
#[derive(Debug, Args)]
pub(super) struct Cache {
    /// PATH is the zoned device of a volume of policy dmz, and this the regular one
    #[arg(long, value_name = "FILE")]
    cache: Option<PathBuf>,
}

impl Cache {
    pub(super) fn path(&self) -> Option<&Path> {
        self.cache.as_deref()
    }
}

/// Opens both devices of a volume.
fn open(path: &Path, cache: &Path, write: bool, global: &Global) -> Result<DmzDevices, CliError> {
    let zoned = super::open_device(path, write, global)?;
    Ok(DmzDevices { cache: VolumeBacking::open(cache, write)?, zoned })
}

/// Refuses what is a device of a volume of policy `dmz`: it cannot be used alone.
pub(super) fn expect_none(path: &Path, backing: &VolumeBacking) -> Result<(), CliError> {
    let mut block = [0; 4096];
    let is_readable = backing.blocks() > 0 && backing.clone().read(0, &mut block).is_ok();
    if !is_readable || DmzRoot::decode(&block).is_err() {
        return Ok(());
    }
    let zoned = backing.as_zoned().is_some();
    backing.close()?;
    let which = if zoned { "zoned" } else { "regular" };
    let text = format!("{} is the {which} device of a volume of policy dmz", path.display());
    Err(CliError::new(Exit::Usage, "volume::dmz", text).help(
        "name the zoned device, and the regular one with --cache; such volumes have create, serve, info, check, dump and \
         journals, and no snapshots, clones or other sizes",
    ))
}

/// What file systems on a volume that is not served keep where.
pub(super) fn journals(path: &Path, cache: &Path, global: &Global) -> Result<Found, CliError> {
    let devices = open(path, cache, false, global)?;
    let mut checked = devices.inspect()?;
    let found = content(&mut checked);
    devices.close()?;
    Ok(found)
}

fn content(checked: &mut onefold_device::DmzChecked) -> Found {
    let blocks = checked.inspection.blocks();
    super::journals::survey(blocks, |lba, block| checked.read(lba.raw(), block).is_some())
}
