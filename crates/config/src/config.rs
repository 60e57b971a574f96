//! A resolved configuration and its typed views.

use std::collections::BTreeMap;
use std::path::PathBuf;

use onefold_nand::CellTimes;
use onefold_units::{Nanos, convert};

use crate::error::{ConfigError, Origin, TenantProblem};
use crate::key::{self, EXCLUSIVE, KEYS, SPELLINGS};
use crate::layer::{Author, Entry, Layer};
use crate::load::{self, Sources};
use crate::place::PlaceValues;
use crate::policies::Policies;
use crate::run::{Align, Fit, Mode, Precondition, RemapFull, Run, Until};
use crate::tenant::{self, Load, Tenant, TenantValues};
use crate::value::Value;

/// A value and who set it.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// A configuration in which every key has a value, and whose values fit together.
///
/// Two configurations are equal if their canonical forms are, wherever their values came from.
#[derive(Clone, Debug)]
pub struct Config {
    settings: BTreeMap<&'static str, Setting>,
    pub(crate) tenants: Vec<TenantValues>,
    pub(crate) places: Vec<PlaceValues>,
    trace_base: Option<PathBuf>,
    /// What names of policies mean.
    policies: Policies,
}

impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        self.to_toml() == other.to_toml()
    }
}

impl Config {
    /// Reads and checks a configuration. Without file and preset it is `s1`.
    ///
    /// # Errors
    /// Names the place, the key, what was found, and the limit.
    pub fn load(sources: &Sources<'_>) -> Result<Self, ConfigError> {
        let (name, layers) = load::layers(sources)?;
        let mut config = Self::defaults(&sources.policies);
        for layer in &layers {
            config.apply(layer)?;
        }
        config.finish(&name)
    }

