//! Grids that are put together elsewhere, such as on a command line, as the text of a study file.

use std::fmt::Write;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use super::axis::OWN_AXES;
use crate::in_one_step::in_one_step;
use crate::{SCHEMA, StudyError};

/// First line of what [`GridText`] writes: such a file may be replaced by another of its kind.
const WRITTEN: &str = "# Written by `onefold study grid`; the same command writes it again.";

/// One grid as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GridText {
    /// Title of the report.
    pub name: String,
    /// Axes with their values, in the order of results.
    pub axes: Vec<(String, Vec<String>)>,
    /// Names of axes that go together.
    pub zip: Vec<Vec<String>>,
    /// Numbers to show.
    pub metrics: Vec<String>,
}

impl GridText {
    /// Adds values to an axis.
    pub fn add(&mut self, axis: &str, values: impl IntoIterator<Item = String>) {
        match self.axes.iter_mut().find(|(name, _)| name == axis) {
            Some((_, known)) => known.extend(values),
            None => self.axes.push((axis.to_owned(), values.into_iter().collect())),
        }
    }

    /// Adds `KEY=VALUE,VALUE`. A comma before `KEY=VALUE` belongs to the value: `buffer.policy=lru,aoi:chunk=4KiB,reaccess=off`
    /// are two.
    ///
    /// # Errors
    /// There is no `=`.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let (key, values) = text
            .split_once('=')
            .ok_or_else(|| format!("found {text:?}, expected KEY=VALUE,VALUE"))?;
        let mut found: Vec<String> = Vec::new();
        let mut depth = 0_usize;
        for part in values.split(',') {
            let inside = depth > 0 || (part.contains('=') && !part.contains(':'));
            match found.last_mut().filter(|_| inside) {
                Some(last) => {
                    last.push(',');
                    last.push_str(part);
                }
                None => found.push(part.to_owned()),
            }
            depth = (depth + part.matches('[').count()).saturating_sub(part.matches(']').count());
        }
        self.add(key.trim(), found.into_iter().map(|value| value.trim().to_owned()));
        Ok(())
    }

    /// The study file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let list = |values: &[String]| {
            let quoted: Vec<String> = values.iter().map(|value| quote(value)).collect();
            format!("[{}]", quoted.join(", "))
        };
        // Writing to a string cannot fail.
        let mut text =
            format!("{WRITTEN}\nschema = {}\nname = {}\n", quote(SCHEMA), quote(&self.name));
        if !self.metrics.is_empty() {
            let _ = writeln!(text, "metrics = {}", list(&self.metrics));
        }
        text += "\n[grid]\n";
        for (name, values) in &self.axes {
            let name = if OWN_AXES.contains(&name.as_str()) { name.clone() } else { quote(name) };
            let _ = writeln!(text, "{name} = {}", list(values));
        }
        if !self.zip.is_empty() {
            let groups: Vec<String> = self.zip.iter().map(|names| list(names)).collect();
            let _ = writeln!(text, "zip = [{}]", groups.join(", "));
        }
        text
    }
}

/// Writes the study of a grid beside its results, so that they can be reported again.
///
/// # Errors
/// It cannot be written, or somebody else's file has its name.
pub fn keep_grid(path: &Path, text: &str) -> Result<(), StudyError> {
    match fs::read_to_string(path) {
        Ok(old) if old == text => return Ok(()),
        Ok(old) if !old.starts_with(WRITTEN) => {
            return Err(StudyError::Foreign { path: path.to_owned() });
        }
        _ => {}
    }
    let failed = |source| StudyError::Results { path: path.to_owned(), action: "write", source };
    fs::create_dir_all(path.parent().unwrap_or_else(|| Path::new(""))).map_err(failed)?;
    in_one_step(path, |file| file.write_all(text.as_bytes()))
}

/// A TOML basic string.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => _ = write!(quoted, "\\u{:04X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::GridText;

    #[test]
    fn commas_part_values_and_not_their_parameters() {
        let mut grid = GridText::default();
        grid.set("buffer.policy=lru,aoi:chunk=4KiB,reaccess=off,2l").unwrap();
        grid.set("timing.read=[50us,60us],40us").unwrap();
        grid.set("buffer.policy=arc").unwrap();
        assert!(grid.set("buffer.policy").is_err());
        let expected = |values: &[&str]| values.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>();
        assert_eq!(grid.axes[0].1, expected(&["lru", "aoi:chunk=4KiB,reaccess=off", "2l", "arc"]));
        assert_eq!(grid.axes[1].1, expected(&["[50us,60us]", "40us"]));
    }
}
