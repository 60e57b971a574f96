//! `onefold ssd check`: exit codes of fsck(8).

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgAction, Args};
use indicatif::{ProgressBar, ProgressStyle};
use onefold_device::{Access, CheckReport};
use serde_json::json;

use super::render;
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// `check` found damage and changed nothing (fsck(8)).
const DAMAGE: u8 = 4;

/// Options of `onefold ssd check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The image; it is not changed
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// Verify the checksum of every stored unit
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    data: bool,
}

impl Check {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let (clean, report) = self.check(global).map_err(|e| e.exit_with(Exit::CheckFailed))?;
        let text = match global.format() {
            Format::Json => self.json(clean, &report),
            Format::Table => self.table(clean, &report),
        };
        global.emit(&text)?;
        Ok(if report.is_damaged() { DAMAGE.into() } else { ExitCode::SUCCESS })
    }

    fn check(&self, global: &Global) -> Result<(bool, CheckReport), CliError> {
        let (image, config) = super::open(&self.image, Access::ReadOnly)?;
        let ssd = config.ssd(global.seed)?;
        let bar =
            if global.shows_progress() { ProgressBar::no_length() } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {percent}% {eta}") {
            bar.set_style(style);
        }
        let mut progress = |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        };
        let progress: Option<&mut dyn FnMut(u64, u64)> =
            if self.data { Some(&mut progress) } else { None };
        let report = onefold_device::check(&image, &ssd, progress)?;
        bar.finish_and_clear();
        Ok((image.label().clean, report))
    }

    fn json(&self, clean: bool, report: &CheckReport) -> String {
        let recovery = &report.recovery;
        let value = json!({
            "schema": "onefold.ssd.check/1",
            "image": self.image.display().to_string(),
            "clean_shutdown": clean,
            "damaged": report.is_damaged(),
            "violation": report.violation.map(|violation| violation.to_string()),
            "lost_units": recovery.lost_units,
            "torn_slots": recovery.torn_slots,
            "mapped_units": recovery.mapped_units,
            "verified_units": report.verified_units,
            "unreadable_units": report.unreadable_units,
            "unreadable": report.unreadable,
            "device": render::details(&report.details),
        });
        format!("{value:#}\n")
    }

    fn table(&self, clean: bool, report: &CheckReport) -> String {
        let recovery = &report.recovery;
        let mut lines = vec![format!(
            "{}: {} units mapped, {} verified, {} torn slots{}",
            self.image.display(),
            recovery.mapped_units,
            report.verified_units,
            recovery.torn_slots,
            if clean { "" } else { " (not shut down cleanly; it recovers when it is served)" },
        )];
        if let Some(violation) = &report.violation {
            lines.push(format!("damage: {violation}"));
        }
        if recovery.lost_units > 0 {
            lines.push(format!("damage: {} units are lost", recovery.lost_units));
        }
        if report.unreadable_units > 0 {
            let listed: Vec<String> = report.unreadable.iter().map(u32::to_string).collect();
            let units = report.unreadable_units;
            let etc = if listed.len() < onefold_device::LISTED_MAX { "" } else { ", .." };
            lines.push(format!("damage: {units} units cannot be read: {}{etc}", listed.join(", ")));
        }
        lines.push(if report.is_damaged() { "damaged" } else { "clean" }.to_owned());
        lines.join("\n") + "\n"
    }
}
