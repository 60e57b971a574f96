//! Tenants: several loads on one device.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use onefold_units::Nanos;

use crate::error::{ConfigError, TenantProblem};
use crate::extent::Extent;
use crate::key::{self, TENANT_KEYS};
use crate::layer::Entry;
use crate::policies::Policies;
use crate::quantity::Measure;
use crate::suggest;
use crate::value::Value;

/// What a run or a tenant executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// A generator, by its text.
    Workload(String),
    /// A trace file. Relative paths of a configuration file were joined to its folder.
    Trace(PathBuf),
}

/// One tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// Name in results.
    pub name: String,
    /// What it executes.
    pub load: Load,
    /// Its part of the logical space.
    pub range: Extent,
    /// When it starts, in virtual time.
    pub start: Nanos,
    /// Factor on the pace of its trace.
    pub speed: f64,
    /// Share of the turns.
    pub weight: u32,
    /// Write stream.
    pub stream: u32,
}

/// A tenant as configured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TenantValues {
    values: BTreeMap<&'static str, Value>,
    base: Option<PathBuf>,
}

impl TenantValues {
    /// Reads the `at`-th tenant of a layer.
    pub(crate) fn parse(
        entries: &[Entry],
        at: usize,
        base: Option<&Path>,
    ) -> Result<Self, ConfigError> {
        let mut values: BTreeMap<_, _> =
            TENANT_KEYS.iter().map(|key| (key.path, key.default_value())).collect();
        values.insert("name", Value::Text(format!("tenant{at}")));
        for entry in entries {
            let key = key::find(TENANT_KEYS, &entry.path).ok_or_else(|| {
                let names = TENANT_KEYS.iter().map(|key| key.path);
                ConfigError::UnknownKey {
                    origin: entry.origin.clone(),
                    key: format!("tenant.{}", entry.path),
                    suggestion: suggest::nearest(&entry.path, names),
                }
            })?;
            let value = key.kind.parse(&entry.raw, &Policies::builtin()).map_err(|problem| {
                ConfigError::Value {
                    origin: entry.origin.clone(),
                    key: format!("tenant.{}", key.path),
                    found: entry.raw.to_string(),
                    problem: Box::new(problem),
                }
            })?;
            values.insert(key.path, value);
        }
        let tenant = Self { values, base: base.map(Path::to_owned) };
        if !tenant.text("workload").is_empty() && !tenant.text("trace").is_empty() {
            let origin = entries.iter().rev().find(|entry| entry.path != "name");
            return Err(ConfigError::Exclusive {
                origin: origin.map_or(crate::Origin::Default, |entry| entry.origin.clone()),
                first: "tenant.workload".to_owned(),
                second: "tenant.trace".to_owned(),
            });
        }
        Ok(tenant)
    }

    fn text(&self, name: &'static str) -> &str {
        match self.values.get(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    fn count(&self, name: &'static str) -> u32 {
        match self.values.get(name) {
            Some(Value::Count(count)) => u32::try_from(*count).unwrap_or(u32::MAX),
            _ => 0,
        }
    }

    /// The values in canonical order, leaving out a load that is not given.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        TENANT_KEYS
            .iter()
            .filter_map(|key| self.values.get(key.path).map(|value| (key.path, value)))
            .filter(|(_, value)| !matches!(value, Value::Text(text) if text.is_empty()))
    }

    /// Judges the tenant against a device.
    pub(crate) fn check(&self, logical_bytes: u64, streams: u64) -> Result<Tenant, ConfigError> {
        let fail = |problem| ConfigError::Tenant { name: self.text("name").to_owned(), problem };
        let load = load(self.text("workload"), self.text("trace"), self.base.as_deref())
            .ok_or_else(|| fail(TenantProblem::NoLoad))?;
        let stream = self.count("stream");
        if u64::from(stream) >= streams {
            return Err(fail(TenantProblem::Stream { stream: stream.into(), streams }));
        }
        let (Some(Value::Extent(range)), Some(Value::Quantity(_, start)), Some(Value::Real(speed))) =
            (self.values.get("range"), self.values.get("start"), self.values.get("speed"))
        else {
            unreachable!("the tenant key table gives these keys these kinds")
        };
        if range.resolve(logical_bytes).is_none() {
            return Err(fail(TenantProblem::Range {
                range: range.to_string(),
                logical: Measure::Size.format(logical_bytes),
            }));
        }
        Ok(Tenant {
            name: self.text("name").to_owned(),
            load,
            range: *range,
            start: Nanos::new(*start),
            speed: *speed,
            weight: self.count("weight"),
            stream,
        })
    }
}

/// The load that two texts name, if any.
pub(crate) fn load(workload: &str, trace: &str, base: Option<&Path>) -> Option<Load> {
    if !workload.is_empty() {
        return Some(Load::Workload(workload.to_owned()));
    }
    let joined = || base.map_or_else(|| PathBuf::from(trace), |base| base.join(trace));
    (!trace.is_empty()).then(|| Load::Trace(joined()))
}
