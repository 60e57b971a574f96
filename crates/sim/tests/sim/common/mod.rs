//! Setups as the command line makes them.

use onefold_config::{Config, Load, Sources};
use onefold_sim::Setup;
use onefold_sim::result::Program;
use onefold_tracefile::Options;

/// A preset with `--set`s and a load, seed 42.
pub(crate) fn setup(preset: &str, sets: &[String], load: &Load) -> Setup {
    let config = Config::load(&Sources { preset: Some(preset), sets, ..Sources::default() })
        .unwrap_or_else(|error| panic!("{preset} with {sets:?}: {error}"));
    Setup {
        config: config.with_load(load),
        trace_options: Options::default(),
        seed: 42,
        program: Program::default(),
    }
}

/// `--set`s from their texts.
pub(crate) fn sets(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// A generated load.
pub(crate) fn workload(text: &str) -> Load {
    Load::Workload(text.to_owned())
}
