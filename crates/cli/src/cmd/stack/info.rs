//! `onefold stack info`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use onefold_device::Access;
use onefold_sim::result;
use serde_json::{Value, json};

use super::{Chosen, Which};
use crate::cmd::control;
use crate::cmd::ssd::{self, render};
use crate::cmd::volume::is_ssd_image;
use crate::error::CliError;
use crate::output::{Format, Global};

/// Options of `onefold stack info`.
#[derive(Debug, Args)]
pub(crate) struct Info {
    #[command(flatten)]
    which: Which,
    /// Unix socket of its server [default: DIRECTORY/NAME.sock, NAME being the top]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

impl Info {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let chosen = self.which.load(global)?;
        let info = match chosen.server(self.control.as_deref()) {
            Some(socket) => control::ask(&socket, "stats")?,
            None => at_rest(&chosen, global)?,
        };
        let text = match global.format() {
            Format::Json => format!("{info:#}\n"),
            Format::Table if info["served"] == true => rows(&info),
            Format::Table => sizes(&info),
        };
        global.emit(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What images hold that nobody serves; they stay as they are. What layers hold is seen when they are served or checked.
fn at_rest(chosen: &Chosen, global: &Global) -> Result<Value, CliError> {
    let mut stack = Vec::new();
    for place in chosen.places.iter().rev() {
        let path = place.kind.is_device().then(|| chosen.path(place));
        let image = match &path {
            Some(path) if !path.exists() || is_ssd_image(path) => {
                let (image, _) = super::open::image(path, Access::ReadOnly)?;
                ssd::info::at_rest(&image, global)?
            }
            _ => Value::Null,
        };
        stack.push(json!({
            "name": place.name,
            "kind": place.kind.name(),
            "on": chosen.on(place).collect::<Vec<_>>(),
            "logical_bytes": place.kind.bytes(),
            "path": path.map(|path| path.display().to_string()),
            "clean": image["image"]["clean"],
            "details": image["device"],
        }));
    }
    Ok(json!({"schema": "onefold.stack.info/1", "served": false, "stack": stack}))
}

/// What each place was asked to write and wrote, as the simulator says it.
pub(super) fn rows(info: &Value) -> String {
    let line = |place: &Value| {
        let pages = place["host"]["write_pages"].as_u64().zip(place["written_pages"].as_u64())?;
        let pages = result::pages_in_out(pages.0, pages.1);
        Some(format!("{}: pages in, out, ratio {pages}\n", title(place)))
    };
    let rows: String = places(info).filter_map(line).collect();
    rows + &product(info).unwrap_or_default()
}

/// From what the top was asked to write to what flash programmed; `None` if a device is a plain file, which counts nothing.
fn product(info: &Value) -> Option<String> {
    let asked = places(info).next()?["host"]["write_pages"].as_u64()?;
    let devices = places(info).filter(|place| place["on"].as_array().is_none_or(Vec::is_empty));
    let programmed: Option<u64> = devices.map(|place| place["written_pages"].as_u64()).sum();
    Some(format!("all: pages in, out, ratio {}\n", result::pages_in_out(asked, programmed?)))
}

fn places(info: &Value) -> impl Iterator<Item = &Value> {
    info["stack"].as_array().into_iter().flatten()
}

fn title(place: &Value) -> String {
    let word = |key: &str| place[key].as_str().unwrap_or_default();
    format!("{} ({})", word("name"), word("kind"))
}

fn sizes(info: &Value) -> String {
    let line = |place: &Value| {
        let on: Vec<&str> =
            place["on"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let on = place["path"].as_str().map_or_else(|| on.join(", "), str::to_owned);
        let state = match place["clean"].as_bool() {
            Some(true) => ", shut down cleanly",
            Some(false) => ", not shut down cleanly",
            None => "",
        };
        let size = render::size(place["logical_bytes"].as_u64().unwrap_or(0));
        format!("{}: {size} on {on}{state}\n", title(place))
    };
    places(info).map(line).collect()
}
