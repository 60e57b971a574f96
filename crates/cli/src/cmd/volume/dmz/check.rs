//! Checking a volume of policy `dmz`: exit codes of fsck(8).

use std::path::Path;
use std::process::ExitCode;

use onefold_device::{DmzChecked, LISTED_MAX};
use onefold_zoned::{Finding, Geometry, owner};
use serde_json::json;

use super::super::check::{DAMAGE, REPAIRED};
use super::describe::device_name;
use crate::cmd::ssd::render;
use crate::error::CliError;
use crate::output::{Format, Global};

/// What a check came to.
struct Report {
    lines: Vec<String>,
    /// Blocks read, and those that cannot be.
    data: Option<(u64, u64, Vec<u64>)>,
    repaired: bool,
    lossy: bool,
    is_damaged: bool,
}

pub(in super::super) fn check(
    path: &Path,
    cache: Option<&Path>,
    (data, repair): (bool, bool),
    global: &Global,
) -> Result<ExitCode, CliError> {
    let devices = super::open(path, cache, repair, global)?;
    let mut checked = devices.inspect()?;
    let data = data.then(|| checked.read_all(LISTED_MAX));
    let findings = checked.inspection.findings.clone();
    let beyond = findings.iter().any(|finding| !finding.is_repairable());
    let unreadable = data.as_ref().is_some_and(|(_, failed, _)| *failed > 0);
    let wants = !findings.is_empty() || checked.inspection.has_to_recover();
    let repaired = repair && !beyond && wants;
    if repaired {
        devices.repair()?;
    } else {
        devices.close()?;
    }
    let geometry = checked.inspection.geometry();
    let lossy = findings.iter().any(Finding::is_lossy);
    let report = Report {
        lines: findings.iter().map(|finding| describe(finding, geometry)).collect(),
        data,
        repaired,
        lossy,
        is_damaged: unreadable || beyond || (!findings.is_empty() && !repaired),
    };
    let text = match global.format() {
        Format::Json => format!("{:#}\n", json(path, &checked, &report)),
        Format::Table => table(path, &checked, &report),
    };
    global.emit(&text)?;
    Ok(match (report.is_damaged, findings.is_empty()) {
        (true, _) => DAMAGE.into(),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => REPAIRED.into(),
    })
}

fn json(path: &Path, checked: &DmzChecked, report: &Report) -> serde_json::Value {
    let inspection = &checked.inspection;
    let (read, failed, listed) = report.data.clone().unwrap_or_default();
    json!({
        "schema": "onefold.volume.check/1",
        "path": path.display().to_string(),
        "mode": "dmz",
        "uuid": render::uuid(&inspection.identity.uuid),
        "closed": !inspection.has_to_recover(),
        "generation": inspection.generation,
        "differing_blocks": inspection.differing_blocks,
        "leftover_zones": inspection.leftover_zones,
        "read_only_zones": inspection.read_only_zones,
        "findings": report.lines,
        "found": report.lines.len(),
        "checked_blocks": read,
        "unreadable_blocks": failed,
        "unreadable": listed,
        "repaired": report.repaired,
        "damaged": report.is_damaged,
    })
}

fn table(path: &Path, checked: &DmzChecked, report: &Report) -> String {
    let inspection = &checked.inspection;
    let mut lines = vec![format!(
        "{}: generation {}, {} chunks, {} zones{}",
        path.display(),
        inspection.generation,
        inspection.layout.chunks,
        inspection.zones.len(),
        if inspection.has_to_recover() {
            " (not closed; it recovers when it is served)"
        } else {
            ""
        },
    )];
    if inspection.has_to_recover() {
        lines.push(format!(
            "a flush was cut off: {} metadata blocks differ between the sets; {} zones that no chunk has are not empty",
            inspection.differing_blocks, inspection.leftover_zones
        ));
    }
    if inspection.read_only_zones > 0 {
        lines.push(format!("{} zones with data are read only", inspection.read_only_zones));
    }
    lines.extend(report.lines.iter().cloned());
    if let Some((read, failed, listed)) = &report.data {
        let listed: Vec<String> = listed.iter().map(u64::to_string).collect();
        lines.push(match failed {
            0 => format!("{read} blocks of data can be read"),
            _ => format!("{failed} of {read} blocks of data cannot be read: {}", listed.join(", ")),
        });
    }
    let verdict = match (report.is_damaged, report.lines.is_empty(), report.lossy) {
        (true, ..) => "damaged",
        (false, true, _) if report.repaired => "clean, and closed now",
        (false, true, _) => "clean",
        (false, false, true) => "repaired, with losses",
        (false, false, false) => "repaired",
    };
    lines.push(verdict.to_owned());
    lines.join("\n") + "\n"
}

fn describe(finding: &Finding, geometry: &Geometry) -> String {
    match finding {
        Finding::Root { set, error } => {
            format!(
                "the root record of metadata set {set} is damaged, the other set is whole: {error}"
            )
        }
        Finding::Copy { device, error } => {
            let name = device_name(geometry, *device);
            format!("the copy of the root record on the {name} device: {error}")
        }
        Finding::Metadata { blocks } => {
            format!("{blocks} blocks of the metadata are damaged, the other set has them")
        }
        Finding::MetadataLost { blocks } => format!(
            "{blocks} blocks of the metadata are damaged in both sets: --repair gives up what they say"
        ),
        Finding::Map(error) => error.to_string(),
        Finding::Lost(lost) => format!("{lost}: --repair gives that up, it reads as zeroes then"),
        Finding::Twice { chunk, blocks } => {
            format!(
                "{blocks} blocks of chunk {chunk} are valid in its data zone and in its buffer zone: \
                 the chunk is an error; --repair gives these blocks up, they read as zeroes then"
            )
        }
        Finding::Offline { zone, chunk, blocks } => {
            let whose = owner(*chunk);
            format!("{zone:?} of {whose} is offline: {blocks} blocks of data cannot be read")
        }
        _ => "an unknown finding".to_owned(),
    }
}
