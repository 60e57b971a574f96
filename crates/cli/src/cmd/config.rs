//! `onefold config`, and the options by which every command names a configuration.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use onefold_config::reference::{self, KeyReference};
use onefold_config::{ConfigError, PRESETS, Sources};
use onefold_sim::with_room;
use serde_json::json;

use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// Where a configuration comes from.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Read the configuration from a TOML file
    #[arg(short = 'c', long = "config", value_name = "FILE", conflicts_with = "preset")]
    pub(crate) config: Option<PathBuf>,
    /// Use a preset (`onefold config presets` lists them) [default: s1]
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<String>,
    /// Override one key, such as ftl.victim=fifo (may be given often)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
}

impl ConfigArgs {
    /// Reads and checks the configuration.
    pub(crate) fn load(&self) -> Result<onefold_config::Config, CliError> {
        Ok(onefold_config::Config::load(&self.sources())?)
    }

    /// The same with a capacity of exactly so many bytes, if it is given: `geometry.blocks` is chosen. Where the spare blocks of a
    /// small device are fewer than collection keeps free, it gets more of them: that is what the same share of a large one has.
    pub(crate) fn load_of_size(
        &self,
        size: Option<u64>,
        global: &Global,
    ) -> Result<onefold_config::Config, CliError> {
        let Some(bytes) = size else { return self.load() };
        let config = self.load_to_resize()?.with_logical_size(bytes)?;
        let (config, more) = with_room(config, global.seed)?;
        if more > 0 {
            global.say(format_args!(
                "geometry.blocks is {}, {more} more than the share of spare blocks: collection needs the room",
                config.geometry()?.spec().blocks
            ));
        }
        Ok(config)
    }

    /// The configuration before it gets another size. A capacity in bytes says nothing then but which share of the flash it is, and
    /// that share is the one of the geometry without the changes of `--set`, which may have less flash than the capacity.
    fn load_to_resize(&self) -> Result<onefold_config::Config, CliError> {
        let error = match onefold_config::Config::load(&self.sources()) {
            Err(error @ ConfigError::Capacity { .. }) => error,
            other => return Ok(other?),
        };
        let mut plain = self.with([]);
        plain.sets.retain(|set| !set.trim_start().starts_with("geometry."));
        let Ok(plain) = onefold_config::Config::load(&plain.sources()) else {
            return Err(error.into());
        };
        self.with([format!("capacity.logical={:?}", plain.logical_share()?)]).load()
    }

    fn sources(&self) -> Sources<'_> {
        Sources {
            file: self.config.clone(),
            preset: self.preset.as_deref(),
            sets: &self.sets,
            ..Sources::default()
        }
    }

    /// The same with further changes.
    fn with<const N: usize>(&self, more: [String; N]) -> Self {
        let sets = self.sets.iter().cloned().chain(more).collect();
        Self { config: self.config.clone(), preset: self.preset.clone(), sets }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        let exit = if error.is_usage() { Exit::Usage } else { Exit::Infeasible };
        Self::new(exit, error.code(), &error).help(error.help())
    }
}

/// Subcommands of `onefold config`.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Explain keys: type, default, limits and meaning
    Explain {
        /// Keys or sections, such as ftl.victim or ftl [default: all]
        #[arg(value_name = "KEY")]
        keys: Vec<String>,
        /// Print the whole reference as Markdown
        #[arg(long, conflicts_with = "keys")]
        markdown: bool,
    },
    /// Print a JSON Schema of configuration files
    Schema,
    /// List the presets
    Presets,
    /// Print a configuration with every key resolved, as TOML or JSON
    Show(ConfigArgs),
}

impl Config {
    /// Runs the command.
    pub(crate) fn run(self, global: &Global) -> Result<ExitCode, CliError> {
        let text = match self {
            Self::Explain { markdown: true, .. } => reference::markdown(),
            Self::Explain { keys, .. } => explain(&reference::select(&keys)?, global.format()),
            Self::Schema => pretty(&reference::json_schema()),
            Self::Presets => presets(global.format()),
            Self::Show(config) => show(&config.load()?, global.format()),
        };
        global.emit(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn explain(keys: &[KeyReference], format: Format) -> String {
    if format == Format::Json {
        let keys: Vec<_> = keys.iter().map(KeyReference::to_json).collect();
        return pretty(&json!({"schema": "onefold.config.explain/1", "keys": keys}));
    }
    let mut text = String::new();
    for key in keys {
        let default = if key.default.is_empty() { "none" } else { &key.default };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}  ({}, default {default})", key.key, key.kind);
        if key.limits != "-" {
            let _ = writeln!(text, "    accepts {}", key.limits);
        }
        let _ = writeln!(text, "    {}", key.meaning);
    }
    text
}

fn presets(format: Format) -> String {
    if format == Format::Json {
        let presets: Vec<_> = PRESETS
            .iter()
            .map(|preset| json!({"name": preset.name, "summary": preset.summary()}))
            .collect();
        return pretty(&json!({"schema": "onefold.config.presets/1", "presets": presets}));
    }
    let width = PRESETS.iter().map(|preset| preset.name.len()).max().unwrap_or(0);
    PRESETS.iter().fold(String::new(), |mut text, preset| {
        let _ = writeln!(text, "{:width$}  {}", preset.name, preset.summary());
        text
    })
}

fn show(config: &onefold_config::Config, format: Format) -> String {
    match format {
        Format::Table => config.to_toml(),
        Format::Json => pretty(&json!({
            "schema": "onefold.config/1",
            "config": config.to_json(),
            "config_sha256": config.sha256(),
        })),
    }
}

/// Indented JSON with a final line break.
fn pretty(json: &serde_json::Value) -> String {
    format!("{json:#}\n")
}

#[cfg(test)]
mod tests {
    use super::{explain, presets, reference, show};
    use crate::output::Format;

    #[test]
    fn a_key_is_explained_with_default_and_limits() {
        let keys = reference::select(&["ftl.d".to_owned()]).unwrap();
        let expected = "ftl.d  (integer, default 10)\n    accepts 1 to 1024\n    Candidates drawn by \
                        victim = \"d-choices\".\n";
        assert_eq!(explain(&keys, Format::Table), expected);
        let json: serde_json::Value = serde_json::from_str(&explain(&keys, Format::Json)).unwrap();
        assert_eq!(json["schema"], "onefold.config.explain/1");
        assert_eq!(json["keys"][0]["default"], "10");
    }

    #[test]
    fn lists_and_configurations_are_json_on_request() {
        let list: serde_json::Value = serde_json::from_str(&presets(Format::Json)).unwrap();
        assert_eq!(list["presets"][0]["name"], "s1");
        let config = onefold_config::Config::load(&onefold_config::Sources::default()).unwrap();
        let shown: serde_json::Value = serde_json::from_str(&show(&config, Format::Json)).unwrap();
        assert_eq!(shown["config"]["ftl"]["victim"], "greedy");
        assert_eq!(shown["config_sha256"], config.sha256());
        assert_eq!(show(&config, Format::Table), config.to_toml());
    }
}
