//! Volumes of policy `dmz` behind `onefold volume`: a device with conventional zones, or zones and a regular device beside them, which
//! `--cache` names.

mod check;
mod create;
mod describe;
mod dump;
mod serve;

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use clap::Args;
use onefold_device::{Access, DmzCache, DmzDevices, VolumeBacking};
use onefold_format::DmzRoot;
use onefold_journal::Found;
use onefold_volume::{Backing, read_label};

use super::Below;
use crate::error::{CliError, Exit};
use crate::output::Global;

pub(super) use check::check;
pub(crate) use check::look;
pub(super) use create::{CacheToMake, Making, create};
pub(crate) use describe::served;
pub(super) use describe::{info, state, table};
pub(super) use dump::dump;
pub(crate) use serve::found;
pub(super) use serve::{Served, serve};

/// The regular device of a volume of policy `dmz`.
#[derive(Debug, Args)]
pub(super) struct Cache {
    /// PATH is the zoned device of a volume of policy dmz, and this the regular one; none beside conventional zones
    #[arg(long, value_name = "FILE")]
    cache: Option<PathBuf>,
}

impl Cache {
    pub(super) fn path(&self) -> Option<&Path> {
        self.cache.as_deref()
    }
}

/// Opens the devices of a volume.
fn open(
    path: &Path,
    cache: Option<&Path>,
    write: bool,
    global: &Global,
) -> Result<Below<DmzDevices>, CliError> {
    let zoned = super::open_device(path, write, global)?;
    let open = |cache| DmzCache::open(VolumeBacking::open(cache, write)?, write);
    let cache = cache.map(open).transpose()?;
    Ok(Below::new(DmzDevices { cache, zoned: zoned.into_inner() }))
}

/// Metadata sets are looked for in that many conventional zones: their number of zones stands in the record that is looked for.
const SETS_WITHIN: usize = 64;

/// Whether a device with conventional zones holds a volume of policy `dmz`, which needs no other device then.
pub(super) fn is_alone(path: &Path, global: &Global) -> Result<bool, CliError> {
    let looks = if super::is_ssd_image(path) {
        let (_, config) = super::ssd::open(path, Access::ReadOnly)?;
        config.zns(global.seed)?.is_some_and(|zns| zns.conventional.is_some())
    } else {
        // What cannot be looked at is refused where it is opened.
        std::fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device())
    };
    if !looks {
        return Ok(false);
    }
    let backing = super::open_device(path, false, global)?;
    let found = has_root(&mut backing.clone());
    backing.close()?;
    Ok(found)
}

/// The first block says whose the device is. Where it is damaged, what is left of either volume does.
fn has_root(backing: &mut VolumeBacking) -> bool {
    let Ok(Some(report)) = backing.zones() else { return false };
    let conventional = report.zones.iter().take_while(|zone| zone.conventional).count();
    let (blocks, mut block) = (backing.blocks(), [0; 4096]);
    let mut is_root = |backing: &mut VolumeBacking, zone: u64| {
        let at = zone * u64::from(report.zone_blocks);
        Backing::read(backing, at, &mut block).is_ok() && DmzRoot::decode(&block).is_ok()
    };
    if conventional > 0 && is_root(backing, 0) {
        return true;
    }
    let mut others = (1..).take(conventional.clamp(1, SETS_WITHIN) - 1);
    read_label(backing, blocks).is_err() && others.any(|zone| is_root(backing, zone))
}

/// Refuses what is a device of a volume of policy `dmz`: it cannot be used alone.
pub(super) fn expect_none(path: &Path, backing: &VolumeBacking) -> Result<(), CliError> {
    let mut block = [0; 4096];
    let is_readable = backing.blocks() > 0 && backing.clone().read(0, &mut block).is_ok();
    let is_device = is_readable && DmzRoot::decode(&block).is_ok();
    if !is_device && !DmzCache::is_one(backing) {
        return Ok(());
    }
    let zoned = backing.as_zoned().is_some();
    backing.close()?;
    let which = if zoned { "zoned" } else { "regular" };
    let text = format!("{} is the {which} device of a volume of policy dmz", path.display());
    Err(CliError::new(Exit::Usage, "volume::dmz", text).help(
        "name the zoned device, and the regular one with --cache if there is one; such volumes have create, serve, info, check, dump and \
         journals, and no snapshots, clones or other sizes",
    ))
}

/// What file systems on a volume that is not served keep where.
pub(super) fn journals(
    path: &Path,
    cache: Option<&Path>,
    global: &Global,
) -> Result<Found, CliError> {
    let devices = open(path, cache, false, global)?;
    let mut checked = devices.inspect()?;
    let found = content(&mut checked);
    devices.close()?;
    Ok(found)
}

fn content(checked: &mut onefold_device::DmzChecked) -> Found {
    let blocks = checked.inspection.blocks();
    super::survey::survey(blocks, |lba, block| checked.read(lba.raw(), block).is_some())
}
