//! A study whose points are runs of the simulator: grids of any keys, or named devices, sizes of one key of theirs, and workloads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use onefold_buffer::Charge;
use onefold_config::{Config, ConfigError, Load, Policies, Sources, Tenant, size_text};
use onefold_trace::workload::Workload as Generated;

use super::axis::Coordinate;
use super::lists::sizes_of_study;
use super::reader::{Field, Keys, Reader, Table};
use super::{PolicyChoice, Study, Subject, Workload, grid, show};
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
        "config",
        "set",
        "size_key",
        "sizes",
        "seed",
        "seeds",
        "grid",
        "device",
        "workload",
        "metrics",
        "figure",
        "headline",
        "check",
    ],
};
const DEVICE: Keys = Keys { section: "[[device]]", known: &["label", "set", "sized"] };
const WORKLOAD: Keys = Keys {
    section: "[[workload]]",
    known: &["name", "label", "sizes", "workload", "trace", "tenants", "set"],
};
/// What a study with a grid says there instead.
const NOT_BESIDE_A_GRID: [&str; 4] = ["size_key", "sizes", "device", "workload"];

/// Most devices of a study.
const DEVICES_MOST: usize = 256;
/// Most runs of a point.
const SEEDS_MOST: u64 = 100;

/// The points of a grid: numbers of load and device, and the seeds they are run with; no seeds mean those of the study.
pub(super) type Cells = BTreeMap<(usize, usize), Vec<u64>>;

/// Devices to compare, as configurations of the simulator.
#[derive(Clone, Debug)]
pub struct Devices {
    /// `KEY=VALUE` for every point.
    pub sets: Vec<String>,
    /// The key that the sizes of the study are values of; empty in a grid.
    pub size_key: String,
    /// In the order of figures.
    pub choices: Vec<DeviceChoice>,
    /// What each workload of the study runs, in their order.
    pub loads: Vec<DeviceLoad>,
    /// What names of policies mean.
    pub policies: Policies,
    /// Names of the axes of a grid, in the order of the file; empty if devices and workloads have names of their own.
    pub axes: Vec<String>,
    /// The points of a grid.
    pub(crate) cells: Cells,
}

/// What a device is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// A preset.
    Preset(String),
    /// A configuration file.
    File(PathBuf),
}

/// One device of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceChoice {
    /// Name in figures.
    pub label: String,
    /// What it is made of.
    pub base: Base,
    /// `KEY=VALUE` beyond those of the study and the workload.
    pub sets: Vec<String>,
    /// Capacity in bytes, if another than that of its configuration.
    pub size: Option<u64>,
    /// Whether the size makes a difference; if not, one run stands for all sizes.
    pub sized: bool,
    /// Its values on the axes of a grid.
    pub axes: Vec<Coordinate>,
}

/// What a workload of a study of devices runs.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceLoad {
    /// The requests; `None` for those of the tenants of the configuration.
    pub load: Option<Load>,
    /// `KEY=VALUE` beyond those of the study.
    pub sets: Vec<String>,
    /// Its value on an axis of a grid.
    pub axis: Option<Coordinate>,
}

impl Base {
    /// Its name in reports.
    fn name(&self) -> String {
        match self {
            Self::Preset(name) => name.clone(),
            Self::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }
}

impl DeviceChoice {
    /// A device of a grid, as its base has it.
    pub(super) fn new(base: Base) -> Self {
        let (label, sets, axes) = (String::new(), Vec::new(), Vec::new());
        Self { label, base, sets, size: None, sized: false, axes }
    }
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
    ) -> Result<Config, ConfigError> {
        let (load, device) = (&self.loads[load], &self.choices[device]);
        let mut sets = [self.sets.as_slice(), &load.sets, &device.sets].concat();
        if device.sized {
            sets.push(format!("{}={}", self.size_key, size_text(bytes)));
        }
        let (file, preset) = match &device.base {
            Base::Preset(name) => (None, Some(name.as_str())),
            Base::File(path) => (Some(path.clone()), None),
        };
        let policies = self.policies.clone();
        let mut config = Config::load(&Sources { file, preset, sets: &sets, policies })?;
        if let Some(bytes) = device.size {
            config = config.with_logical_size(bytes)?;
        }
        Ok(match &load.load {
            Some(load) => config.with_load(load),
            None => config,
        })
    }

