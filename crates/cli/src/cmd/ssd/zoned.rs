//! What `info` and `check` say of an image with a zoned namespace.

use std::fmt::Write;

use onefold_device::{
    ConventionalDetails, Image, LISTED_MAX, ZnsConfig, ZoneState, ZonedCheck, ZonedDetails,
    ZonedDevice, check_zoned, inspect_zoned,
};
use serde_json::{Map, Value, json};

use super::{lifetime, render};
use crate::error::CliError;

/// The zones of an image that nobody has open: what `info` adds to the image.
pub(super) fn at_rest(image: &Image, zns: &ZnsConfig) -> Result<Value, CliError> {
    let (found, recovery, _) = inspect_zoned(image, zns)?;
    Ok(json!({
        "recovery": {
            "closed_zones": recovery.closed,
            "moved_zones": recovery.moved,
            "read_only_zones": recovery.read_only,
            "erased_sets": recovery.erased,
        },
        "device": {"zoned": details(&found)},
    }))
}

/// The namespace as JSON.
pub(crate) fn details(found: &ZonedDetails) -> Value {
    let states: Map<String, Value> = ZoneState::ALL
        .into_iter()
        .map(|state| (state.name().replace(' ', "_"), found.in_state(state).into()))
        .collect();
    let (least, mean, most) = found.wear;
    json!({
        "zones": found.zones,
        "conventional": found.conventional.as_ref().map(conventional),
        "zone_bytes": found.zone_bytes,
        "zone_capacity_bytes": found.capacity_bytes,
        "max_open": found.limits.max_open,
        "max_active": found.limits.max_active,
        "open": found.resources.0,
        "active": found.resources.1,
        "by_state": states,
        "written_bytes": found.written_bytes,
        "resets": found.resets,
        "sets": found.sets,
        "bad_sets": found.bad_sets,
        "spare_sets": found.spare_sets,
        "wear": {"min": least, "mean": mean, "max": most},
    })
}

/// A namespace that is open, with the counters of its life.
pub(crate) fn described(device: &ZonedDevice) -> Option<Value> {
    let mut value = details(&device.details()?);
    value["lifetime"] = lifetime::counted(&device.lifetime()?, None);
    Some(value)
}

fn conventional(found: &ConventionalDetails) -> Value {
    let [read_only, offline] = found.out_of_service;
    json!({
        "zones": found.zones,
        "read_only": read_only,
        "offline": offline,
        "stored_bytes": found.stored_bytes,
        "superblocks": found.superblocks,
        "bad_superblocks": found.bad_superblocks,
        "free_superblocks": found.free_superblocks,
        "rho": found.rho,
        "wear": {"min": found.wear.min, "mean": found.wear.mean, "max": found.wear.max},
    })
}

/// The conventional zones for people, if there are any.
fn conventional_rows(found: &Value) -> Vec<(&'static str, String)> {
    let Some(zones) = found["zones"].as_u64() else { return Vec::new() };
    let number = |key: &str| found[key].as_u64().unwrap_or(0);
    let wear = &found["wear"];
    let mean = wear["mean"].as_f64().unwrap_or(0.0);
    let mut text = format!("{zones}, {} stored", render::size(number("stored_bytes")));
    for (key, state) in [("read_only", "read only"), ("offline", "offline")] {
        if number(key) > 0 {
            let _ = write!(text, ", {} {state}", number(key));
        }
    }
    let (all, free, bad) =
        (number("superblocks"), number("free_superblocks"), number("bad_superblocks"));
    vec![
        ("conventional zones", text),
        (
            "their superblocks",
            format!(
                "{all}; {free} free, {bad} bad; erases {} to {}, mean {mean:.2}",
                wear["min"], wear["max"]
            ),
        ),
    ]
}

