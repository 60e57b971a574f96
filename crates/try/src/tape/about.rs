//! What a tape says of itself: `tape.json`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::TryError;

const SCHEMA: &str = "onefold.tape/1";
/// Variables that change what programs do, and hold no secrets.
const ENVIRONMENT: [&str; 7] = ["HOME", "LANG", "LC_ALL", "PATH", "SHELL", "TZ", "USER"];

/// What ran, on what, and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Form of this file.
    pub schema: String,
    /// Version of Onefold that kept the tape.
    pub version: String,
    /// When it began, in seconds since 1970.
    pub began_unix_s: f64,
    /// How long it was kept, in seconds; `None` if nobody ended it.
    pub seconds: Option<f64>,
    /// Bytes of the disk.
    pub bytes: u64,
    /// What was served, if it was no disk of `onefold try`.
    pub served: Option<String>,
    /// Seed of everything random.
    pub seed: u64,
    /// The file system on the disk, if Onefold made it.
    pub file_system: Option<FileSystemOf>,
    /// The program, if Onefold ran one.
    pub program: Option<ProgramRun>,
}

/// The file system of a tape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystemOf {
    /// Such as `ext4`.
    pub name: String,
    /// Options of mkfs.
    pub mkfs: Vec<String>,
    /// Options of mount.
    pub mount: Option<String>,
}

/// One run of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramRun {
    /// The command line.
    pub command: Vec<String>,
    /// Variables that change what programs do.
    pub environment: BTreeMap<String, String>,
    /// The last entry of the log when it began.
    pub began_entry: u64,
    /// The last entry when it had ended; `None` if it did not.
    pub ended_entry: Option<u64>,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// How long it ran, in seconds.
    pub seconds: Option<f64>,
    /// Bytes that it and its children made dirty, as the system counted them.
    pub dirtied_bytes: Option<u64>,
}

impl ProgramRun {
    /// A program that begins now.
    #[must_use]
    pub fn new(command: Vec<String>) -> Self {
        let variable = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
        let environment = ENVIRONMENT.into_iter().filter_map(variable).collect();
        Self { command, environment, ..Self::default() }
    }
}

impl About {
    /// A tape that begins now.
    #[must_use]
    pub fn new(bytes: u64, seed: u64) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            began_unix_s: since_1970().as_secs_f64(),
            seconds: None,
            bytes,
            served: None,
            seed,
            file_system: None,
            program: None,
        }
    }

    /// The tape ends now.
    pub fn end(&mut self) {
        self.seconds = Some((since_1970().as_secs_f64() - self.began_unix_s).max(0.0));
    }

    /// Writes it. A reader sees the old or the new one.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn write(&self, path: &Path) -> Result<(), TryError> {
        let failed = TryError::io("write", path);
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        let new = path.with_extension("json.new");
        fs::write(&new, text + "\n").map_err(&failed)?;
        fs::rename(&new, path).map_err(&failed)
    }

    pub(super) fn read(path: &Path) -> Result<Self, TryError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(source) => {
                let folder = path.parent().unwrap_or(path).to_owned();
                return Err(TryError::NoTape { folder, source });
            }
        };
        let damaged = |problem: String| TryError::About { path: path.to_owned(), problem };
        let about: Self =
            serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if about.schema != SCHEMA {
            return Err(damaged(format!("its schema is `{}`, expected `{SCHEMA}`", about.schema)));
        }
        Ok(about)
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
