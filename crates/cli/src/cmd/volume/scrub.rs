//! `onefold volume scrub`: exit codes of fsck(8), like `check`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use onefold_units::convert::u64_from;
use onefold_units::{PAGE_BYTES, numbers};
use onefold_volume::{FINDINGS_MAX, ScrubState, Scrubbed, scrub};
use serde_json::{Value, json};

use super::check::describe;
use super::dmz;
use crate::cmd::control;
use crate::cmd::ssd::render;
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// Options of `onefold volume scrub`.
#[derive(Debug, Args)]
pub(crate) struct Scrub {
    /// What the volume lies on
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Say what is damaged, and write nothing
    #[arg(long, conflicts_with_all = ["status", "stop"])]
    dry_run: bool,
    /// Of a served volume: say how far the scrub under way is, or what the last one came to
    #[arg(long)]
    status: bool,
    /// Of a served volume: end the scrub under way
    #[arg(long, conflicts_with = "status")]
    stop: bool,
    /// Unix socket of its server [default: PATH.sock, if it is served]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

impl Scrub {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let done = match super::server_of(&self.path, self.control.as_deref()) {
            Some(server) => self.ask(&server),
            None => self.here(global),
        };
        let mut report = done.map_err(|error| error.exit_with(Exit::CheckFailed))?;
        report["schema"] = "onefold.volume.scrub/1".into();
        report["path"] = self.path.display().to_string().into();
        report["dry_run"] = self.dry_run.into();
        let text = match global.format() {
            Format::Json => format!("{report:#}\n"),
            Format::Table => self.table(&report),
        };
        global.emit(&text)?;
        Ok(match (report["damaged"] == true, report["mended"] == 0) {
            (true, _) => Exit::Damaged.into(),
            (false, true) => ExitCode::SUCCESS,
            (false, false) => Exit::Repaired.into(),
        })
    }

    /// Has the server do it.
    fn ask(&self, server: &Path) -> Result<Value, CliError> {
        if self.dry_run {
            let text = "the volume is served; --dry-run takes one that is not".to_owned();
            return Err(CliError::new(Exit::Usage, "volume::served", text));
        }
        let action = match (self.status, self.stop) {
            (true, _) => "status",
            (_, true) => "stop",
            _ => "start",
        };
        let mut report = control::request(server, json!({"cmd": "scrub", "action": action}))?;
        report["served"] = true.into();
        Ok(report)
    }

    fn here(&self, global: &Global) -> Result<Value, CliError> {
        if self.status || self.stop {
            let text = "the volume is not served, so no scrub is under way";
            return Err(CliError::new(Exit::Usage, "volume::not_served", text)
                .help("without --status and --stop this command scrubs it now"));
        }
        if dmz::is_alone(&self.path, global)? {
            let text = "a volume of policy dmz has no checksums of data to compare with";
            return Err(CliError::new(Exit::Usage, "volume::dmz", text)
                .help("`onefold volume check --data` says whether all of it can be read"));
        }
        let below = super::open_backing(&self.path, !self.dry_run, global)?;
        let mut backing = below.clone();
        let blocks = backing.blocks();
        let mut told = 0;
        let done = scrub(&mut backing, blocks, !self.dry_run, |so_far| {
            let tenths = so_far.passed * 10 / so_far.segments.max(1);
            if std::mem::replace(&mut told, tenths) < tenths && tenths < 10 {
                global.say(format_args!("{} % of the log segments", 10 * tenths));
            }
        })?;
        if !self.dry_run {
            backing.close()?;
        }
        let mut report = as_json(&done);
        report["served"] = false.into();
        Ok(report)
    }

    fn table(&self, report: &Value) -> String {
        let number = |key: &str| report[key].as_u64().unwrap_or(0);
        let findings = report["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut all: Vec<String> =
            findings.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let more = number("found").saturating_sub(u64_from(FINDINGS_MAX));
        if more > 0 {
            all.push(format!("and {more} more"));
        }
        all.insert(0, format!("{}: {}", self.path.display(), line(report)));
        all.push(verdict(report).to_owned());
        all.join("\n") + "\n"
    }
}

fn verdict(report: &Value) -> &'static str {
    match (report["state"].as_str(), report["damaged"] == true, report["mended"] == 0) {
        (_, true, _) => "damaged",
        (_, _, false) => "repaired",
        (Some("done"), ..) => "clean",
        _ => "nothing found so far",
    }
}

/// A scrub in one line.
pub(super) fn line(report: &Value) -> String {
    let number = |key: &str| report[key].as_u64().unwrap_or(0);
    format!(
        "scrub {}: {} of {} log segments, {} read, {} blocks checked; {} damaged, {} of that written anew",
        report["state"].as_str().unwrap_or_default(),
        number("passed_segments"),
        number("segments"),
        render::size(number("read_bytes")),
        number("checked_blocks"),
        number("found"),
        number("mended"),
    )
}

/// What a scrub came to, or how far it is.
pub(super) fn as_json(scrubbed: &Scrubbed) -> Value {
    let one = |damage: &onefold_volume::Damage| {
        let mended = if damage.mended { " (written anew)" } else { "" };
        describe(&damage.finding) + mended
    };
    json!({
        "state": scrubbed.state.name(),
        "segments": scrubbed.segments,
        "passed_segments": scrubbed.passed,
        "read_bytes": scrubbed.read * PAGE_BYTES,
        "checked_blocks": scrubbed.checked,
        "findings": scrubbed.damage.iter().map(one).collect::<Vec<_>>(),
        "found": scrubbed.found,
        "mended": scrubbed.mended,
        "damaged": scrubbed.state != ScrubState::Never && scrubbed.is_damaged(),
    })
}

/// Time between two scrubs of a served volume.
pub(super) fn parse_every(text: &str) -> Result<Duration, String> {
    let wrong = || format!("found {text:?}, expected 1h to 10000d, such as 12h or 7d");
    let every = Duration::from_nanos(numbers::time(text).map_err(|_| wrong())?);
    let limits = Duration::from_hours(1)..=Duration::from_hours(24 * 10_000);
    if limits.contains(&every) { Ok(every) } else { Err(wrong()) }
}
