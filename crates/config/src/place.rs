//! A place of a stack as configured.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{ConfigError, Origin};
use crate::key::{self, STACK_KEYS};
use crate::layer::{Entry, Layer};
use crate::load::Chain;
use crate::policies::Policies;
use crate::raw::Raw;
use crate::value::Value;

/// Sections of the configuration that a stack as a whole has.
pub(crate) const GLOBAL: &[&str] = &["", "run", "precondition"];

/// A place as configured.
#[derive(Clone, Debug)]
pub(crate) struct PlaceValues {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) on: Vec<String>,
    /// What it says of its keys, the lowest first.
    pub(crate) layers: Vec<Layer>,
}

impl PlaceValues {
    /// Reads a table of `[[stack]]`.
    pub(crate) fn parse(layer: &Layer, base: Option<&Path>) -> Result<Self, ConfigError> {
        let mut own = Layer { base: base.map(Path::to_owned), ..layer.clone() };
        let mut values: BTreeMap<_, _> =
            STACK_KEYS.iter().map(|key| (key.path, key.default_value())).collect();
        let mut on = Vec::new();
        let mut failed = Ok(());
        own.entries.retain(|entry| {
            let Some(key) = key::find(STACK_KEYS, &entry.path) else { return true };
            match Self::read(key, entry) {
                Ok(Value::Text(text)) if key.path == "on" => {
                    on = text.split(", ").map(str::to_owned).collect();
                }
                Ok(value) => _ = values.insert(key.path, value),
                Err(error) => failed = Err(error),
            }
            false
        });
        failed?;
        let (Some(Value::Text(name)), Some(Value::Word(kind))) =
            (values.remove("name"), values.remove("kind"))
        else {
            unreachable!("the stack key table gives these keys these kinds")
        };
        if name.is_empty() || name.contains(['.', ',']) {
            let origin = layer.entries.first().map_or(Origin::Default, |one| one.origin.clone());
            let what = "needs a name, without `.` and `,`".to_owned();
            return Err(ConfigError::StackPlace { name: origin.to_string(), what });
        }
        let place = Self { name, kind, on, layers: Vec::new() };
        place.with(own)
    }

    fn read(key: &key::Key, entry: &Entry) -> Result<Value, ConfigError> {
        let raw = match &entry.raw {
            Raw::List(names) if key.path == "on" => {
                let names: Option<Vec<_>> = names.iter().map(Raw::text).collect();
                names.map_or_else(|| entry.raw.clone(), |names| Raw::Text(names.join(", ")))
            }
            raw => raw.clone(),
        };
        key.kind.parse(&raw, &Policies::builtin()).map_err(|problem| ConfigError::Value {
            origin: entry.origin.clone(),
            key: format!("stack.{}", key.path),
            found: entry.raw.to_string(),
            problem: Box::new(problem),
        })
    }

    /// The place with more of its keys given.
    pub(crate) fn with(mut self, own: Layer) -> Result<Self, ConfigError> {
        for entry in &own.entries {
            if key::resolve(&entry.path).is_some() && !self.knows(&entry.path) {
                let what = format!(
                    "{} has nothing to say about {} ({})",
                    self.kind, entry.path, entry.origin
                );
                return Err(self.error(what));
            }
        }
        if own.extends.is_some() && !self.is_device() {
            let what = format!("only a device extends something, and this is {}", self.kind);
            return Err(self.error(what));
        }
        let mut chain = Chain::default();
        chain.push(own)?;
        if chain.layers.iter().any(|layer| !layer.places.is_empty()) {
            return Err(self.error("extends a file that has [[stack]] itself".to_owned()));
        }
        chain.layers.reverse();
        self.layers.append(&mut chain.layers);
        Ok(self)
    }

    pub(crate) fn is_device(&self) -> bool {
        matches!(self.kind, "ssd" | "zns")
    }

    /// Whether a key means something to a place of that kind.
    pub(crate) fn knows(&self, path: &str) -> bool {
        let section = path.split_once('.').map_or("", |(section, _)| section);
        match self.kind {
            "ssd" | "zns" => {
                !GLOBAL.contains(&section)
                    && !matches!(section, "volume" | "zoned")
                    && path != "namespace.type"
            }
            "dmz" => section == "zoned" && !matches!(path, "zoned.policy" | "zoned.regular"),
            _ => section == "volume" && !matches!(path, "volume.mode" | "volume.offset"),
        }
    }

    pub(crate) fn error(&self, what: String) -> ConfigError {
        ConfigError::StackPlace { name: self.name.clone(), what }
    }

    /// Name, kind and what it lies on, in canonical order.
    pub(crate) fn head(&self) -> [(&'static str, Value); 3] {
        [
            ("name", Value::Text(self.name.clone())),
            ("kind", Value::Word(self.kind)),
            ("on", Value::Text(self.on.join(", "))),
        ]
    }
}
