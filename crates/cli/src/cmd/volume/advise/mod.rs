//! `onefold volume advise`: whether a volume would help, and which row of docs/volume.md says so.
//!
//! What is measured, what the device says and what is assumed are told apart: each fact has its source.

mod hints;
mod model;
mod probe;
mod verdict;
mod workload;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use onefold_config::Config;
use onefold_device::{Access, VolumeBacking, VolumeError};
use onefold_units::convert::float;
use serde_json::{Value, json};

use crate::cmd::config::ConfigArgs;
use crate::cmd::ssd::{self, render};
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};
use hints::Hints;
use model::{Device, Load, Prediction};
use probe::Measured;
use verdict::{Case, Decision, Verdict, decide};
use workload::Workload;

/// Over-provisioning that is assumed of a drive that does not say.
const ASSUMED_OP: f64 = 0.07;

/// Share of the log that holds data, unless it is said.
const UTILISATION: f64 = 0.7;

/// What is said when a volume is made on a drive that it may not help.
pub(super) fn warning(path: &Path) -> Option<String> {
    let facts = if super::is_ssd_image(path) {
        Facts::of_model(&ssd::open(path, Access::ReadOnly).ok()?.1).ok()?
    } else {
        Facts::hinted(path)
    };
    let (device, load) = facts.model(UTILISATION);
    let decision = decide(&facts.case(model::predict(&device, &load), UTILISATION));
    let known = facts.unit.is_some() && decision.verdict != Verdict::Use;
    known.then(|| format!("{}: {}", decision.row, decision.why))
}

/// Options of `onefold volume advise`.
#[derive(Debug, Args)]
pub(crate) struct Advise {
    /// The device or file that a volume would lie on, or an image made by `onefold ssd create`
    #[arg(value_name = "PATH", required_unless_present = "preset")]
    path: Option<PathBuf>,
    /// Judge a modelled drive instead (`onefold config presets` lists them)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["path", "scratch", "destructive"])]
    preset: Option<String>,
    /// Measure with this new file, which is removed afterwards; PATH is only read
    #[arg(long, value_name = "FILE", conflicts_with = "destructive")]
    scratch: Option<PathBuf>,
    /// Size of the scratch file, or of the part of PATH that is overwritten
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = render::parse_size)]
    scratch_size: u64,
    /// Measure PATH itself, which has to read as zeroes unless --force is given
    #[arg(long)]
    destructive: bool,
    /// Seconds for each of the six numbers that are measured
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// What is to be written
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Share of the log that will hold data
    #[arg(long, value_name = "SHARE", default_value_t = UTILISATION, value_parser = parse_share)]
    utilisation: f64,
}

fn parse_share(text: &str) -> Result<f64, String> {
    render::parse_share(text, 0.01..=0.98)
}

