//! `--drives`: presets and configuration files by name.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use onefold_config::{Config, ConfigError, PRESETS, Sources};

use super::DrivesError;

/// Drives that tell most: they map 4 KiB, they map 16 KiB, and one with power-loss protection.
const DEFAULT: [&str; 3] = ["tlc", "qlc-16k", "tlc-plp"];

/// A drive of the list.
#[derive(Clone, Debug)]
pub struct Drive {
    /// Preset, or file as it was named.
    pub name: String,
    /// At its own size.
    pub config: Config,
}

/// Why a list of drives is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// A preset or a file is wrong.
    #[error(transparent)]
    Config(Box<ConfigError>),
    /// What is named is no drive that takes any write.
    #[error(
        "--drives: {name} {why}, expected a drive that takes writes anywhere, such as tlc or qlc-16k"
    )]
    Unfit {
        /// The name.
        name: String,
        /// What it is instead.
        why: &'static str,
    },
    /// An entry without a name.
    #[error("--drives: an empty name, expected names with commas between, `all` or `none`")]
    Empty,
    /// Named more than once.
    #[error("--drives: {name} is named twice")]
    Twice {
        /// The name.
        name: String,
    },
}

impl From<ConfigError> for ListError {
    fn from(error: ConfigError) -> Self {
        Self::Config(Box::new(error))
    }
}

impl Drive {
    /// A preset, or a file if the name has a slash or ends with `.toml`.
    fn named(name: &str) -> Result<Self, ListError> {
        let is_file = name.contains('/') || Path::new(name).extension() == Some(OsStr::new("toml"));
        let file = is_file.then(|| PathBuf::from(name));
        let preset = (!is_file).then_some(name);
        let config = Config::load(&Sources { file, preset, ..Sources::default() })?;
        match unfit(&config)? {
            Some(why) => Err(ListError::Unfit { name: name.to_owned(), why }),
            None => Ok(Self { name: name.to_owned(), config }),
        }
    }

    pub(super) fn refused(&self, source: ConfigError) -> DrivesError {
        DrivesError::Config { drive: self.name.clone(), source: Box::new(source) }
    }
}

/// Why a configuration is no drive of a list.
fn unfit(config: &Config) -> Result<Option<&'static str>, ConfigError> {
    Ok(if config.stack(0)?.is_some() {
        Some("is a stack of layers")
    } else if config.is_zoned() {
        Some("has zones")
    } else if config.volume()?.is_some() {
        Some("has a volume of its own")
    } else {
        None
    })
}

/// The drives of a list: names with commas between; `all` presets without zones; `none`. Without a
/// list, three that tell much.
///
/// # Errors
/// See [`ListError`].
pub fn parse(list: Option<&str>) -> Result<Vec<Drive>, ListError> {
    let names: Vec<&str> = match list.map(str::trim) {
        None => DEFAULT.to_vec(),
        Some("none") => Vec::new(),
        Some("all") => return all(),
        Some(list) => list.split(',').map(str::trim).collect(),
    };
    for (at, name) in names.iter().enumerate() {
        if name.is_empty() {
            return Err(ListError::Empty);
        }
        if names[..at].contains(name) {
            return Err(ListError::Twice { name: (*name).to_owned() });
        }
    }
    names.into_iter().map(Drive::named).collect()
}

fn all() -> Result<Vec<Drive>, ListError> {
    let mut drives = Vec::new();
    for preset in PRESETS {
        match Drive::named(preset.name) {
            Ok(drive) => drives.push(drive),
            Err(ListError::Unfit { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(drives)
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn names(list: Option<&str>) -> Vec<String> {
        parse(list).unwrap().into_iter().map(|drive| drive.name).collect()
    }

    #[test]
    fn lists_name_drives() {
        assert_eq!(names(None), ["tlc", "qlc-16k", "tlc-plp"]);
        assert_eq!(names(Some("none")), [""; 0]);
        assert_eq!(names(Some("s1, qlc")), ["s1", "qlc"]);
        let all = names(Some("all"));
        assert!(all.len() >= 14 && all.contains(&"970pro".to_owned()), "{all:?}");
        assert!(!all.contains(&"zn540".to_owned()), "{all:?}");
    }

    #[test]
    fn bad_lists_are_refused() {
        for (list, error) in [
            ("", "an empty name"),
            ("tlc,", "an empty name"),
            ("tlc,tlc", "tlc is named twice"),
            ("zn540", "zn540 has zones"),
            ("tcl", "no preset `tcl`"),
            ("./none.toml", "none.toml"),
        ] {
            let found = parse(Some(list)).unwrap_err().to_string();
            assert!(found.contains(error), "{list}: {found}");
        }
    }
}
