//! Finding the layers of a configuration: a preset, a file and what they extend, `--set`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::ConfigError;
use crate::layer::{Author, Entry, Layer};
use crate::policies::Policies;
use crate::preset;
use crate::problem::Problem;
use crate::raw::Raw;

/// Where a configuration comes from.
#[derive(Clone, Debug, Default)]
pub struct Sources<'a> {
    /// A TOML file (`-c FILE`).
    pub file: Option<PathBuf>,
    /// A preset (`--preset NAME`); excludes a file.
    pub preset: Option<&'a str>,
    /// `KEY=VALUE` of each `--set`, the last one wins.
    pub sets: &'a [String],
    /// What names of policies mean.
    pub policies: Policies,
}

/// Levels of `extends`.
const MAX_DEPTH: usize = 16;

/// The layers of `sources` from the bottom to the top, and the name they give.
pub(crate) fn layers(sources: &Sources<'_>) -> Result<(String, Vec<Layer>), ConfigError> {
    let mut chain = Chain::default();
    let name = match (&sources.file, sources.preset) {
        (Some(file), Some(preset)) => {
            return Err(ConfigError::FileAndPreset {
                file: file.clone(),
                preset: preset.to_owned(),
            });
        }
        (Some(file), None) => {
            chain.file(file)?;
            file.file_stem().map_or_else(String::new, |stem| printable(&stem.to_string_lossy()))
        }
        (None, Some(preset)) => {
            chain.preset(preset)?;
            preset.to_owned()
        }
        (None, None) => "s1".to_owned(),
    };
    let mut layers = chain.layers;
    layers.reverse();
    layers.push(Layer::from_sets(sources.sets)?);
    Ok((name, layers))
}

/// Layers from the top to the bottom, and who was visited.
#[derive(Default)]
pub(crate) struct Chain {
    pub(crate) layers: Vec<Layer>,
    visited: Vec<String>,
}

impl Chain {
    fn file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let read = |source| ConfigError::Read { path: path.to_owned(), source };
        // One file can have many names; the circle shows only in the real one.
        let resolved = fs::canonicalize(path).map_err(read)?;
        self.visit(resolved.display().to_string())?;
        let text = fs::read_to_string(path).map_err(read)?;
        let mut layer = Layer::parse(&text, Author::File(path))?;
        layer.base = path.parent().map(Path::to_owned);
        self.push(layer)
    }

    fn preset(&mut self, name: &str) -> Result<(), ConfigError> {
        let preset = preset::find(name)?;
        self.visit(format!("preset:{name}"))?;
        self.push(Layer::parse(preset.text, Author::Preset(name))?)
    }

    fn visit(&mut self, id: String) -> Result<(), ConfigError> {
        if let Some(at) = self.visited.iter().position(|seen| *seen == id) {
            let mut chain = self.visited.split_off(at);
            chain.push(id);
            return Err(ConfigError::Cycle { chain });
        }
        self.visited.push(id);
        if self.visited.len() > MAX_DEPTH {
            return Err(ConfigError::Depth { depth: self.visited.len(), max: MAX_DEPTH });
        }
        Ok(())
    }

    /// Adds a layer and goes on with what it extends.
    pub(crate) fn push(&mut self, mut layer: Layer) -> Result<(), ConfigError> {
        let extends = layer.extends.take();
        let base = layer.base.clone();
        self.layers.push(layer);
        let Some(extends) = extends else { return Ok(()) };
        match parent(&extends)? {
            Parent::Preset(name) => self.preset(&name),
            Parent::File(file) => {
                self.file(&base.map_or_else(|| PathBuf::from(&file), |base| base.join(&file)))
            }
        }
    }
}

enum Parent {
    Preset(String),
    File(String),
}

fn parent(extends: &Entry) -> Result<Parent, ConfigError> {
    match &extends.raw {
        Raw::Text(text) if !text.is_empty() => Ok(text
            .strip_prefix("preset:")
            .map_or_else(|| Parent::File(text.clone()), |name| Parent::Preset(name.to_owned()))),
        other => Err(ConfigError::Value {
            origin: extends.origin.clone(),
            key: "extends".to_owned(),
            found: other.to_string(),
            problem: Box::new(Problem::Expected {
                what: "\"preset:NAME\" or a file name".to_owned(),
            }),
        }),
    }
}

/// A name that can stand in any output.
pub(crate) fn printable(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).collect()
}
