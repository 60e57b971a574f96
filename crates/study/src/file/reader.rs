//! Tables of a study file: every key is known, every error says where.

use std::path::Path;

use onefold_config::{Origin, nearest};
use onefold_units::numbers;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::StudyError;

/// The text being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(path: &'a Path, text: &'a str) -> Self {
        Self { path, text }
    }

    pub(crate) fn parse(&self) -> Result<Spanned<DeTable<'a>>, StudyError> {
        DeTable::parse(self.text).map_err(|error| StudyError::Syntax {
            origin: self.origin(error.span().map_or(0, |span| span.start)),
            message: error.message().to_owned(),
        })
    }

    fn origin(&self, offset: usize) -> Origin {
        let before = self.text.get(..offset).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        Origin::File { path: self.path.to_path_buf(), line }
    }
}

/// Name and keys of a kind of table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    pub(crate) section: &'static str,
    pub(crate) known: &'static [&'static str],
}

/// One table whose keys are all known.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    reader: Reader<'a>,
    keys: Keys,
    entries: &'a DeTable<'a>,
    start: usize,
}

impl<'a> Table<'a> {
    pub(crate) fn new(
        reader: Reader<'a>,
        keys: Keys,
        entries: &'a DeTable<'a>,
        start: usize,
    ) -> Result<Self, StudyError> {
        // The parser sorts by name; errors come in the order of the text.
        let unknown = entries.keys().filter(|name| !keys.known.contains(&name.get_ref().as_ref()));
        if let Some(name) = unknown.min_by_key(|name| name.span().start) {
            let key = name.get_ref().to_string();
            return Err(StudyError::UnknownKey {
                origin: reader.origin(name.span().start),
                suggestion: nearest(&key, keys.known.iter().copied()),
                key,
                section: keys.section,
                known: keys.known,
            });
        }
        Ok(Self { reader, keys, entries, start })
    }

    /// The value of a key, if it is given.
    pub(crate) fn get(&self, key: &'static str) -> Option<Field<'a>> {
        let value = self.entries.get(key)?;
        Some(Field { reader: self.reader, key, value })
    }

    /// The value of a key that must be there.
    pub(crate) fn need(
        &self,
        key: &'static str,
        expected: &'static str,
    ) -> Result<Field<'a>, StudyError> {
        self.get(key).ok_or_else(|| self.missing(key, expected))
    }

    pub(crate) fn missing(&self, key: &'static str, expected: &'static str) -> StudyError {
        let origin = self.reader.origin(self.start);
        StudyError::Missing { origin, section: self.keys.section, key, expected }
    }

    /// The value of a key read by `read`, or `default`.
    pub(crate) fn or<T>(
        &self,
        key: &'static str,
        default: T,
        read: impl FnOnce(&Field<'a>) -> Result<T, StudyError>,
    ) -> Result<T, StudyError> {
        self.get(key).map_or(Ok(default), |field| read(&field))
    }

    /// The tables of `[[key]]`.
    pub(crate) fn tables(&self, key: &'static str, keys: Keys) -> Result<Vec<Self>, StudyError> {
        let tables = self.tables_with_places(key, keys)?;
        Ok(tables.into_iter().map(|(table, _)| table).collect())
    }

    /// The tables of `[[key]]`, each with the value that a refusal of the whole table names.
    pub(crate) fn tables_with_places(
        &self,
        key: &'static str,
        keys: Keys,
    ) -> Result<Vec<(Self, Field<'a>)>, StudyError> {
        let Some(field) = self.get(key) else { return Ok(Vec::new()) };
        field.items()?.into_iter().map(|item| Ok((item.table(keys)?, item))).collect()
    }
}

/// One value with its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    reader: Reader<'a>,
    key: &'a str,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Field<'a> {
    /// A refusal of this value.
    pub(crate) fn refuse(&self, problem: impl std::fmt::Display) -> StudyError {
        StudyError::Value {
            origin: self.reader.origin(self.value.span().start),
            key: self.key.to_owned(),
            found: describe(self.value.get_ref()),
            problem: problem.to_string(),
        }
    }

    /// A refusal of one point of the study that this value makes.
    pub(crate) fn refuse_point(&self, point: String, problem: String) -> StudyError {
        let origin = self.reader.origin(self.value.span().start);
        StudyError::Point { origin, point, problem }
    }

    pub(crate) fn text(&self) -> Result<&'a str, StudyError> {
        match self.value.get_ref() {
            DeValue::String(text) if text.chars().all(|c| !c.is_control()) => Ok(text),
            _ => Err(self.refuse("expected a text in quotes without control characters")),
        }
    }

    /// A text of at least one character.
    pub(crate) fn name(&self) -> Result<String, StudyError> {
        let text = self.text()?.trim();
        if text.is_empty() {
            return Err(self.refuse("expected at least one character"));
        }
        Ok(text.to_owned())
    }

    pub(crate) fn flag(&self) -> Result<bool, StudyError> {
        match self.value.get_ref() {
            DeValue::Boolean(flag) => Ok(*flag),
            _ => Err(self.refuse("expected true or false")),
        }
    }

