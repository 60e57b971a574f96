//! `onefold volume check`: exit codes of fsck(8).

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use onefold_device::{VolumeBacking, VolumeDevice, VolumeOptions};
use onefold_modes::inspect;
use onefold_units::convert::u64_from;
use onefold_volume::{
    FINDINGS_MAX, Finding, Inspection, MemberId, MountError, Rebuilt, write_label,
};
use serde_json::json;

use super::{dmz, rebuild};
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// Options of `onefold volume check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// What the volume lies on; it is not changed without --repair
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    cache: dmz::Cache,
    /// Check the checksum of every block of data; with policy dmz whether it can be read, and checksums of its cache if it has some
    #[arg(long)]
    data: bool,
    /// Recover the volume as serving it would, and write damaged copies of the label anew
    #[arg(long)]
    repair: bool,
    /// Also make a root anew from what the log tells, if there is none that can be used
    #[arg(long, conflicts_with = "cache")]
    rebuild: bool,
}

/// What a check came to.
struct Report<'a> {
    inspection: &'a Inspection,
    rebuilt: Option<&'a Rebuilt>,
    /// What zones no longer hold, and was given up.
    given_up: Option<&'a str>,
    repaired: bool,
}

impl Check {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        self.check(global).map_err(|error| error.exit_with(Exit::CheckFailed))
    }

    fn check(&self, global: &Global) -> Result<ExitCode, CliError> {
        let cache = self.cache.path();
        if cache.is_some() || dmz::is_alone(&self.path, global)? {
            if self.rebuild {
                let text = "--rebuild is not for volumes of policy dmz, and this is one";
                return Err(CliError::new(Exit::Usage, "volume::dmz", text).help("leave it out"));
            }
            return dmz::check(&self.path, cache, (self.data, self.repair), global);
        }
        let repair_too = self.repair || self.rebuild;
        let mut below = super::open_backing(&self.path, repair_too, global)?;
        let mut backing = below.clone();
        let rebuilt = if self.rebuild { rebuild::rebuild(&mut backing)? } else { None };
        let blocks = backing.blocks();
        let mut given_up = None;
        let inspection = match inspect(&mut backing, blocks, self.data) {
            // What was made anew was judged without these zones.
            Err(MountError::Zones(error))
                if (self.repair || rebuilt.is_some()) && error.can_be_given_up() =>
            {
                give_up_zones(backing)?;
                drop(below);
                given_up = Some(error.to_string());
                below = super::open_backing(&self.path, true, global)?;
                backing = below.clone();
                inspect(&mut backing, blocks, self.data)?
            }
            other => other?,
        };
        let damaged = inspection.findings.iter().any(|finding| !finding.is_repairable());
        let repaired = repair_too && !damaged && repair(&mut backing, &inspection)?;
        let repaired = repaired || given_up.is_some();
        let (rebuilt, given_up) = (rebuilt.as_ref(), given_up.as_deref());
        let report = Report { inspection: &inspection, rebuilt, given_up, repaired };
        global.emit(&text(&self.path.display().to_string(), &report, global))?;
        if let Some(rebuilt) = rebuilt {
            let whole = rebuilt.is_exact() && !damaged;
            return Ok(if whole { Exit::Repaired } else { Exit::Damaged }.into());
        }
        Ok(match (inspection.found, repaired, damaged) {
            (0, ..) if given_up.is_none() => ExitCode::SUCCESS,
            (_, true, _) => Exit::Repaired.into(),
            // A damaged copy does no harm as long as another one is whole.
            (_, false, false) if !repair_too => ExitCode::SUCCESS,
            _ => Exit::Damaged.into(),
        })
    }
}

/// Looks at a volume that is called `name`, and changes nothing. Gives what there is to say, and the exit code.
pub(crate) fn look(
    name: &str,
    backing: &mut VolumeBacking,
    data: bool,
    global: &Global,
) -> Result<(String, Exit), CliError> {
    let blocks = backing.blocks();
    let inspection = inspect(backing, blocks, data)?;
    // A damaged copy does no harm as long as another one is whole.
    let is_damaged = inspection.findings.iter().any(|finding| !finding.is_repairable());
    let report = Report { inspection: &inspection, rebuilt: None, given_up: None, repaired: false };
    Ok((text(name, &report, global), if is_damaged { Exit::Damaged } else { Exit::Ok }))
}

