//! `onefold stack check`: exit codes of fsck(8).

use std::process::ExitCode;

use clap::Args;
use onefold_config::{Place, PlaceKind};
use onefold_device::Latency;
use serde_json::{Value, json};

use super::open::{self, OpenStack};
use super::{Chosen, Which};
use crate::cmd::{ssd, volume};
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// Options of `onefold stack check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    which: Which,
    /// Check the checksums of all data, too
    #[arg(long)]
    data: bool,
}

/// What the check of a place came to: what its own command would say, and its exit code.
type Judged = (String, Exit);

impl Check {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        self.check(global).map_err(|error| error.exit_with(Exit::CheckFailed))
    }

    fn check(&self, global: &Global) -> Result<ExitCode, CliError> {
        let chosen = self.which.load(global)?;
        let (mut stack, mut judged) = (OpenStack::default(), Vec::new());
        let looked = self.each(&chosen, &mut stack, &mut judged, global);
        let closed = stack.close();
        let unseen = chosen.places.len() - judged.len();
        global.emit(&text(&chosen, &judged, unseen, global))?;
        looked?;
        closed?;
        Ok(judged.last().map_or(Exit::Ok, |(_, exit)| *exit).into())
    }

    /// Judges a place after the other, up to one that is damaged: what lies on it cannot be seen.
    fn each(
        &self,
        chosen: &Chosen,
        stack: &mut OpenStack,
        judged: &mut Vec<Judged>,
        global: &Global,
    ) -> Result<(), CliError> {
        for (number, place) in chosen.places.iter().enumerate() {
            let one = self.judge(chosen, place, stack, global)?;
            let is_damaged = one.1 != Exit::Ok;
            judged.push(one);
            let is_top = number + 1 == chosen.places.len();
            if is_damaged || is_top {
                break;
            }
            // As serving it does, which recovers it.
            let device = open::open_place(chosen, place, stack, Latency::None, global)?;
            stack.push(chosen, place, device);
        }
        Ok(())
    }

    fn judge(
        &self,
        chosen: &Chosen,
        place: &Place,
        below: &OpenStack,
        global: &Global,
    ) -> Result<Judged, CliError> {
        match &place.kind {
            PlaceKind::Ssd(_) | PlaceKind::Zns(_) => {
                let path = chosen.path(place);
                if path.exists() && !volume::is_ssd_image(&path) {
                    return Ok((
                        "a file or block device, of which nothing is known\n".into(),
                        Exit::Ok,
                    ));
                }
                ssd::check::Check::of(path, self.data).check(global)
            }
            PlaceKind::Volume(config) => {
                let mut backing = open::one(below.below(place))?;
                open::expect_volume(place, config, &backing)?;
                volume::check::look(&place.name, &mut backing, self.data, global)
            }
            PlaceKind::Zoned(_) => {
                let devices = open::devices(below.below(place), true)?;
                volume::dmz::look(&place.name, &devices, self.data, global)
            }
        }
    }
}

fn text(chosen: &Chosen, judged: &[Judged], unseen: usize, global: &Global) -> String {
    let places = chosen.places.iter().zip(judged);
    match global.format() {
        Format::Json => {
            let places: Vec<Value> = places
                .map(|(place, (text, exit))| {
                    let check: Value = serde_json::from_str(text).unwrap_or(Value::Null);
                    json!({"name": place.name, "kind": place.kind.name(), "code": exit.code(), "check": check})
                })
                .collect();
            let value = json!({
                "schema": "onefold.stack.check/1",
                "stack": places,
                "not_checked": unseen,
            });
            format!("{value:#}\n")
        }
        Format::Table => {
            let mut lines = Vec::new();
            for (place, (said, _)) in places {
                lines.push(format!("{} ({})", place.name, place.kind.name()));
                lines.extend(said.lines().map(|line| format!("  {line}")));
            }
            if unseen > 0 {
                lines.push("what lies above was not checked".to_owned());
            }
            lines.join("\n") + "\n"
        }
    }
}
