//! `onefold stack create`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use onefold_config::{Place, PlaceKind};
use onefold_device::{Access, HostRoom, Image, Latency};
use serde_json::json;

use super::open::{self, OpenStack};
use super::{Chosen, Which};
use crate::cmd::ssd::{self, render, room};
use crate::cmd::volume;
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// Options of `onefold stack create`.
#[derive(Debug, Args)]
pub(crate) struct Create {
    #[command(flatten)]
    which: Which,
}

impl Create {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let chosen = self.which.load(global)?;
        let mut made = Vec::new();
        let done = make(&chosen, &mut made, global);
        if done.is_err() {
            // Only what was made here goes; the first error is what counts.
            for path in &made {
                let _ = std::fs::remove_file(path);
            }
        }
        done?;
        global.emit(&text(&chosen, global))?;
        for path in &made {
            if let Some(room) = HostRoom::at(path) {
                room::warn(global, path, &room);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Makes what is missing, opens it, and closes it again. What was made is in `made` however that ends.
fn make(chosen: &Chosen, made: &mut Vec<PathBuf>, global: &Global) -> Result<(), CliError> {
    let mut stack = OpenStack::default();
    let done = chosen.places.iter().try_for_each(|place| {
        make_device(chosen, place, made, global)?;
        open::format(place, &stack, global.force)?;
        let device = open::open_place(chosen, place, &stack, Latency::None, global)?;
        stack.push(chosen, place, device);
        Ok(())
    });
    let closed = stack.close();
    done.and(closed)
}

/// Makes the image of a device, unless something is at its path. With --force an image that is there goes first.
fn make_device(
    chosen: &Chosen,
    place: &Place,
    made: &mut Vec<PathBuf>,
    global: &Global,
) -> Result<(), CliError> {
    let Some(config) = chosen.config.device_of_stack(&place.name)? else { return Ok(()) };
    let path = chosen.path(place);
    if global.force && volume::is_ssd_image(&path) {
        // Not while somebody has it.
        drop(ssd::open(&path, Access::Exclusive)?);
        std::fs::remove_file(&path).map_err(|error| failed("remove", &path, &error))?;
    }
    if path.exists() {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| failed("create", folder, &error))?;
    }
    match &place.kind {
        PlaceKind::Ssd(ssd) => Image::create(&path, &**ssd, config.to_toml())?,
        PlaceKind::Zns(zns) => Image::create(&path, &**zns, config.to_toml())?,
        PlaceKind::Volume(_) | PlaceKind::Zoned(_) => return Ok(()),
    };
    made.push(path);
    Ok(())
}

fn failed(action: &str, path: &Path, error: &std::io::Error) -> CliError {
    let text = format!("cannot {action} {}: {error}", path.display());
    CliError::new(Exit::Failed, "stack::io", text)
}

fn text(chosen: &Chosen, global: &Global) -> String {
    let places = chosen.places.iter().rev();
    let on = |place: &Place| -> Vec<String> { chosen.on(place).map(str::to_owned).collect() };
    match global.format() {
        Format::Json => {
            let places = places.map(|place| {
                json!({
                    "name": place.name,
                    "kind": place.kind.name(),
                    "on": on(place),
                    "path": place.on.is_empty().then(|| chosen.path(place).display().to_string()),
                    "logical_bytes": place.kind.bytes(),
                })
            });
            let value = json!({
                "schema": "onefold.stack.create/1",
                "stack": places.collect::<Vec<_>>(),
            });
            format!("{value:#}\n")
        }
        Format::Table => {
            let lines = places.map(|place| {
                let below = match on(place) {
                    on if on.is_empty() => chosen.path(place).display().to_string(),
                    on => on.join(", "),
                };
                let (name, kind) = (&place.name, place.kind.name());
                format!("{name} ({kind}): {} on {below}", render::size(place.kind.bytes()))
            });
            lines.collect::<Vec<_>>().join("\n") + "\n"
        }
    }
}
