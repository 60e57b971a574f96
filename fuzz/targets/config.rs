//! Configurations: a text is refused with a message and a help, or its canonical form means the
//! same and the device it describes can be computed. The first byte chooses between the stored form
//! and `--set` lines over a preset.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onefold_config::{Config, ConfigError, PRESETS, Sources};
use onefold_fuzz::choice;

fuzz_target!(|data: &[u8]| {
    let Some((kind, rest)) = choice(data) else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let read = if kind == b's' { from_sets(text) } else { Config::from_canonical(text) };
    match read {
        Ok(config) => judge(&config),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let _ = (error.help(), error.code());
        }
    }
});

/// The first line is a preset's name, the others are `--set` arguments.
fn from_sets(text: &str) -> Result<Config, ConfigError> {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let preset = PRESETS.iter().map(|preset| preset.name).find(|name| *name == first);
    let sets: Vec<String> = lines.map(str::to_owned).collect();
    Config::load(&Sources { preset, sets: &sets, ..Sources::default() })
}

fn judge(config: &Config) {
    let canonical = config.to_toml();
    let again = Config::from_canonical(&canonical).expect("the canonical form is a configuration");
    assert_eq!(again.to_toml(), canonical);
    assert_eq!(again.sha256(), config.sha256());
    // Each may refuse, none may panic.
    let _ = (config.geometry(), config.logical_bytes(), config.ssd(0), config.tenants());
    let _ = (config.precondition(), config.run(), config.to_json());
}