    /// Whether a device may get more blocks than its configuration has, because it is too small for collection: nobody asks for
    /// its spare area.
    pub(crate) fn may_grow(&self, (load, device): (usize, usize)) -> bool {
        let (load, device) = (&self.loads[load], &self.choices[device]);
        let mut sets = self.sets.iter().chain(&load.sets).chain(&device.sets);
        device.size.is_some() && !sets.any(|set| set.starts_with("capacity."))
    }

    /// Text by which results know a device.
    pub(crate) fn text(&self, device: usize) -> String {
        self.choices[device].sets.join(" ")
    }

    /// Whether the points are those of a grid.
    #[must_use]
    pub const fn is_grid(&self) -> bool {
        !self.axes.is_empty()
    }

    /// Whether a load runs on a device.
    pub(crate) fn is_point(&self, load: usize, device: usize) -> bool {
        !self.is_grid() || self.cells.contains_key(&(load, device))
    }

    /// The seeds that a grid gives a point; empty if it gives none.
    pub(crate) fn seeds(&self, load: usize, device: usize) -> &[u64] {
        self.cells.get(&(load, device)).map_or(&[], Vec::as_slice)
    }

    /// Where a point of a grid lies, in the order of its axes.
    pub(crate) fn coordinates(&self, load: usize, device: usize, seed: u64) -> Vec<Coordinate> {
        let values = || self.choices[device].axes.iter().chain(self.loads[load].axis.iter());
        let on = |axis: &String| match axis.as_str() {
            "seed" => Some(Coordinate::seed(seed)),
            _ => values().find(|one| one.axis == *axis).cloned(),
        };
        self.axes.iter().filter_map(on).collect()
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
    if let Some(kind) = study.get("kind")
        && kind.text()? != "devices"
    {
        return Err(kind.refuse("expected \"devices\", or leave it out"));
    }
    let schema = study.need("schema", "schema = \"onefold.study/1\"")?;
    if schema.text()? != SCHEMA {
        return Err(schema.refuse(format_args!("expected \"{SCHEMA}\"")));
    }
    let mut parsed = frame(&study, path)?;
    let (devices, place) = if let Some(place) = study.get("grid") {
        (grid(&study, &mut parsed)?, place)
    } else {
        named(&study, &mut parsed)?
    };
    for (choice, at) in devices.choices.iter().zip(0..) {
        let label = choice.label.clone();
        parsed.policies.push(PolicyChoice { subject: Subject::Device(at), label });
    }
    let devices = Devices { policies: policies.clone(), ..devices };
    parsed.device_bytes = try_all(&parsed, &devices, &place)?;
    parsed.devices = Some(devices);
    parsed.headlines = show::headlines(&study, &parsed)?;
    parsed.checks = show::checks(&study, &parsed)?;
    parsed.figures = show::figures(&study, &parsed)?;
    parsed.metrics = show::metrics(&study, &parsed)?;
    Ok(parsed)
}

/// What every study of devices has, without its points.
fn frame(study: &Table<'_>, path: &Path) -> Result<Study, StudyError> {
    let text = |field: &Field<'_>| field.text().map(str::to_owned);
    Ok(Study {
        path: path.to_path_buf(),
        name: study.need("name", "a short name")?.name()?,
        description: study.or("description", String::new(), text)?,
        device_bytes: 0,
        entry_bytes: 4096,
        flash_page_bytes: 4096,
        sizes: Vec::new(),
        policies: Vec::new(),
        bounds: Vec::new(),
        charge: Charge::None,
        volatile: true,
        preset: String::new(),
        latencies: vec![LatencyChoice::new(LatencyModel::default())],
        look_up_ns: 0,
        seed: study.or("seed", 0, Field::count)?,
        seeds: study.or("seeds", 1, seeds)?,
        workloads: Vec::new(),
        figures: Vec::new(),
        headlines: Vec::new(),
        checks: Vec::new(),
        metrics: Vec::new(),
        devices: None,
    })
}

fn grid(study: &Table<'_>, parsed: &mut Study) -> Result<Devices, StudyError> {
    if let Some(field) = NOT_BESIDE_A_GRID.iter().find_map(|key| study.get(key)) {
        return Err(field.refuse("expected nothing of that kind beside a grid: make it an axis"));
    }
    let preset = study.get("preset").map(|field| field.name()).transpose()?;
    let path = parsed.path.clone();
    let (devices, workloads) = grid::parse(study, &path, (preset, sets(study)?))?;
    parsed.workloads = workloads;
    // A grid has its sizes as axes.
    parsed.sizes = vec![0];
    Ok(devices)
}

/// Named devices, and the key that leads to errors of their configurations.
fn named<'a>(study: &Table<'a>, parsed: &mut Study) -> Result<(Devices, Field<'a>), StudyError> {
    let base = base(study, &parsed.path)?;
    parsed.preset = base.name();
    parsed.sizes = sizes_of_study(&study.need("sizes", "a list of sizes of `size_key`")?)?;
    let size_key =
        study.need("size_key", "the key that has the sizes, such as \"ftl.remap_log\"")?;
    let mut devices = Devices {
        sets: sets(study)?,
        size_key: size_key.name()?,
        choices: choices(study, &base)?,
        loads: Vec::new(),
        axes: Vec::new(),
        cells: Cells::new(),
        policies: Policies::builtin(),
    };
    workloads(study, parsed, &mut devices)?;
    Ok((devices, size_key))
}

