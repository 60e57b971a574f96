//! A study whose points are runs of the simulator: devices, sizes of one key of theirs, workloads.

use std::path::Path;

use onefold_buffer::Charge;
use onefold_config::{Config, Load, Policies, Sources, size_text};
use onefold_trace::workload::Workload as Generated;

use super::lists::sizes_of_study;
use super::reader::{Field, Keys, Reader, Table};
use super::{PolicyChoice, Study, Subject, Workload, show};
use crate::latency::{LatencyChoice, LatencyModel};
use crate::{SCHEMA, StudyError};

const STUDY: Keys = Keys {
    section: "a study of devices",
    known: &[
        "schema",
        "kind",
        "name",
        "description",
        "preset",
        "set",
        "size_key",
        "sizes",
        "seed",
        "seeds",
        "device",
        "workload",
        "figure",
        "headline",
        "check",
    ],
};
const DEVICE: Keys = Keys { section: "[[device]]", known: &["label", "set", "sized"] };
const WORKLOAD: Keys = Keys {
    section: "[[workload]]",
    known: &["name", "label", "sizes", "workload", "trace", "set"],
};

/// Most devices of a study.
const DEVICES_MOST: usize = 256;
/// Most runs of a point.
const SEEDS_MOST: u64 = 100;

/// Devices to compare, as configurations of the simulator.
#[derive(Clone, Debug)]
pub struct Devices {
    /// Preset that all of them are made of.
    pub preset: String,
    /// `KEY=VALUE` for every point.
    pub sets: Vec<String>,
    /// The key that the sizes of the study are values of.
    pub size_key: String,
    /// In the order of figures.
    pub choices: Vec<DeviceChoice>,
    /// What each workload of the study runs, in their order.
    pub loads: Vec<DeviceLoad>,
    /// What names of policies mean.
    pub policies: Policies,
}

/// One device of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceChoice {
    /// Name in figures.
    pub label: String,
    /// `KEY=VALUE` beyond those of the study and the workload.
    pub sets: Vec<String>,
    /// Whether the size makes a difference; if not, one run stands for all sizes.
    pub sized: bool,
}

/// What a workload of a study of devices runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceLoad {
    /// The requests.
    pub load: Load,
    /// `KEY=VALUE` beyond those of the study.
    pub sets: Vec<String>,
}

impl Devices {
    /// The configuration of one point; `at` is the number of its workload and that of its device.
    ///
    /// # Errors
    /// The first `KEY=VALUE` that does not fit.
    pub fn config(
        &self,
        (load, device): (usize, usize),
        bytes: u64,
    ) -> Result<Config, onefold_config::ConfigError> {
        let (load, device) = (&self.loads[load], &self.choices[device]);
        let mut sets = [self.sets.as_slice(), &load.sets, &device.sets].concat();
        if device.sized {
            sets.push(format!("{}={}", self.size_key, size_text(bytes)));
        }
        let policies = self.policies.clone();
        let sources = Sources { file: None, preset: Some(&self.preset), sets: &sets, policies };
        Ok(Config::load(&sources)?.with_load(&load.load))
    }

    /// Text by which results know a device.
    pub(crate) fn text(&self, device: usize) -> String {
        self.choices[device].sets.join(" ")
    }
}

/// Reads a study of devices; every configuration it can lead to is tried.
pub(super) fn parse(
    path: &Path,
    reader: Reader<'_>,
    policies: &Policies,
) -> Result<Study, StudyError> {
    let table = reader.parse()?;
    let study = Table::new(reader, STUDY, table.get_ref(), 0)?;
    let schema = study.need("schema", "schema = \"onefold.study/1\"")?;
    if schema.text()? != SCHEMA {
        return Err(schema.refuse(format_args!("expected \"{SCHEMA}\"")));
    }
    let preset = study.need("preset", "a preset such as \"femu32\"")?.name()?;
    let text = |field: &Field<'_>| field.text().map(str::to_owned);
    let mut parsed = Study {
        path: path.to_path_buf(),
        name: study.need("name", "a short name")?.name()?,
        description: study.or("description", String::new(), text)?,
        device_bytes: 0,
        entry_bytes: 4096,
        flash_page_bytes: 4096,
        sizes: sizes_of_study(&study.need("sizes", "a list of sizes of `size_key`")?)?,
        policies: Vec::new(),
        bounds: Vec::new(),
        charge: Charge::None,
        volatile: true,
        preset: preset.clone(),
        latencies: vec![LatencyChoice::new(LatencyModel::default())],
        look_up_ns: 0,
        seed: study.or("seed", 0, Field::count)?,
        seeds: study.or("seeds", 1, seeds)?,
        workloads: Vec::new(),
        figures: Vec::new(),
        headlines: Vec::new(),
        checks: Vec::new(),
        devices: None,
    };
    let size_key =
        study.need("size_key", "the key that has the sizes, such as \"ftl.remap_log\"")?;
    let mut devices = Devices {
        preset,
        sets: sets(&study)?,
        size_key: size_key.name()?,
        choices: choices(&study)?,
        loads: Vec::new(),
        policies: policies.clone(),
    };
    for (choice, at) in devices.choices.iter().zip(0..) {
        let label = choice.label.clone();
        parsed.policies.push(PolicyChoice { subject: Subject::Device(at), label });
    }
    workloads(&study, &mut parsed, &mut devices)?;
    parsed.device_bytes = try_all(&parsed, &devices, &size_key)?;
    parsed.devices = Some(devices);
    parsed.headlines = show::headlines(&study, &parsed)?;
    parsed.checks = show::checks(&study, &parsed)?;
    parsed.figures = show::figures(&study, &parsed)?;
    Ok(parsed)
}

