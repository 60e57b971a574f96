//! From TOML to a checked [`Study`].

use std::fs;
use std::path::Path;

use onefold_buffer::Charge;
use onefold_config::Policies;
use onefold_trace::FormatSpec;
use onefold_tracefile::Options;
use onefold_units::convert::{float, floor_u64, narrow};
use toml::de::{DeTable, DeValue};

use super::lists::{DEVICE_MOST, items, sizes_of_study};
use super::reader::{Field, Keys, Reader, Table};
use super::{Bound, Input, PolicyChoice, Source, Study, Subject, WarmUp, Workload};
use super::{devices, latency, show};
use crate::{SCHEMA, StudyError};

const STUDY: Keys = Keys {
    section: "the study",
    known: &[
        "schema",
        "name",
        "description",
        "device",
        "entry",
        "flash_page",
        "sizes",
        "policies",
        "bounds",
        "charge",
        "volatile",
        "preset",
        "latency",
        "look_up",
        "seed",
        "workload",
        "metrics",
        "figure",
        "headline",
        "check",
    ],
};
const POLICY: Keys = Keys { section: "a policy", known: &["policy", "label", "empty"] };
const WORKLOAD: Keys =
    Keys { section: "[[workload]]", known: &["name", "label", "sizes", "source"] };
const SOURCE: Keys = Keys {
    section: "[[workload.source]]",
    known: &[
        "name", "workload", "trace", "format", "device", "share", "offset", "size", "limit",
        "warm_up", "role",
    ],
};

/// Most tenants of a workload.
const SOURCES_MOST: usize = 16;
/// Longest look-up, in nanoseconds: keeps the latency of a request of 2^32 entries in 64 bits.
const LOOK_UP_MOST: u64 = 1_000_000_000;
/// Largest share: keeps the products of the interleaver in 128 bits.
const SHARE_MOST: f64 = 1e9;

impl Study {
    /// Reads and checks a study file. Traces are looked for next to it.
    pub fn load(path: &Path) -> Result<Self, StudyError> {
        Self::load_with(path, &Policies::builtin())
    }

    /// The same with policies that a program adds.
    pub fn load_with(path: &Path, policies: &Policies) -> Result<Self, StudyError> {
        let failed = |source| StudyError::Read { path: path.to_path_buf(), source };
        let text = fs::read_to_string(path).map_err(failed)?;
        Self::parse_with(path, &text, policies)
    }

    /// Reads the text of a study file called `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Self, StudyError> {
        Self::parse_with(path, text, &Policies::builtin())
    }

    /// The same with policies that a program adds.
    pub fn parse_with(path: &Path, text: &str, known: &Policies) -> Result<Self, StudyError> {
        let reader = Reader::new(path, text);
        let table = reader.parse()?;
        if is_of_devices(table.get_ref()) {
            return devices::parse(path, reader, known);
        }
        let study = Table::new(reader, STUDY, table.get_ref(), 0)?;
        let schema = study.need("schema", "schema = \"onefold.study/1\"")?;
        if schema.text()? != SCHEMA {
            return Err(schema.refuse(format_args!("expected \"{SCHEMA}\"")));
        }
        let device = study.need("device", "a size such as \"300GiB\"")?;
        let device_bytes = device.size(4096, DEVICE_MOST)?;
        let entry_bytes = narrow(study.or("entry", 4096, |field| field.size(512, 1 << 17))?);
        if !device_bytes.is_multiple_of(u64::from(entry_bytes))
            || device_bytes / u64::from(entry_bytes) > u64::from(u32::MAX)
        {
            let text = format!(
                "expected a multiple of the entry of {entry_bytes} B, at most 2^32 - 1 entries"
            );
            return Err(device.refuse(text));
        }
        let mut parsed = Self {
            path: path.to_path_buf(),
            name: study.need("name", "a short name")?.name()?,
            description: study
                .or("description", String::new(), |text| text.text().map(str::to_owned))?,
            device_bytes,
            entry_bytes,
            flash_page_bytes: narrow(
                study.or("flash_page", 4096, |field| field.size(512, 1 << 20))?,
            ),
            sizes: sizes_of_study(
                &study.need("sizes", "a list of sizes, such as [\"8MiB\", \"32MiB\"]")?,
            )?,
            policies: policies(
                &study.need("policies", "a list of policies, such as [\"lru\"]")?,
                known,
            )?,
            bounds: study.or("bounds", Vec::new(), bounds)?,
            charge: study.or("charge", Charge::Paper, |f| f.choice(&Charge::ALL, Charge::name))?,
            volatile: study.or("volatile", false, Field::flag)?,
            preset: study.or("preset", "jeong2021".to_owned(), Field::name)?,
            latencies: latency::models(&study)?,
            look_up_ns: study.or("look_up", 100, look_up)?,
            seed: study.or("seed", 0, Field::count)?,
            seeds: 1,
            workloads: Vec::new(),
            figures: Vec::new(),
            headlines: Vec::new(),
            checks: Vec::new(),
            metrics: Vec::new(),
            devices: None,
        };
        parsed.workloads = workloads(&study, &parsed)?;
        parsed.headlines = show::headlines(&study, &parsed)?;
        parsed.checks = show::checks(&study, &parsed)?;
        parsed.figures = show::figures(&study, &parsed)?;
        parsed.metrics = show::metrics(&study, &parsed)?;
        Ok(parsed)
    }
}