/// What all devices are made of.
fn base(study: &Table<'_>, path: &Path) -> Result<Base, StudyError> {
    match (study.get("preset"), study.get("config")) {
        (Some(_), Some(config)) => Err(config.refuse("expected either preset or config, not both")),
        (None, Some(config)) => Ok(Base::File(beside(path, &config.name()?))),
        _ => {
            let preset =
                study.need("preset", "a preset such as \"femu32\", or config = \"FILE\"")?;
            Ok(Base::Preset(preset.name()?))
        }
    }
}

/// A file that a study names.
fn beside(study: &Path, file: &str) -> PathBuf {
    study.parent().unwrap_or_else(|| Path::new("")).join(file)
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

fn choices(study: &Table<'_>, base: &Base) -> Result<Vec<DeviceChoice>, StudyError> {
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
        let choice = DeviceChoice::new(base.clone());
        choices.push(DeviceChoice { label, sets: sets(table)?, sized, ..choice });
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
        devices.loads.push(DeviceLoad { load, sets: sets(table)?, axis: None });
        parsed.workloads.push(Workload { name, label, sizes, sources: Vec::new() });
    }
    Ok(())
}

/// What a workload runs; `None` if it leaves that to the tenants of the configuration.
fn load(table: &Table<'_>, path: &Path) -> Result<Option<Load>, StudyError> {
    let given = ["workload", "trace", "tenants"].map(|key| table.get(key));
    if let Some(second) = given.iter().flatten().nth(1) {
        return Err(second.refuse("expected either workload or trace or tenants, one of them"));
    }
    match given {
        [Some(field), ..] => {
            let text = field.name()?;
            Generated::parse(&text).map_err(|error| field.refuse(error))?;
            Ok(Some(Load::Workload(text)))
        }
        [_, Some(field), _] => Ok(Some(Load::Trace(beside(path, &field.name()?)))),
        [.., Some(field)] if field.flag()? => Ok(None),
        [.., Some(field)] => Err(field.refuse("expected true, or leave it out")),
        _ => Err(table.missing("workload", "workload = \"SPEC\" or trace = \"FILE\"")),
    }
}

/// Whether the tenants of a configuration do something that its text says in full: the identity of a point has no
/// digest of the trace of a tenant.
fn generates(config: &Config) -> Result<bool, ConfigError> {
    let tenants = config.tenants()?;
    let is_generated = |tenant: &Tenant| matches!(tenant.load, Load::Workload(_));
    Ok(!tenants.is_empty() && tenants.iter().all(is_generated))
}

/// Tries every configuration; returns the bytes of the first device.
fn try_all(parsed: &Study, devices: &Devices, place: &Field<'_>) -> Result<u64, StudyError> {
    let mut first = None;
    for load in 0..devices.loads.len() {
        for device in (0..devices.choices.len()).filter(|device| devices.is_point(load, *device)) {
            for size in &parsed.sizes {
                let config = devices.config((load, device), *size);
                let own = devices.loads[load].load.is_none();
                let bytes = config
                    .and_then(|config| Ok((config.logical_bytes()?, !own || generates(&config)?)));
                let (bytes, runs) = bytes.map_err(|error| {
                    let (load, device) = (&parsed.workloads[load].name, &devices.choices[device]);
                    let help = Some(error.help()).filter(|help| help.starts_with("did you mean"));
                    let help = help.map_or_else(String::new, |help| format!("; {help}"));
                    let point = format!("{load}, {}", device.label);
                    place.refuse_point(point, format!("{error}{help}"))
                })?;
                if !runs {
                    return Err(place.refuse(
                        "expected a configuration with tenants that have a workload, as tenants = true says",
                    ));
                }
                first.get_or_insert(bytes);
            }
        }
    }
    Ok(first.unwrap_or(0))
}