/// The namespace for people.
pub(super) fn table(zoned: &Value) -> String {
    let number = |key: &str| zoned[key].as_u64().unwrap_or(0);
    let limit = |key: &str| zoned[key].as_u64().map_or_else(|| "any".to_owned(), |n| n.to_string());
    let states = zoned["by_state"].as_object();
    let states: Vec<String> = states
        .into_iter()
        .flatten()
        .filter(|(_, count)| **count != 0)
        .map(|(state, count)| format!("{count} {}", state.replace('_', " ")))
        .collect();
    let wear = &zoned["wear"];
    let mean = wear["mean"].as_f64().unwrap_or(0.0);
    let rows = [
        (
            "zones",
            format!(
                "{} of {}, {} of each can be written",
                number("zones"),
                render::size(number("zone_bytes")),
                render::size(number("zone_capacity_bytes")),
            ),
        ),
        ("by state", states.join(", ")),
        (
            "open, active at most",
            format!(
                "{}, {}; {} and {} are",
                limit("max_open"),
                limit("max_active"),
                number("open"),
                number("active")
            ),
        ),
        ("written", render::size(number("written_bytes"))),
        ("resets", number("resets").to_string()),
        (
            "sets of blocks",
            format!(
                "{}; {} spare, {} bad",
                number("sets"),
                number("spare_sets"),
                number("bad_sets")
            ),
        ),
        ("erases per set", format!("{} to {}, mean {mean:.2}", wear["min"], wear["max"])),
    ];
    rows.into_iter().chain(conventional_rows(&zoned["conventional"])).fold(
        String::new(),
        |mut text, (name, value)| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<22} {value}");
            text
        },
    )
}

/// What a check of an image found.
pub(super) struct Checked {
    image: String,
    clean: bool,
    report: ZonedCheck,
}

/// Checks an image; with `progress` its data, too.
pub(super) fn check(
    image: &Image,
    zns: &ZnsConfig,
    progress: Option<&mut dyn FnMut(u64, u64)>,
) -> Result<Checked, CliError> {
    let report = check_zoned(image, zns, progress)?;
    let (path, clean) = (image.path().display().to_string(), image.label().clean);
    Ok(Checked { image: path, clean, report })
}

impl Checked {
    pub(super) const fn is_damaged(&self) -> bool {
        self.report.is_damaged()
    }

    pub(super) fn json(&self) -> String {
        let report = &self.report;
        let value = json!({
            "schema": "onefold.ssd.check/1",
            "image": self.image,
            "clean_shutdown": self.clean,
            "damaged": report.is_damaged(),
            "violation": report.violation,
            "verified_units": report.verified_blocks,
            "unreadable_units": report.unreadable_blocks,
            "unreadable": report.unreadable,
            "device": {"zoned": details(&report.details)},
        });
        format!("{value:#}\n")
    }

    pub(super) fn table(&self) -> String {
        let report = &self.report;
        let mut lines = vec![format!(
            "{}: {} zones, {} written, {} blocks verified{}",
            self.image,
            report.details.zones
                + report.details.conventional.as_ref().map_or(0, |conventional| conventional.zones),
            render::size(
                report.details.written_bytes
                    + report.details.conventional.as_ref().map_or(0, |found| found.stored_bytes)
            ),
            report.verified_blocks,
            if self.clean { "" } else { " (not shut down cleanly; it recovers when it is opened)" },
        )];
        for state in [ZoneState::ReadOnly, ZoneState::Offline] {
            let conventional =
                report.details.conventional.as_ref().map_or([0, 0], |found| found.out_of_service);
            let zones = report.details.in_state(state)
                + conventional[usize::from(state == ZoneState::Offline)];
            if zones > 0 {
                lines.push(format!("{zones} zones are {}", state.name()));
            }
        }
        lines.extend(report.violation.as_ref().map(|what| format!("damage: {what}")));
        if report.unreadable_blocks > 0 {
            let listed: Vec<String> = report.unreadable.iter().map(u64::to_string).collect();
            let etc = if listed.len() < LISTED_MAX { "" } else { ", .." };
            let (blocks, listed) = (report.unreadable_blocks, listed.join(", "));
            lines.push(format!("damage: {blocks} blocks cannot be read: {listed}{etc}"));
        }
        lines.push(if report.is_damaged() { "damaged" } else { "clean" }.to_owned());
        lines.join("\n") + "\n"
    }
}