/// A number and where it comes from.
type Sourced<T> = (T, &'static str);

/// Everything that was found out.
#[derive(Default)]
struct Facts {
    hints: Hints,
    zoned: bool,
    holds: Option<&'static str>,
    measured: Option<Measured>,
    /// Bytes of the indirection unit.
    unit: Option<Sourced<u64>>,
    op: Option<Sourced<f64>>,
    superblock_known: bool,
    workload: Option<Workload>,
}

impl Facts {
    /// What the kernel says of a block device, or of what a file lies on.
    fn hinted(path: &Path) -> Self {
        let hints = Hints::of(path);
        let unit = hints.preferred_write().map(|size| (size, "the device says (minimum_io_size)"));
        Self { zoned: hints.is_zoned(), hints, unit, ..Self::default() }
    }

    /// What a modelled drive says of itself.
    fn of_model(config: &Config) -> Result<Self, CliError> {
        let geometry = config.geometry()?;
        let unit = u64::from(geometry.unit_bytes());
        let raw = u64::from(geometry.superblocks()) * u64::from(geometry.slots()) * unit;
        let logical = config.logical_bytes()?;
        let from = "the model says";
        Ok(Self {
            zoned: config.is_zoned(),
            unit: Some((unit, from)),
            op: Some((float(raw) / float(logical) - 1.0, from)),
            superblock_known: true,
            ..Self::default()
        })
    }

    fn model(&self, utilisation: f64) -> (Device, Load) {
        let unit = self.unit.map_or(4096, |(unit, _)| unit);
        let device = Device {
            unit: float(unit),
            op: self.op.map_or(ASSUMED_OP, |(op, _)| op),
            superblock_known: self.superblock_known,
        };
        let workload = self.workload.as_ref().filter(|workload| workload.writes > 0);
        let load = Load {
            utilisation,
            write_bytes: workload.map_or(4096.0, |workload| workload.mean_write_bytes.max(512.0)),
            flushes: workload.map_or(0.0, |workload| workload.flushes_per_write),
        };
        (device, load)
    }

    fn case(&self, prediction: Prediction, utilisation: f64) -> Case {
        let workload = self.workload.as_ref();
        let is_log =
            |what: &&str| ["btrfs", "F2FS", "a volume"].iter().any(|log| what.contains(log));
        Case {
            zoned: self.zoned,
            unit: self.unit.map(|(unit, _)| unit),
            random_share: self.measured.as_ref().map(Measured::random_share),
            rotational: self.hints.is_rotational(),
            log_on_top: self.holds.filter(is_log).map(str::to_owned),
            utilisation,
            flushes_per_write: workload.map(|workload| workload.flushes_per_write),
            write_bytes: workload.map(|workload| workload.mean_write_bytes),
            sequential_share: workload.map(|workload| workload.sequential_share),
            predicted: self.unit.map(|_| (prediction.without, prediction.with)),
        }
    }
}

impl Advise {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let facts = self.find_out(global)?;
        let (device, load) = facts.model(self.utilisation);
        // The rows need a prediction only where the unit is known.
        let prediction = model::predict(&device, &load);
        let decision = decide(&facts.case(prediction, self.utilisation));
        let text = match global.format() {
            Format::Json => {
                format!("{:#}\n", self.as_json(&facts, (&device, &load), prediction, &decision))
            }
            Format::Table => self.table(&facts, (&device, &load), prediction, &decision),
        };
        global.emit(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    fn find_out(&self, global: &Global) -> Result<Facts, CliError> {
        let mut facts = match (&self.preset, &self.path) {
            (Some(preset), _) => {
                let preset = Some(preset.clone());
                Facts::of_model(&ConfigArgs { config: None, preset, sets: Vec::new() }.load()?)?
            }
            (None, Some(path)) if super::is_ssd_image(path) => {
                Facts::of_model(&ssd::open(path, Access::ReadOnly)?.1)?
            }
            (None, Some(path)) => self.of_device(path, global)?,
            (None, None) => Facts::default(),
        };
        facts.workload = self.trace.as_deref().map(Workload::read).transpose()?;
        Ok(facts)
    }

    /// Looks at a file or device, and measures where that is allowed.
    fn of_device(&self, path: &Path, global: &Global) -> Result<Facts, CliError> {
        // Held until the end: nobody else may begin to use what is overwritten.
        let backing = match VolumeBacking::open(path, self.destructive) {
            Ok(backing) => Some(backing),
            Err(VolumeError::Busy { .. }) if !self.destructive => None,
            Err(error) => return Err(error.into()),
        };
        if let Some(backing) = backing.as_ref().filter(|_| self.destructive && !global.force)
            && let Some(what) = backing.contents(&[])
        {
            return Err(VolumeError::Holds { what }.into());
        }
        let holds = backing.as_ref().and_then(VolumeBacking::looks);
        let mut facts = Facts { holds, ..Facts::hinted(path) };
        facts.measured = self.measure(path, global)?;
        if let (None, Some(measured)) = (facts.unit, &facts.measured) {
            facts.unit =
                measured.knee().map(|knee| (knee, "measured: the knee of bandwidth by size"));
        }
        Ok(facts)
    }

    fn measure(&self, path: &Path, global: &Global) -> Result<Option<Measured>, CliError> {
        let time = Duration::from_secs(self.seconds);
        let failed = |path: &Path, error: std::io::Error| {
            let text = format!("cannot measure {}: {error}", path.display());
            CliError::new(Exit::Failed, "volume::measure", text)
        };
        let bytes = self.scratch_size >> 20 << 20;
        if bytes == 0 {
            let text = format!("--scratch-size is {} B, expected at least 1MiB", self.scratch_size);
            return Err(CliError::new(Exit::Usage, "volume::scratch", text));
        }
        if let Some(scratch) = &self.scratch {
            probe::make(scratch, bytes).map_err(|error| failed(scratch, error))?;
            let _unfinished = global.interrupt.unfinished(scratch);
            global.say(format_args!("measuring {} with {}", path.display(), scratch.display()));
            let measured = probe::measure(scratch, bytes, time);
            // What was made here goes, whatever came of it.
            let _ = std::fs::remove_file(scratch);
            return measured.map(Some).map_err(|error| failed(scratch, error));
        }
        if !self.destructive {
            return Ok(None);
        }
        let size = probe::size_of(path).map_err(|error| failed(path, error))?;
        global.say(format_args!("overwriting {}", path.display()));
        global.interrupt.leaves("nothing was measured, and what was overwritten is lost");
        let bytes = bytes.min(size >> 20 << 20).max(1 << 20);
        probe::measure(path, bytes, time).map(Some).map_err(|error| failed(path, error))
    }

    fn subject(&self) -> String {
        match (&self.preset, &self.path) {
            (Some(preset), _) => format!("preset {preset}"),
            (None, Some(path)) => path.display().to_string(),
            (None, None) => String::new(),
        }
    }

    fn as_json(
        &self,
        facts: &Facts,
        (device, load): (&Device, &Load),
        prediction: Prediction,
        decision: &Decision,
    ) -> Value {
        let measured = facts.measured.as_ref().map(|measured| {
            let random = |(size, speed): &(u64, f64)| json!({"bytes": size, "bytes_per_s": speed});
            json!({
                "sequential_bytes_per_s": measured.sequential,
                "random": measured.random.iter().map(random).collect::<Vec<_>>(),
                "random_to_sequential": measured.random_share(),
                "passes": measured.passes,
                "direct": measured.direct,
            })
        });
        json!({
            "schema": "onefold.volume.advise/1",
            "subject": self.subject(),
            "verdict": decision.verdict.name(),
            "row": decision.row,
            "why": decision.why,
            "predicted": {
                "by": "formula (Desnoyers 2012), uniformly random writes",
                "waf_without": prediction.without,
                "waf_with": prediction.with,
                "waf_host": prediction.waf_host,
                "utilisation": load.utilisation,
                "write_bytes": load.write_bytes,
                "flushes_per_write": load.flushes,
                "unit_bytes": device.unit,
                "unit_from": facts.unit.map_or("assumed", |(_, from)| from),
                "op": device.op,
                "op_from": facts.op.map_or("assumed", |(_, from)| from),
                "superblock_known": device.superblock_known,
            },
            "measured": measured,
            "device": facts.hints.device,
            "queue": facts.hints.queue,
            "holds": facts.holds,
            "trace": facts.workload.as_ref().map(Workload::to_json),
        })
    }

    fn table(
        &self,
        facts: &Facts,
        (device, load): (&Device, &Load),
        prediction: Prediction,
        decision: &Decision,
    ) -> String {
        let mut text = format!(
            "{}: {}\n  row: {}\n  why: {}\n",
            self.subject(),
            decision.verdict.name(),
            decision.row,
            decision.why
        );
        // Writing to a string cannot fail.
        let mut line = |what: &str, value: String| {
            let _ = writeln!(text, "{what:<22} {value}");
        };
        line(
            "predicted WAF",
            format!(
                "{:.2} without, {:.2} with a volume (formula, uniformly random writes of {:.0} B, {:.0} % in use)",
                prediction.without,
                prediction.with,
                load.write_bytes,
                load.utilisation * 100.0
            ),
        );
        let from = |from: Option<&'static str>| from.unwrap_or("assumed");
        line(
            "indirection unit",
            format!("{} KiB, {}", device.unit / 1024.0, from(facts.unit.map(|(_, from)| from))),
        );
        line(
            "over-provisioning",
            format!("{:.0} %, {}", device.op * 100.0, from(facts.op.map(|(_, from)| from))),
        );
        text + &self.seen(facts)
    }

    /// What was looked at: measurement, device, content, trace.
    fn seen(&self, facts: &Facts) -> String {
        let mut text = String::new();
        let mut line = |what: &str, value: String| {
            let _ = writeln!(text, "{what:<22} {value}");
        };
        if let Some(measured) = &facts.measured {
            line("measured, sequential", format!("{:.1} MB/s", measured.sequential / 1e6));
            for (size, speed) in &measured.random {
                line(&format!("  random {} KiB", size >> 10), format!("{:.1} MB/s", speed / 1e6));
            }
            let steady = if measured.passes < 1.0 { ": not a steady state" } else { "" };
            line("  overwritten", format!("{:.1} times{steady}", measured.passes));
        } else if self.preset.is_none() {
            line("measured", "nothing; --scratch FILE or --destructive would".to_owned());
        }
        if let Some(name) = &facts.hints.device {
            let shown: Vec<String> =
                facts.hints.queue.iter().map(|(key, value)| format!("{key} {value}")).collect();
            line("device", format!("{name}: {}", shown.join(", ")));
        }
        line("holds", facts.holds.unwrap_or("nothing known").to_owned());
        if let Some(trace) = &facts.workload {
            line(
                "trace",
                format!(
                    "{} writes of {:.0} B, {:.0} % sequential, {:.2} flushes per write, {:.0} % of the writes to a \
                     fifth of {}",
                    trace.writes,
                    trace.mean_write_bytes,
                    trace.sequential_share * 100.0,
                    trace.flushes_per_write,
                    trace.top20_share * 100.0,
                    render::size(trace.footprint_bytes),
                ),
            );
        }
        text
    }
}
