//! No text makes the reader panic, and what it accepts reads back.

use onefold_config::{Config, Sources, reference};
use proptest::prelude::*;

fn check(result: Result<Config, onefold_config::ConfigError>) -> Result<(), TestCaseError> {
    match result {
        Ok(config) => {
            let again = Config::from_canonical(&config.to_toml())
                .map_err(|error| TestCaseError::fail(format!("{error}\n{}", config.to_toml())))?;
            prop_assert_eq!(again.to_toml(), config.to_toml());
        }
        Err(error) => {
            prop_assert!(!error.to_string().is_empty() && !error.help().is_empty());
        }
    }
    Ok(())
}

fn key() -> impl Strategy<Value = String> {
    let keys: Vec<String> = reference::all().into_iter().map(|key| key.key).collect();
    prop::sample::select(keys)
}

/// Values near the border between right and wrong.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,22}(\\.[0-9]{0,4})?(B|KiB|TiB|us|ns|s|MB/s|GB/s|%)?",
        "\\[[0-9us, ]{0,20}\\]",
        "(true|false|all|die|device|fifo|d-choices|none|lh|-1|1e300|-0\\.0|inf)",
        "(lru|pt-lru:p=(0\\.|1/)[0-9]{1,12}|aoi:(chunk=[0-9]{1,3}KiB)?,?(ways=[0-9])?|2q:in=[0-9]/[0-9])",
        "[0-9]{1,3}%?\\.\\.[0-9]{1,3}(%|GiB)?",
        "\\PC{0,12}",
    ]
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    for depth in [50, 100_000] {
        let texts = [
            format!("a = {}1{}", "[".repeat(depth), "]".repeat(depth)),
            format!("a = {}1{}", "{b = ".repeat(depth), "}".repeat(depth)),
            format!("{}a = 1", "a.".repeat(depth)),
            format!("[{}a]", "a.".repeat(depth)),
        ];
        for text in texts {
            assert!(Config::from_canonical(&text).is_err());
        }
    }
}

proptest! {
    #[test]
    fn any_text(text in "\\PC{0,200}") {
        check(Config::from_canonical(&text))?;
    }

    #[test]
    fn toml_like_text(lines in prop::collection::vec(
        "(\\[?\\[?[a-z]{1,9}\\]?\\]?|[a-z_]{1,9} = (\"[^\"]{0,9}\"|[0-9.e+-]{1,9}|\\[.{0,9}\\]|\\{.{0,9}\\}))", 0..8,
    )) {
        check(Config::from_canonical(&lines.join("\n")))?;
    }

    #[test]
    fn any_values_of_real_keys(pairs in prop::collection::vec((key(), value()), 0..5)) {
        let sets: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        check(Config::load(&Sources { sets: &sets, ..Sources::default() }))?;
        let lines: Vec<String> = pairs.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        check(Config::from_canonical(&lines.join("\n")))?;
        let lines: Vec<String> =
            pairs.iter().map(|(key, value)| format!("{key} = \"{value}\"")).collect();
        check(Config::from_canonical(&lines.join("\n")))?;
    }

    #[test]
    fn any_size_of_a_device(size in any::<u64>(), shift in 0_u32..64) {
        let config = Config::load(&Sources::default()).expect("s1 is valid");
        match config.with_logical_size(size >> shift) {
            Ok(sized) => prop_assert_eq!(sized.logical_bytes().ok(), Some(size >> shift)),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