/// Whether the points of the study are runs of the simulator: it has a grid or `[[device]]`. A study of buffers has a size there.
fn is_of_devices(study: &DeTable<'_>) -> bool {
    let value = |key: &str| study.get(key).map(toml::Spanned::get_ref);
    let says_so = matches!(value("kind"), Some(DeValue::String(kind)) if kind == "devices");
    says_so || value("grid").is_some() || matches!(value("device"), Some(DeValue::Array(_)))
}

fn policies(field: &Field<'_>, known: &Policies) -> Result<Vec<PolicyChoice>, StudyError> {
    let mut policies: Vec<PolicyChoice> = Vec::new();
    for item in items(field)? {
        let (text, label, is_empty) = if item.is_table() {
            let table = item.table(POLICY)?;
            let text = table.need("policy", "a policy such as \"lru\"")?;
            let label = table.get("label").map(|label| label.name()).transpose()?;
            (text, label, table.or("empty", false, Field::flag)?)
        } else {
            (item, None, false)
        };
        let spec = known.buffer.parse(text.text()?).map_err(|error| text.refuse(error))?;
        let subject = if is_empty { Subject::Empty(spec) } else { Subject::Policy(spec) };
        let label = label.unwrap_or_else(|| subject.to_string());
        if policies.iter().any(|other| other.subject == subject || other.label == label) {
            return Err(item.refuse("expected every policy and every label once"));
        }
        policies.push(PolicyChoice { subject, label });
    }
    Ok(policies)
}

fn bounds(field: &Field<'_>) -> Result<Vec<Bound>, StudyError> {
    let mut bounds = Vec::new();
    for item in field.items()? {
        let bound = item.choice(&Bound::ALL, Bound::name)?;
        if bounds.contains(&bound) {
            return Err(item.refuse("expected every bound once"));
        }
        bounds.push(bound);
    }
    Ok(bounds)
}

fn workloads(study: &Table<'_>, parsed: &Study) -> Result<Vec<Workload>, StudyError> {
    let expected = "at least one [[workload]] table, or the grid is empty";
    let tables = study.tables("workload", WORKLOAD)?;
    if tables.is_empty() {
        return Err(study.missing("workload", expected));
    }
    let mut workloads: Vec<Workload> = Vec::new();
    for table in &tables {
        let field = table.need("name", "a short name")?;
        let name = field.name()?;
        if workloads.iter().any(|other| other.name == name) {
            return Err(field.refuse("expected a name that no other workload has"));
        }
        let label = table.or("label", name.clone(), Field::name)?;
        let sizes = show::sizes(table, parsed)?;
        let sources = sources(table, parsed)?;
        let workload = Workload { name, label, sizes, sources };
        if let Some(bound) = parsed.bounds.iter().find(|bound| bound.is_of_target())
            && workload.target().is_none()
        {
            let problem =
                format!("no source has role = \"target\", which the bound {} needs", bound.name());
            return Err(field.refuse(problem));
        }
        workloads.push(workload);
    }
    Ok(workloads)
}