fn text(name: &str, report: &Report<'_>, global: &Global) -> String {
    let Report { inspection, rebuilt, given_up, repaired } = *report;
    let lines: Vec<String> = inspection.findings.iter().map(describe).collect();
    let recovery = &inspection.recovery;
    match global.format() {
        Format::Json => {
            let value = json!({
                "schema": "onefold.volume.check/1",
                "path": name,
                "closed": recovery.clean,
                "batches_to_replay": recovery.batches,
                "members": super::members::describe(&inspection.members),
                "mapped_blocks": inspection.mapped,
                "lost_blocks": inspection.lost,
                "faulty": super::faulty::as_json(inspection.faulty),
                "checked_blocks": inspection.checked,
                "findings": lines,
                "found": inspection.found,
                "repaired": repaired,
                "given_up": given_up,
                "rebuilt": rebuilt.map(rebuild::describe),
            });
            format!("{value:#}\n")
        }
        Format::Table => {
            let mut all = rebuilt.map_or_else(Vec::new, rebuild::lines);
            all.push(format!(
                "{name}: {} blocks mapped, {} checked{}",
                inspection.mapped,
                inspection.checked,
                if recovery.clean { "" } else { " (not closed; it recovers when it is served)" },
            ));
            all.extend(describe_lost(inspection.lost));
            let faulty = super::faulty::line(&super::faulty::as_json(inspection.faulty));
            all.extend(faulty.lines().map(ToOwned::to_owned));
            all.extend(lines);
            let more = inspection.found.saturating_sub(u64_from(FINDINGS_MAX));
            if more > 0 {
                all.push(format!("and {more} more"));
            }
            all.extend(given_up.map(|what| format!("given up: {what}")));
            let verdict = match (rebuilt.map(Rebuilt::is_exact), inspection.found, repaired) {
                (None, 0, true) => "repaired, with losses",
                (Some(true), _, true) => "rebuilt",
                (Some(_), ..) => "rebuilt, with losses",
                (None, 0, _) => "clean",
                (None, _, true) => "repaired",
                (None, _, false) => "damaged",
            };
            all.push(verdict.to_owned());
            all.join("\n") + "\n"
        }
    }
}

/// Blocks that were given up, if there are any.
fn describe_lost(blocks: u64) -> Option<String> {
    let text =
        format!("{blocks} blocks are lost: reading them is an error until they are written again");
    (blocks > 0).then_some(text)
}

/// Whether anything was changed.
fn repair(backing: &mut VolumeBacking, inspection: &Inspection) -> Result<bool, CliError> {
    let mut wrote = false;
    for finding in &inspection.findings {
        if let Finding::Label { at } = finding {
            let failed =
                |_| CliError::new(Exit::CheckFailed, "volume::repair", "a label cannot be written");
            write_label(backing, &inspection.label, *at).map_err(failed)?;
            wrote = true;
        }
    }
    if !inspection.recovery.clean || wrote {
        let opened = VolumeDevice::open(backing.clone(), VolumeOptions::default())?;
        opened.device.close()?;
    }
    Ok(wrote || inspection.found > 0)
}

/// Opens a volume whose zones hold less than its last checkpoint knows of: reading what is missing is an error from then on.
fn give_up_zones(backing: VolumeBacking) -> Result<(), CliError> {
    let mut options = VolumeOptions::default();
    options.engine.give_up_zones = true;
    VolumeDevice::open(backing, options)?.device.close()?;
    Ok(())
}

/// Names a member that is not the device.
fn of(member: MemberId) -> String {
    if member == MemberId::DEVICE { String::new() } else { format!(" of member {}", member.raw()) }
}

pub(super) fn describe(finding: &Finding) -> String {
    match finding {
        Finding::Label { at } => {
            format!("the copy of the label at block {at} is damaged; others are whole")
        }
        Finding::Root { at } => {
            format!("the root slot at block {at} is damaged; the newest root is whole")
        }
        Finding::NewestRoot { at } => {
            format!(
                "the newest root, at block {at}, is damaged: an opening would take an older one"
            )
        }
        Finding::Header { at } => format!(
            "the header at block {} of the log is damaged: what it lists was not looked at, `check --data` does",
            at.raw()
        ),
        Finding::Meta { at, kind } => {
            format!("block {} of a checkpoint ({kind:?}) is not what was written", at.raw())
        }
        Finding::Lost { last, durable } => {
            format!("batches {} to {durable} were durable and are missing or damaged", last + 1)
        }
        Finding::Page { member, lba } => {
            let (from, to) = (lba.raw(), lba.raw() + 1023);
            format!("the map of blocks {from} to {to}{} cannot be read", of(*member))
        }
        Finding::Outside { member, lba, at } => {
            format!(
                "block {}{} is mapped to {}, where no data can be",
                lba.raw(),
                of(*member),
                at.raw()
            )
        }
        Finding::Shared { member, lba, at } => {
            format!(
                "block {}{} is mapped to {}, which belongs to another one",
                lba.raw(),
                of(*member),
                at.raw()
            )
        }
        Finding::Offline { zone, blocks } => format!(
            "zone {} is offline, and held {blocks} blocks that are mapped: reading them is an error until they are written again",
            zone.raw()
        ),
        Finding::Miscount(wrong) => format!(
            "log segment {} has {} live blocks and counts {}",
            wrong.segment.raw(),
            wrong.found,
            wrong.counted
        ),
        Finding::Data { member, lba, at } => {
            format!("block {}{} at {} is not what was written", lba.raw(), of(*member), at.raw())
        }
        _ => "an unknown finding".to_owned(),
    }
}
