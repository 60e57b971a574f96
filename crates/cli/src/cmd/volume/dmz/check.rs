//! Checking a volume of policy `dmz`: exit codes of fsck(8).

use std::path::Path;
use std::process::ExitCode;

use onefold_device::{CacheScan, CacheSums, DmzChecked, DmzDevices, LISTED_MAX};
use onefold_zoned::{Finding, Geometry, owner};
use serde_json::json;

use super::describe::device_name;
use crate::cmd::ssd::render;
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// What a check came to.
struct Report {
    lines: Vec<String>,
    /// Blocks read, and those that cannot be.
    data: Option<(u64, u64, Vec<u64>)>,
    /// Checksums of the cache, if it has some, and what comparing all blocks with them came to.
    sums: Option<(CacheSums, CacheScan)>,
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
    let (text, code) = judge(&path.display().to_string(), &devices, (data, repair), global)?;
    devices.close()?;
    global.emit(&text)?;
    Ok(code.into())
}

/// Looks at a volume that is called `name`, and changes nothing. Gives what there is to say, and the exit code.
pub(crate) fn look(
    name: &str,
    devices: &DmzDevices,
    data: bool,
    global: &Global,
) -> Result<(String, Exit), CliError> {
    judge(name, devices, (data, false), global)
}

fn judge(
    name: &str,
    devices: &DmzDevices,
    (data, repair): (bool, bool),
    global: &Global,
) -> Result<(String, Exit), CliError> {
    let mut checked = devices.inspect()?;
    let data = data.then(|| checked.read_all(LISTED_MAX));
    let cache = devices.cache.as_ref().filter(|_| data.is_some());
    let sums = cache.and_then(|cache| Some((cache.sums()?, cache.scan()?)));
    let findings = checked.inspection.findings.clone();
    let beyond = findings.iter().any(|finding| !finding.is_repairable());
    let rotten = |(_, scan): &(CacheSums, CacheScan)| scan.differing + scan.unreadable > 0;
    let unreadable = data.as_ref().is_some_and(|(_, failed, _)| *failed > 0)
        || sums.as_ref().is_some_and(rotten);
    let wants = !findings.is_empty() || checked.inspection.has_to_recover();
    let repaired = repair && !beyond && wants;
    if repaired {
        devices.repair()?;
    }
    let geometry = checked.inspection.geometry();
    let lossy = findings.iter().any(Finding::is_lossy);
    let report = Report {
        lines: findings.iter().map(|finding| describe(finding, geometry)).collect(),
        data,
        sums,
        repaired,
        lossy,
        is_damaged: unreadable || beyond || (!findings.is_empty() && !repaired),
    };
    let text = match global.format() {
        Format::Json => format!("{:#}\n", json(name, &checked, &report)),
        Format::Table => table(name, &checked, &report),
    };
    let code = match (report.is_damaged, findings.is_empty()) {
        (true, _) => Exit::Damaged,
        (false, true) => Exit::Ok,
        (false, false) => Exit::Repaired,
    };
    Ok((text, code))
}

fn json(name: &str, checked: &DmzChecked, report: &Report) -> serde_json::Value {
    let inspection = &checked.inspection;
    let (read, failed, listed) = report.data.clone().unwrap_or_default();
    json!({
        "schema": "onefold.volume.check/1",
        "path": name,
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
        "cache_checksums": report.sums.map(|(sums, scan)| json!({
            "checked_blocks": scan.checked,
            "differing_blocks": scan.differing,
            "unreadable_blocks": scan.unreadable,
            "unknown_blocks": scan.unknown,
            "damaged_bits": sums.damaged_bits,
            "damaged_header": sums.damaged_header,
        })),
        "repaired": report.repaired,
        "damaged": report.is_damaged,
    })
}

fn table(name: &str, checked: &DmzChecked, report: &Report) -> String {
    let inspection = &checked.inspection;
    let mut lines = vec![format!(
        "{name}: generation {}, {} chunks, {} zones{}",
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
    lines.extend(report.sums.iter().flat_map(|(sums, scan)| describe_sums(sums, scan)));
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

/// What the checksums of the cache say.
fn describe_sums(sums: &CacheSums, scan: &CacheScan) -> Vec<String> {
    let mut lines = vec![match scan.differing {
        0 => format!("{} blocks of the cache have the right checksums", scan.checked),
        differing => format!(
            "{differing} of {} blocks of the cache differ from their checksums: they are errors until they are written",
            scan.checked
        ),
    }];
    if scan.unreadable > 0 {
        lines.push(format!("{} blocks of the cache cannot be read", scan.unreadable));
    }
    if scan.unknown > 0 {
        let blocks = scan.unknown;
        lines.push(format!(
            "the cache was not closed: the checksums of {blocks} blocks are made anew when it is served"
        ));
    }
    if sums.damaged_header || sums.damaged_bits > 0 {
        lines.push(
            "a header or dirty bits of the cache were damaged: serving makes them anew".to_owned(),
        );
    }
    lines
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