fn sources(workload: &Table<'_>, parsed: &Study) -> Result<Vec<Source>, StudyError> {
    let tables = workload.tables("source", SOURCE)?;
    if tables.is_empty() {
        return Err(workload.missing("source", "at least one [[workload.source]] table"));
    }
    if tables.len() > SOURCES_MOST {
        let field = workload.need("source", "")?;
        return Err(field.refuse(format_args!("expected at most {SOURCES_MOST} sources")));
    }
    let mut sources: Vec<Source> = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        let source = source(table, at, tables.len() == 1, parsed)?;
        let name = || table.get("name").or_else(|| table.get("role"));
        if source.is_target && sources.iter().any(|other| other.is_target) {
            return Err(table.need("role", "")?.refuse("expected one target in a workload"));
        }
        if let Some(field) = name()
            && sources.iter().any(|other| other.name == source.name)
        {
            return Err(field.refuse("expected a name that no other source of the workload has"));
        }
        sources.push(source);
    }
    Ok(sources)
}

fn source(
    table: &Table<'_>,
    at: usize,
    is_only: bool,
    parsed: &Study,
) -> Result<Source, StudyError> {
    let entry = u64::from(parsed.entry_bytes);
    let address = |field: &Field<'_>| {
        let bytes = field.size(0, parsed.device_bytes)?;
        if bytes.is_multiple_of(entry) {
            return Ok(bytes);
        }
        Err(field.refuse(format_args!("expected a multiple of the entry of {entry} B")))
    };
    let share = match table.get("share") {
        Some(field) => share(&field)?,
        None if is_only => 1_000_000,
        None => return Err(table.missing("share", "its share of the bytes, such as 28")),
    };
    let is_target = table.or("role", false, |field| {
        field.choice(&[false, true], |target| if target { "target" } else { "background" })
    })?;
    Ok(Source {
        name: table.or("name", format!("source {}", at + 1), Field::name)?,
        input: input(table, parsed)?,
        share,
        offset: table.or("offset", 0, address)?,
        size: table.get("size").map(|field| address(&field)).transpose()?,
        limit: table.get("limit").map(|field| field.size(1, u64::MAX)).transpose()?,
        warm_up: table.or("warm_up", WarmUp::NONE, warm_up)?,
        is_target,
    })
}

fn share(field: &Field<'_>) -> Result<u64, StudyError> {
    let share = field.number()?;
    let millionths = floor_u64(share * 1e6 + 0.5);
    if share <= SHARE_MOST && millionths > 0 {
        return Ok(millionths);
    }
    Err(field.refuse("expected a number from 0.000001 to 1000000000: a share of 0 would never run"))
}

fn look_up(field: &Field<'_>) -> Result<u64, StudyError> {
    let ns = field.time()?;
    if ns <= LOOK_UP_MOST { Ok(ns) } else { Err(field.refuse("expected 0 to 1s")) }
}

fn warm_up(field: &Field<'_>) -> Result<WarmUp, StudyError> {
    if field.text().is_ok_and(|text| text == "load") {
        return Ok(WarmUp::Load);
    }
    field.size(0, u64::MAX).map(WarmUp::Bytes)
}

fn input(table: &Table<'_>, parsed: &Study) -> Result<Input, StudyError> {
    match (table.get("workload"), table.get("trace")) {
        (Some(_), Some(trace)) => Err(trace.refuse("expected either workload or trace, not both")),
        (None, None) => Err(table.missing("workload", "workload = \"SPEC\" or trace = \"FILE\"")),
        (Some(field), None) => {
            if let Some(other) = table.get("format").or_else(|| table.get("device")) {
                return Err(other.refuse("expected only where a trace is given"));
            }
            let workload = onefold_trace::workload::Workload::parse(field.text()?);
            Ok(Input::Workload(Box::new(workload.map_err(|error| field.refuse(error))?)))
        }
        (None, Some(field)) => {
            let folder = parsed.path.parent().unwrap_or_else(|| Path::new(""));
            let path = folder.join(field.text()?);
            let format = table.get("format").map(|format| {
                FormatSpec::parse(format.text()?).map_err(|error| format.refuse(error))
            });
            let device = table.get("device").map(|device| device.name()).transpose()?;
            let options = Options { format: format.transpose()?, device, ..Options::default() };
            Ok(Input::Trace { path, options: Box::new(options) })
        }
    }
}

/// Bytes after scaling, at least 1.
pub(crate) fn scaled(bytes: u64, scale: f64) -> u64 {
    floor_u64(float(bytes) * scale).max(1)
}
