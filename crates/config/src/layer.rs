//! One file, preset or command line: what it says about which keys, before it is applied.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeArray, DeFloat, DeInteger, DeTable, DeValue};

use crate::error::{ConfigError, Origin};
use crate::raw::Raw;

/// What a layer says about one key.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) raw: Raw,
    pub(crate) origin: Origin,
}

/// A layer. Later layers win over earlier ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    pub(crate) extends: Option<Entry>,
    pub(crate) entries: Vec<Entry>,
    /// Tenants, if the layer has any; they replace those of earlier layers.
    pub(crate) tenants: Vec<Vec<Entry>>,
    /// Places of a stack, if the layer has any; they replace those of earlier layers.
    pub(crate) places: Vec<Self>,
    /// Folder that relative paths in this layer start from.
    pub(crate) base: Option<PathBuf>,
}

/// Who wrote a text, for the origins of its entries.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Author<'a> {
    Preset(&'a str),
    File(&'a Path),
    Stored,
}

impl Author<'_> {
    fn at(self, line: usize) -> Origin {
        match self {
            Self::Preset(name) => Origin::Preset { name: name.to_owned(), line },
            Self::File(path) => Origin::File { path: path.to_owned(), line },
            Self::Stored => Origin::Stored { line },
        }
    }
}

/// A text being read.
struct Reader<'a> {
    text: &'a str,
    author: Author<'a>,
}

impl Reader<'_> {
    fn origin<T>(&self, spanned: &Spanned<T>) -> Origin {
        self.author.at(line_of(self.text, spanned.span().start))
    }

    fn entry(&self, path: String, value: &Spanned<DeValue<'_>>) -> Entry {
        Entry { path, raw: raw(value.get_ref()), origin: self.origin(value) }
    }

    /// The `[[tenant]]` tables. `None` if the value is no array of tables.
    fn tenants(&self, items: &DeArray<'_>) -> Option<Vec<Vec<Entry>>> {
        let tenant = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
            DeValue::Table(table) => Some(
                table
                    .iter()
                    .map(|(name, value)| self.entry(name.get_ref().to_string(), value))
                    .collect(),
            ),
            _ => None,
        };
        items.iter().map(tenant).collect()
    }
}

impl Reader<'_> {
    /// The `[[stack]]` tables, each with its sections. `None` if the value is no array of tables.
    fn places(&self, items: &DeArray<'_>) -> Option<Vec<Layer>> {
        let place = |item: &Spanned<DeValue<'_>>| {
            let DeValue::Table(table) = item.get_ref() else { return None };
            let mut layer = Layer::default();
            for (name, value) in table {
                let name = name.get_ref().to_string();
                match value.get_ref() {
                    DeValue::Table(keys) => {
                        let entry = |(key, value): (&Spanned<_>, _)| {
                            self.entry(format!("{name}.{}", key.get_ref()), value)
                        };
                        layer.entries.extend(keys.iter().map(entry));
                    }
                    _ if name == "extends" => layer.extends = Some(self.entry(name, value)),
                    _ => layer.entries.push(self.entry(name, value)),
                }
            }
            Some(layer)
        };
        items.iter().map(place).collect()
    }
}

impl Layer {
    /// Reads a TOML text.
    pub(crate) fn parse(text: &str, author: Author<'_>) -> Result<Self, ConfigError> {
        let reader = Reader { text, author };
        let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
            origin: author.at(line_of(text, error.span().map_or(0, |span| span.start))),
            message: error.message().to_owned(),
        })?;
        let mut layer = Self::default();
        for (name, value) in table.get_ref() {
            let section = name.get_ref().to_string();
            match value.get_ref() {
                DeValue::Table(keys) if !keys.is_empty() => {
                    for (name, value) in keys {
                        layer
                            .entries
                            .push(reader.entry(format!("{section}.{}", name.get_ref()), value));
                    }
                }
                // An empty section says nothing, but its name may still be misspelt.
                DeValue::Table(_) if is_section(&section) => {}
                DeValue::Array(items) if section == "tenant" => match reader.tenants(items) {
                    Some(tenants) => layer.tenants = tenants,
                    None => layer.entries.push(reader.entry(section, value)),
                },
                DeValue::Array(items) if section == "stack" => match reader.places(items) {
                    Some(places) => layer.places = places,
                    None => layer.entries.push(reader.entry(section, value)),
                },
                _ if section == "extends" => layer.extends = Some(reader.entry(section, value)),
                _ => layer.entries.push(reader.entry(section, value)),
            }
        }
        // The parser sorts by name; errors should come in the order of the text.
        layer.entries.sort_by_key(|entry| match &entry.origin {
            Origin::Preset { line, .. } | Origin::File { line, .. } | Origin::Stored { line } => {
                *line
            }
            _ => 0,
        });
        Ok(layer)
    }

    /// Reads the `KEY=VALUE` of each `--set`.
    pub(crate) fn from_sets(sets: &[String]) -> Result<Self, ConfigError> {
        let entry = |text: &String| {
            let (path, value) = text
                .split_once('=')
                .ok_or_else(|| ConfigError::SetSyntax { text: text.clone() })?;
            Ok(Entry { path: path.trim().to_owned(), raw: Raw::bare(value), origin: Origin::Set })
        };
        let entries = sets.iter().map(entry).collect::<Result<_, _>>()?;
        Ok(Self { entries, ..Self::default() })
    }
}

fn is_section(name: &str) -> bool {
    crate::key::KEYS.iter().any(|key| key.split().0 == name)
}

fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).map_or(1, |before| before.matches('\n').count() + 1)
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(number) => integer(number),
        DeValue::Float(number) => float(number),
        DeValue::Boolean(flag) => Raw::Flag(*flag),
        DeValue::Datetime(_) => Raw::Other("a date"),
        // No key accepts a list of lists, so one level is enough.
        DeValue::Array(items) => Raw::List(
            items
                .iter()
                .map(|item| match item.get_ref() {
                    DeValue::Array(_) => Raw::Other("a list"),
                    item => raw(item),
                })
                .collect(),
        ),
        DeValue::Table(_) => Raw::Other("a table"),
    }
}

fn integer(number: &DeInteger<'_>) -> Raw {
    i128::from_str_radix(number.as_str(), number.radix())
        .map_or(Raw::Other("a huge number"), Raw::Integer)
}

fn float(number: &DeFloat<'_>) -> Raw {
    number.as_str().parse().map_or(Raw::Other("a huge number"), Raw::Float)
}