fn seeds(field: &Field<'_>) -> Result<u64, StudyError> {
    let found = field.count()?;
    if (1..=SEEDS_MOST).contains(&found) {
        return Ok(found);
    }
    Err(field.refuse("expected 1 to 100 seeds"))
}

fn sets(table: &Table<'_>) -> Result<Vec<String>, StudyError> {
    let set = |item: &Field<'_>| {
        let text = item.name()?;
        if text.contains('=') {
            return Ok(text);
        }
        Err(item.refuse("expected KEY=VALUE, such as \"ftl.remap=lh\""))
    };
    table.or("set", Vec::new(), |field| field.items()?.iter().map(set).collect())
}

fn choices(study: &Table<'_>) -> Result<Vec<DeviceChoice>, StudyError> {
    let tables = study.tables("device", DEVICE)?;
    if tables.is_empty() || tables.len() > DEVICES_MOST {
        return Err(study.missing("device", "1 to 256 [[device]] tables"));
    }
    let mut choices: Vec<DeviceChoice> = Vec::new();
    for table in &tables {
        let field = table.need("label", "a short name")?;
        let label = field.name()?;
        if choices.iter().any(|other| other.label == label) {
            return Err(field.refuse("expected every label once"));
        }
        let sized = table.or("sized", true, Field::flag)?;
        choices.push(DeviceChoice { label, sets: sets(table)?, sized });
    }
    Ok(choices)
}

fn workloads(
    study: &Table<'_>,
    parsed: &mut Study,
    devices: &mut Devices,
) -> Result<(), StudyError> {
    let tables = study.tables("workload", WORKLOAD)?;
    if tables.is_empty() {
        return Err(study.missing("workload", "at least one [[workload]] table"));
    }
    for table in &tables {
        let field = table.need("name", "a short name")?;
        let name = field.name()?;
        if parsed.workloads.iter().any(|workload| workload.name == name) {
            return Err(field.refuse("expected a name that no other workload has"));
        }
        let label = table.or("label", name.clone(), Field::name)?;
        let sizes = show::sizes(table, parsed)?;
        let load = load(table, &parsed.path)?;
        devices.loads.push(DeviceLoad { load, sets: sets(table)? });
        parsed.workloads.push(Workload { name, label, sizes, sources: Vec::new() });
    }
    Ok(())
}

fn load(table: &Table<'_>, path: &Path) -> Result<Load, StudyError> {
    match (table.get("workload"), table.get("trace")) {
        (Some(_), Some(trace)) => Err(trace.refuse("expected either workload or trace, not both")),
        (None, None) => Err(table.missing("workload", "workload = \"SPEC\" or trace = \"FILE\"")),
        (Some(field), None) => {
            let text = field.name()?;
            Generated::parse(&text).map_err(|error| field.refuse(error))?;
            Ok(Load::Workload(text))
        }
        (None, Some(field)) => {
            Ok(Load::Trace(path.parent().unwrap_or_else(|| Path::new("")).join(field.name()?)))
        }
    }
}

/// Tries every configuration; returns the bytes of the first device.
fn try_all(parsed: &Study, devices: &Devices, size_key: &Field<'_>) -> Result<u64, StudyError> {
    let mut first = None;
    for load in 0..devices.loads.len() {
        for device in 0..devices.choices.len() {
            for size in &parsed.sizes {
                let config = devices.config((load, device), *size);
                let bytes = config.and_then(|config| config.logical_bytes());
                let bytes = bytes.map_err(|error| {
                    let (load, device) = (&parsed.workloads[load].name, &devices.choices[device]);
                    size_key.refuse(format_args!("{load}, {}: {error}", device.label))
                })?;
                first.get_or_insert(bytes);
            }
        }
    }
    Ok(first.unwrap_or(0))
}
