//! `onefold ssd check`: exit codes of fsck(8).

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgAction, Args};
use indicatif::{ProgressBar, ProgressStyle};
use onefold_device::{Access, CheckReport, Latency, OpenOptions, SsdDevice};
use serde_json::json;

use super::{render, zoned};
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// Options of `onefold ssd check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The image; it is not changed without --accept-loss
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// Verify the checksum of every stored unit
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    data: bool,
    /// Give up the units that a damaged page of the remap log may be about, if one keeps the device from
    /// opening: reading them is an error until they are written again
    #[arg(long)]
    accept_loss: bool,
}

impl Check {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let (text, code) = self.check(global).map_err(|e| e.exit_with(Exit::CheckFailed))?;
        global.emit(&text)?;
        Ok(code.into())
    }

    /// The check of an image that is not changed.
    pub(crate) const fn of(image: PathBuf, data: bool) -> Self {
        Self { image, data, accept_loss: false }
    }

    /// What there is to say, and the exit code.
    pub(crate) fn check(&self, global: &Global) -> Result<(String, Exit), CliError> {
        let access = if self.accept_loss { Access::Exclusive } else { Access::ReadOnly };
        let (image, config) = super::open(&self.image, access)?;
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
        if let Some(zns) = config.zns(global.seed)? {
            let checked = zoned::check(&image, &zns, progress)?;
            bar.finish_and_clear();
            let text = match global.format() {
                Format::Json => checked.json(),
                Format::Table => checked.table(),
            };
            return Ok((text, if checked.is_damaged() { Exit::Damaged } else { Exit::Ok }));
        }
        let ssd = config.ssd(global.seed)?;
        let report = onefold_device::check(&image, &ssd, progress)?;
        bar.finish_and_clear();
        let clean = image.label().clean;
        let gives_up = self.accept_loss && report.recovery.log_damage.is_some();
        if gives_up {
            let options = OpenOptions::new(Latency::None).accepting_loss();
            SsdDevice::open(image, &ssd, options)?.device.close()?;
        }
        let found = Found { clean, report, gave_up: gives_up };
        let text = match global.format() {
            Format::Json => self.json(&found),
            Format::Table => self.table(&found),
        };
        Ok((text, found.exit()))
    }

    fn json(&self, found: &Found) -> String {
        let Found { clean, report, gave_up } = found;
        let recovery = &report.recovery;
        let log_damage = recovery.log_damage.map(|damage| {
            json!({
                "superblock": damage.superblock,
                "slot": damage.slot,
                "pages": damage.pages,
                "units_at_stake": recovery.given_up_units,
                "given_up": gave_up,
            })
        });
        let value = json!({
            "schema": "onefold.ssd.check/1",
            "image": self.image.display().to_string(),
            "clean_shutdown": clean,
            "damaged": report.is_damaged(),
            "violation": report.violation.map(|violation| violation.to_string()),
            "log_damage": log_damage,
            "lost_units": recovery.lost_units - recovery.given_up_units,
            "torn_slots": recovery.torn_slots,
            "mapped_units": recovery.mapped_units,
            "verified_units": report.verified_units,
            "unreadable_units": report.unreadable_units,
            "unreadable": report.unreadable,
            "device": render::details(&report.details),
        });
        format!("{value:#}\n")
    }

    fn table(&self, found: &Found) -> String {
        let Found { clean, report, .. } = found;
        let recovery = &report.recovery;
        let mut lines = vec![format!(
            "{}: {} units mapped, {} verified, {} torn slots{}",
            self.image.display(),
            recovery.mapped_units,
            report.verified_units,
            recovery.torn_slots,
            if *clean { "" } else { " (not shut down cleanly; it recovers when it is served)" },
        )];
        if let Some(violation) = &report.violation {
            lines.push(format!("damage: {violation}"));
        }
        lines.extend(found.log_damage());
        let lost = recovery.lost_units - recovery.given_up_units;
        if lost > 0 {
            lines.push(format!(
                "damage: {lost} units are lost: reading them is an error until they are written again"
            ));
        }
        if report.unreadable_units > 0 {
            let listed: Vec<String> = report.unreadable.iter().map(u32::to_string).collect();
            let units = report.unreadable_units;
            let etc = if listed.len() < onefold_device::LISTED_MAX { "" } else { ", .." };
            lines.push(format!("damage: {units} units cannot be read: {}{etc}", listed.join(", ")));
        }
        lines.push(found.verdict().to_owned());
        lines.join("\n") + "\n"
    }
}

/// What a check found, and what it did.
struct Found {
    clean: bool,
    report: CheckReport,
    /// What damaged log pages may be about was given up.
    gave_up: bool,
}

impl Found {
    fn exit(&self) -> Exit {
        if self.gave_up {
            let damaged = self.report.is_damaged_otherwise();
            return if damaged { Exit::PartlyRepaired } else { Exit::Repaired };
        }
        if self.report.is_damaged() { Exit::Damaged } else { Exit::Ok }
    }

    fn verdict(&self) -> &'static str {
        match self.exit() {
            Exit::Ok => "clean",
            Exit::Repaired => "the device opens again",
            _ => "damaged",
        }
    }

    /// What is wrong with the remap log, what is at stake, and what to do.
    fn log_damage(&self) -> Option<String> {
        let recovery = &self.report.recovery;
        let damage = recovery.log_damage?;
        let (slot, superblock, units) = (damage.slot, damage.superblock, recovery.given_up_units);
        let further = match damage.pages {
            1 => String::new(),
            pages => format!(" (and {} further ones)", pages - 1),
        };
        let what = format!(
            "damage: slot {slot} of superblock {superblock}{further}, a page of the remap log, cannot \
             be read, and nothing else says what it said. Which units it was about is not known: all \
             {units} units that did not change since, those of snapshots included, may hold older \
             contents"
        );
        Some(if self.gave_up {
            format!(
                "{what}. They are lost now: reading them is an error until they are written again"
            )
        } else {
            format!(
                "{what}, so the device does not open. Restore the image from a copy, or give these \
                 units up with --accept-loss: reading them is an error then until they are written \
                 again"
            )
        })
    }
}
