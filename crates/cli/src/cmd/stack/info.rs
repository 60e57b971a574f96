//! `onefold stack info`.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use onefold_device::Latency;
use onefold_sim::result;
use serde_json::Value;

use super::{Which, open};
use crate::cmd::control;
use crate::cmd::ssd::render;
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
        let info = if let Some(socket) = chosen.server(self.control.as_deref()) {
            control::ask(&socket, "stats")?
        } else {
            // A layer is seen through those below it, which recover as when they are served.
            let stack = open::open(&chosen, Latency::None, global)?;
            let info = open::report(&stack, false);
            stack.close()?;
            info
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

/// What each place was asked to write and wrote, as the simulator says it.
pub(super) fn rows(info: &Value) -> String {
    let mut text = String::new();
    for place in places(info) {
        let count = |value: &Value| result::count(value.as_u64().unwrap_or(0));
        if let Some(ratio) = place["write_ratio"].as_f64() {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{}: pages in, out, ratio {}, {}, {}",
                title(place),
                count(&place["host"]["write_pages"]),
                count(&place["written_pages"]),
                result::significant(ratio, 4),
            );
        }
    }
    text
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
        let on = if on.is_empty() { String::new() } else { format!(" on {}", on.join(", ")) };
        let bytes = place["logical_bytes"].as_u64().unwrap_or(0);
        format!("{}: {}{on}\n", title(place), render::size(bytes))
    };
    places(info).map(line).collect()
}