    /// A size in bytes, within limits.
    pub(crate) fn size(&self, least: u64, most: u64) -> Result<u64, StudyError> {
        let bytes = match self.value.get_ref() {
            DeValue::Integer(zero) if zero.as_str() == "0" => 0,
            DeValue::String(text) => {
                onefold_config::size(text).map_err(|problem| self.refuse(problem))?
            }
            _ => return Err(self.refuse("expected a size with a unit, such as \"4KiB\"")),
        };
        if (least..=most).contains(&bytes) {
            return Ok(bytes);
        }
        let [least, most] = [least, most].map(onefold_config::size_text);
        Err(self.refuse(format_args!("expected {least} to {most}")))
    }

    /// A time in nanoseconds.
    pub(crate) fn time(&self) -> Result<u64, StudyError> {
        match self.value.get_ref() {
            DeValue::String(text) => {
                onefold_config::time(text).map_err(|problem| self.refuse(problem))
            }
            _ => Err(self.refuse("expected a time with a unit, such as \"100ns\"")),
        }
    }

    pub(crate) fn number(&self) -> Result<f64, StudyError> {
        let number = match self.value.get_ref() {
            DeValue::Integer(number) => number.as_str().parse().ok(),
            DeValue::Float(number) => number.as_str().parse().ok(),
            DeValue::String(text) => numbers::real(text),
            _ => None,
        };
        number
            .filter(|number: &f64| number.is_finite())
            .ok_or_else(|| self.refuse("expected a number"))
    }

    pub(crate) fn count(&self) -> Result<u64, StudyError> {
        match self.value.get_ref() {
            DeValue::Integer(number) => number.as_str().parse().ok(),
            DeValue::Float(number) => numbers::count(number.as_str()).ok(),
            DeValue::String(text) => numbers::count(text).ok(),
            _ => None,
        }
        .ok_or_else(|| self.refuse("expected a whole number from 0 to 2^64 - 1"))
    }

    /// One of the words of a list of choices.
    pub(crate) fn choice<T: Copy>(
        &self,
        all: &[T],
        name: impl Fn(T) -> &'static str,
    ) -> Result<T, StudyError> {
        let text = self.text()?;
        all.iter().copied().find(|choice| name(*choice) == text).ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|choice| name(*choice)).collect();
            let near = nearest(text, names.iter().copied());
            let hint = near.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
            self.refuse(format_args!("expected one of {}{hint}", names.join(", ")))
        })
    }

    /// One of the names that a study has.
    pub(crate) fn one_of(&self, all: &[&str]) -> Result<String, StudyError> {
        let name = self.name()?;
        if all.contains(&name.as_str()) {
            return Ok(name);
        }
        Err(self.refuse(format_args!("expected one of {}", all.join(", "))))
    }

    /// A list of names that a study has.
    pub(crate) fn names_of(&self, all: &[&str]) -> Result<Vec<String>, StudyError> {
        self.items()?.iter().map(|item| item.one_of(all)).collect()
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> Result<Vec<Self>, StudyError> {
        let DeValue::Array(items) = self.value.get_ref() else {
            return Err(self.refuse("expected a list in brackets"));
        };
        let items: &DeArray<'a> = items;
        Ok(items.iter().map(|value| Self { value, ..*self }).collect())
    }

    /// The table that this value is.
    pub(crate) fn table(&self, keys: Keys) -> Result<Table<'a>, StudyError> {
        match self.value.get_ref() {
            DeValue::Table(table) => Table::new(self.reader, keys, table, self.value.span().start),
            _ => Err(self.refuse(format_args!("expected {}", keys.section))),
        }
    }

    /// The entries of the table that this value is, in the order of the file. `a.b = 1` is the entry `a.b`, with quotes or without.
    pub(crate) fn entries(&self) -> Result<Vec<(String, Self)>, StudyError> {
        let DeValue::Table(table) = self.value.get_ref() else {
            return Err(self.refuse("expected a table"));
        };
        let mut entries = Vec::new();
        for (name, value) in table {
            let key = name.get_ref().as_ref();
            let field = Self { key, value, ..*self };
            if field.is_table() {
                let inner = field.entries()?.into_iter();
                entries.extend(inner.map(|(path, field)| (format!("{key}.{path}"), field)));
            } else {
                entries.push((key.to_owned(), field));
            }
        }
        entries.sort_by_key(|(_, field)| field.value.span().start);
        Ok(entries)
    }

    /// A number, truth value, text or list as `--set` takes it.
    pub(crate) fn plain(&self) -> Result<String, StudyError> {
        match self.value.get_ref() {
            DeValue::String(_) => self.name(),
            DeValue::Integer(number) => Ok(number.as_str().to_owned()),
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Ok(flag.to_string()),
            DeValue::Array(_) => {
                let items = self.items()?.iter().map(Self::plain).collect::<Result<Vec<_>, _>>()?;
                Ok(format!("[{}]", items.join(",")))
            }
            _ => Err(self.refuse("expected a number, a text, true or false")),
        }
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Array(_))
    }

    pub(crate) fn is_table(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Table(_))
    }
}

fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => {
            let short: String = text.chars().take(80).collect();
            format!("\"{}\"", short.escape_debug())
        }
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(items) => format!("a list of {}", items.len()),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