    /// Reads the canonical form of [`Config::to_toml`]. Keys it does not have get their defaults,
    /// so that forms of older versions stay readable.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn from_canonical(text: &str) -> Result<Self, ConfigError> {
        let layer = Layer::parse(text, Author::Stored)?;
        if let Some(extends) = layer.extends {
            return Err(ConfigError::UnknownKey {
                origin: extends.origin,
                key: extends.path,
                suggestion: None,
            });
        }
        let mut config = Self::defaults(&Policies::builtin());
        config.apply(&layer)?;
        config.finish("stored")
    }

    /// The configuration of a device that exists, with `KEY=VALUE` of each `--set`: only of the sections and keys that are named,
    /// such as [`SERVED`](crate::SERVED).
    ///
    /// # Errors
    /// As [`Config::load`]; another key is refused.
    pub fn with_sets(
        &self,
        sets: &[String],
        changeable: &'static [&'static str],
    ) -> Result<Self, ConfigError> {
        let layer = Layer::from_sets(sets)?;
        for entry in &layer.entries {
            let section = entry.path.split_once('.').map_or("", |(section, _)| section);
            let known = key::resolve(&entry.path).is_some();
            if known && !changeable.contains(&section) && !changeable.contains(&&*entry.path) {
                return Err(ConfigError::Fixed { key: entry.path.clone(), changeable });
            }
        }
        let mut config = self.clone();
        config.apply(&layer)?;
        config.finish("stored")
    }

    /// Keys of a file that do nothing where only these sections and keys act, such as
    /// [`OF_A_DRIVE`](crate::OF_A_DRIVE): a file may be meant for simulations as well.
    ///
    /// # Errors
    /// `--set` gives one of them.
    pub fn acting_elsewhere(&self, acting: &[&str]) -> Result<Vec<&'static str>, ConfigError> {
        let mut elsewhere = Vec::new();
        for (path, Setting { origin, .. }) in &self.settings {
            let section = path.split_once('.').map_or("", |(section, _)| section);
            if acting.contains(&section) || acting.contains(path) {
                continue;
            }
            match origin {
                Origin::Set => {
                    let (origin, key) = (origin.clone(), (*path).to_owned());
                    return Err(ConfigError::ActsElsewhere { origin, key });
                }
                Origin::File { .. } => elsewhere.push(*path),
                _ => {}
            }
        }
        Ok(elsewhere)
    }

    /// Keys whose values come from such a place.
    pub(crate) fn given(
        &self,
        is_asked: impl Fn(&Origin) -> bool,
    ) -> impl Iterator<Item = &'static str> {
        self.settings.iter().filter(move |(_, one)| is_asked(&one.origin)).map(|(path, _)| *path)
    }

    pub(crate) const fn policies(&self) -> &Policies {
        &self.policies
    }

    pub(crate) fn defaults(policies: &Policies) -> Self {
        let settings = KEYS
            .iter()
            .map(|key| (key.path, Setting { value: key.default_value(), origin: Origin::Default }))
            .collect();
        let policies = policies.clone();
        Self { settings, tenants: Vec::new(), places: Vec::new(), trace_base: None, policies }
    }

    fn finish(mut self, name: &str) -> Result<Self, ConfigError> {
        if self.name().is_empty() {
            self.put("name", Value::Text(name.to_owned()), Origin::Default);
        }
        if self.stack(0)?.is_some() {
            self.tenants()?;
            return Ok(self);
        }
        if self.zns(0)?.is_none() {
            self.ssd(0)?;
            self.volume()?;
        }
        self.zoned_volume()?;
        if self.word("zoned.policy") == "log" {
            if !self.is_zoned() {
                return Err(ConfigError::ZonedVolume { what: "namespace.type = \"zoned\"" });
            }
            self.volume()?;
        }
        self.tenants()?;
        Ok(self)
    }

    pub(crate) fn apply(&mut self, layer: &Layer) -> Result<(), ConfigError> {
        let mut given = BTreeMap::new();
        if !layer.places.is_empty() {
            let parse = |place| PlaceValues::parse(place, layer.base.as_deref());
            self.places = layer.places.iter().map(parse).collect::<Result<_, _>>()?;
        }
        for entry in &layer.entries {
            if self.apply_to_place(entry)? {
                continue;
            }
            let known = key::resolve(&entry.path);
            let (key, path) = known.ok_or_else(|| ConfigError::UnknownKey {
                origin: entry.origin.clone(),
                key: entry.path.clone(),
                suggestion: key::suggested(&entry.path),
            })?;
            let value = key.kind.parse(&entry.raw, &self.policies).map_err(|problem| {
                ConfigError::Value {
                    origin: entry.origin.clone(),
                    key: key.path.to_owned(),
                    found: entry.raw.to_string(),
                    problem: Box::new(problem),
                }
            })?;
            given.insert(path, Setting { value, origin: entry.origin.clone() });
        }
        said_twice(layer)?;
        self.displace(&given)?;
        self.lower_gc_stop(&given);
        if given.contains_key("trace") {
            self.trace_base.clone_from(&layer.base);
        }
        self.settings.append(&mut given);
        if !layer.tenants.is_empty() {
            let base = layer.base.as_deref();
            let parse = |(at, entries): (usize, &Vec<_>)| TenantValues::parse(entries, at, base);
            self.tenants = layer.tenants.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    /// Gives a key to a place of the stack, if it is one of a place: `stack.NAME.SECTION.KEY`.
    fn apply_to_place(&mut self, entry: &Entry) -> Result<bool, ConfigError> {
        let rest = entry.path.strip_prefix("stack.");
        let Some((name, path)) = rest.and_then(|rest| rest.split_once('.')) else {
            return Ok(false);
        };
        let Some(place) = self.places.iter_mut().find(|place| place.name == name) else {
            return Ok(false);
        };
        let entry = Entry { path: path.to_owned(), ..entry.clone() };
        *place = place.clone().with(Layer { entries: vec![entry], ..Layer::default() })?;
        Ok(true)
    }

    /// Clears the values that new ones displace.
    fn displace(&mut self, given: &BTreeMap<&'static str, Setting>) -> Result<(), ConfigError> {
        let set = |path| given.get(path).filter(|setting: &&Setting| !is_unset(&setting.value));
        for (first, second) in EXCLUSIVE {
            if let (Some(_), Some(setting)) = (set(first), set(second)) {
                return Err(ConfigError::Exclusive {
                    origin: setting.origin.clone(),
                    first: first.to_owned(),
                    second: second.to_owned(),
                });
            }
            for (new, old) in [(first, second), (second, first)] {
                // `channel = "0"` is a choice too: it says that transfers take no time.
                let chosen = if new == "timing.channel" { given.get(new) } else { set(new) };
                if let Some(setting) = chosen {
                    let unset = match &self.setting(old).value {
                        Value::Text(_) => Value::Text(String::new()),
                        Value::Quantity(measure, _) => Value::Quantity(*measure, 0),
                        other => other.clone(),
                    };
                    self.put(old, unset, setting.origin.clone());
                }
            }
        }
        Ok(())
    }

    /// Lowers the inherited foreground threshold of GC along with the background one, so that one
    /// key suffices to start GC later. A layer that gives both is taken at its word.
    fn lower_gc_stop(&mut self, given: &BTreeMap<&'static str, Setting>) {
        let Some(Setting { value: Value::Real(start), origin }) = given.get("ftl.gc_start") else {
            return;
        };
        if self.real("ftl.gc_stop") > *start {
            self.put("ftl.gc_stop", Value::Real(*start), origin.clone());
        }
    }

    pub(crate) fn put(&mut self, path: &'static str, value: Value, origin: Origin) {
        self.settings.insert(path, Setting { value, origin });
    }

    pub(crate) fn setting(&self, path: &str) -> &Setting {
        // Programmer error: callers name keys of the table, and `defaults` puts in all of them.
        self.settings.get(path).unwrap_or_else(|| panic!("`{path}` is a key of the table"))
    }

    pub(crate) fn count(&self, path: &str) -> u64 {
        match &self.setting(path).value {
            Value::Count(count) => *count,
            other => panic!("{path} is a count, not {other:?}"),
        }
    }

    /// A count whose limit in the table fits 32 bits.
    pub(crate) fn narrow(&self, path: &str) -> u32 {
        convert::narrow(self.count(path))
    }

    pub(crate) fn real(&self, path: &str) -> f64 {
        match &self.setting(path).value {
            Value::Real(number) => *number,
            other => panic!("{path} is a number, not {other:?}"),
        }
    }

    pub(crate) fn quantity(&self, path: &str) -> u64 {
        match &self.setting(path).value {
            Value::Quantity(_, value) => *value,
            other => panic!("{path} is a quantity, not {other:?}"),
        }
    }

    pub(crate) fn time(&self, path: &str) -> Nanos {
        Nanos::new(self.quantity(path))
    }

    pub(crate) fn cells(&self, path: &str) -> CellTimes {
        let Value::Times(times) = &self.setting(path).value else {
            panic!("{path} is a list of times");
        };
        let times: Vec<_> = times.iter().copied().map(Nanos::new).collect();
        CellTimes::new(&times).expect("the table lets one to four times in")
    }

    pub(crate) fn flag(&self, path: &str) -> bool {
        matches!(self.setting(path).value, Value::Flag(true))
    }

    fn until(&self, path: &str) -> Until {
        match self.word(path) {
            "steady" => Until::Steady,
            _ => Until::Count,
        }
    }

    pub(crate) fn word(&self, path: &str) -> &'static str {
        match &self.setting(path).value {
            Value::Word(word) => word,
            other => panic!("{path} is a word, not {other:?}"),
        }
    }

    pub(crate) fn text(&self, path: &str) -> &str {
        match &self.setting(path).value {
            Value::Text(text) => text,
            other => panic!("{path} is a text, not {other:?}"),
        }
    }

    /// Name of the configuration in results.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text("name")
    }

    /// The workload or trace of the file, if it names one.
    #[must_use]
    pub fn load_of_run(&self) -> Option<Load> {
        tenant::load(self.text("workload"), self.text("trace"), self.trace_base.as_deref())
    }

    /// The same configuration with the workload or trace of the command line. Control characters of
    /// a path are left out, as they are from every text of the canonical form.
    #[must_use]
    pub fn with_load(mut self, load: &Load) -> Self {
        let (workload, trace) = match load {
            Load::Workload(text) => (text.clone(), String::new()),
            Load::Trace(path) => (String::new(), path.display().to_string()),
        };
        self.put("workload", Value::Text(load::printable(&workload)), Origin::Set);
        self.put("trace", Value::Text(load::printable(&trace)), Origin::Set);
        self.trace_base = None;
        self
    }

    /// The tenants, checked against the device.
    ///
    /// # Errors
    /// Names the tenant that has nothing to do, leaves the device, or has another's name.
    pub fn tenants(&self) -> Result<Vec<Tenant>, ConfigError> {
        let logical = self.host_bytes()?;
        let streams = self.count("ftl.streams");
        let mut tenants: Vec<Tenant> = Vec::with_capacity(self.tenants.len());
        for values in &self.tenants {
            let tenant = values.check(logical, streams)?;
            if tenants.iter().any(|other| other.name == tenant.name) {
                let problem = TenantProblem::Duplicate;
                return Err(ConfigError::Tenant { name: tenant.name, problem });
            }
            tenants.push(tenant);
        }
        Ok(tenants)
    }

    /// Preconditioning.
    #[must_use]
    pub fn precondition(&self) -> Precondition {
        Precondition {
            fill: self.real("precondition.fill"),
            overwrite: self.real("precondition.overwrite"),
            range: self.real("precondition.range"),
            remap_log: self.real("precondition.remap_log"),
            until: self.until("precondition.until"),
        }
    }

    /// Specification of the contents of writes of which only the address is known.
    #[must_use]
    pub fn content(&self) -> &str {
        self.text("dedup.content")
    }

    /// How the run goes.
    #[must_use]
    pub fn run(&self) -> Run {
        Run {
            warmup: self.count("run.warmup"),
            window: self.count("run.window"),
            timed: self.word("run.latency") == "model",
            mode: match self.word("run.mode") {
                "closed" => Mode::Closed,
                "bounded" => Mode::Bounded,
                "open" => Mode::Open,
                "recorded" => Mode::Recorded,
                _ => Mode::Dependencies,
            },
            repeat: self.narrow("run.repeat"),
            until: self.until("run.until"),
            speedup: self.real("run.speedup"),
            qd: self.narrow("run.qd"),
            align: match self.word("run.align") {
                "round" => Align::Round,
                "drop" => Align::Drop,
                _ => Align::Rmw,
            },
            fit: match self.word("run.fit") {
                "compact" => Fit::Compact,
                "wrap" => Fit::Wrap,
                _ => Fit::Error,
            },
            remap_full: match self.word("run.remap_full") {
                "refuse" => RemapFull::Refuse,
                "write" => RemapFull::Write,
                _ => RemapFull::Copy,
            },
        }
    }
}

/// Refuses a key that a layer says in two ways.
fn said_twice(layer: &Layer) -> Result<(), ConfigError> {
    let given = |path: &str| layer.entries.iter().find(|entry| entry.path == path);
    for spelling in SPELLINGS {
        if let (Some(_), Some(entry)) = (given(spelling.of), given(spelling.key.path)) {
            return Err(ConfigError::Exclusive {
                origin: entry.origin.clone(),
                first: spelling.of.to_owned(),
                second: spelling.key.path.to_owned(),
            });
        }
    }
    Ok(())
}

/// Whether a value of an exclusive key says "not this one".
fn is_unset(value: &Value) -> bool {
    match value {
        Value::Text(text) => text.is_empty(),
        Value::Quantity(_, value) => *value == 0,
        _ => false,
    }
}
