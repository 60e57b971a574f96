//! Making a volume of policy `dmz`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use onefold_device::{DmzCache, DmzDevices, DmzMade, VolumeBacking};
use onefold_units::PAGE_BYTES;
use onefold_zoned::ZoneKind;
use serde_json::json;

use crate::cmd::ssd::render;
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// The regular device of a volume that is made.
#[derive(Debug, Args)]
pub(crate) struct CacheToMake {
    /// With --zoned dmz: the regular file or block device whose space is the cache; none if PATH has conventional zones
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["size", "mode", "op", "segment", "unit"]
    )]
    cache: Option<PathBuf>,
    /// Make FILE first, of this size, a multiple of the zone size; one that exists is never touched
    #[arg(long, value_name = "SIZE", value_parser = render::parse_size, requires = "cache")]
    cache_size: Option<u64>,
    /// Keep checksums of all that FILE will hold: what rots there is an error then, and not wrong bytes. The kernel and older builds
    /// refuse such a volume. They take a thousandth of FILE, which is longer than --cache-size by that
    #[arg(long, requires = "cache")]
    cache_checksums: bool,
}

impl CacheToMake {
    pub(in super::super) fn expect_none(&self) -> Result<(), CliError> {
        if self.cache.is_none() {
            return Ok(());
        }
        let text = "--cache belongs to policy dmz, and another one is asked for";
        Err(CliError::new(Exit::Usage, "volume::cache", text).help("add --zoned dmz"))
    }
}

/// How a volume is made.
pub(crate) struct Making<'a> {
    pub(in super::super) name: &'a str,
    pub(in super::super) force: bool,
    pub(in super::super) dry_run: bool,
}

pub(in super::super) fn create(
    path: &Path,
    cache: &CacheToMake,
    how: &Making<'_>,
    global: &Global,
) -> Result<ExitCode, CliError> {
    let zoned = super::super::open_device(path, !how.dry_run, global)?;
    let made = make(zoned.clone(), cache, how, global)?;
    global.emit(&text(path, cache, &made, how.dry_run, global))?;
    Ok(ExitCode::SUCCESS)
}

fn make(
    zoned: VolumeBacking,
    asked: &CacheToMake,
    how: &Making<'_>,
    global: &Global,
) -> Result<DmzMade, CliError> {
    let (file, size, checksums) = (asked.cache.as_deref(), asked.cache_size, asked.cache_checksums);
    let made_here = file.filter(|_| size.is_some());
    let cache = match (file, size) {
        (Some(file), Some(bytes)) => Some(DmzCache::create(file, bytes, checksums)?),
        (Some(file), None) => {
            Some(DmzCache::to_make(VolumeBacking::open(file, !how.dry_run)?, checksums))
        }
        (None, _) => None,
    };
    // What was here before is not in the list: it could not be made.
    let _unfinished = made_here.map(|file| global.interrupt.unfinished(file));
    let devices = DmzDevices { cache, zoned };
    let made =
        if how.dry_run { devices.plan(how.name) } else { devices.format(how.name, how.force) };
    let closed = devices.close();
    if let Some(file) = made_here.filter(|_| made.is_err() || how.dry_run) {
        // Only what was made here goes; the first error is what counts.
        let _ = std::fs::remove_file(file);
    }
    let made = made?;
    closed?;
    Ok(made)
}

fn text(
    path: &Path,
    asked: &CacheToMake,
    made: &DmzMade,
    dry_run: bool,
    global: &Global,
) -> String {
    let (geometry, layout) = (&made.geometry, &made.layout);
    let logical = layout.blocks(geometry) * PAGE_BYTES;
    let zone = u64::from(geometry.zone_blocks()) * PAGE_BYTES;
    let data = |kind| layout.data_zones(geometry, kind);
    let (caches, sequential) = (data(geometry.random_kind()), data(ZoneKind::Sequential));
    let cache = asked.cache.as_deref().map(|cache| cache.display().to_string());
    let with = if asked.cache_checksums { " with checksums" } else { "" };
    match global.format() {
        Format::Json => {
            let value = json!({
                "schema": "onefold.volume.create/1",
                "path": path.display().to_string(),
                "cache": cache,
                "cache_checksums": asked.cache_checksums,
                "dry_run": dry_run,
                "uuid": render::uuid(&made.identity.uuid),
                "mode": "dmz",
                "logical_bytes": logical,
                "zone_bytes": zone,
                "chunks": layout.chunks,
                "cache_zones": caches,
                "sequential_zones": sequential,
                "reserved_zones": layout.reserved,
                "metadata_blocks": layout.metadata_blocks,
            });
            format!("{value:#}\n")
        }
        Format::Table => format!(
            "{}: {} in {} chunks of {}, {caches} {}, {sequential} sequential ones, {} of them reserved, \
             volume {}\n",
            path.display(),
            render::size(logical),
            layout.chunks,
            render::size(zone),
            cache.map_or_else(
                || "conventional zones".to_owned(),
                |cache| format!("cache zones on {cache}{with}")
            ),
            layout.reserved,
            render::uuid(&made.identity.uuid),
        ),
    }
}
