//! Files that results replace: an older result of the same command may go, what anybody else made may not.
//!
//! A result names itself: one in JSON by its schema, a report by the generator in its head. Whatever else is not empty may be somebody's
//! only copy, also a text or a trace, so it goes only if the user says so.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use onefold_device::looks_like;
use onefold_sim::report::GENERATOR;
use serde::Deserialize;

use crate::error::{CliError, Exit, written};
use crate::interrupt::Interrupt;

/// Bytes that tell what a file holds.
const HEAD: u64 = 68 << 10;

/// Largest result that is looked at. A result is some hundred KiB.
const RESULT_MAX: u64 = 256 << 20;

/// What a result says that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// JSON of this schema.
    Json(String),
    /// A report for people with a browser.
    Report,
}

#[derive(Deserialize)]
struct Named {
    schema: String,
}

impl Made {
    /// What a text is, if it says so.
    pub(crate) fn of(text: &[u8]) -> Option<Self> {
        let report = || {
            let head = &text[..text.len().min(GENERATOR.len() + 1024)];
            let says = head.windows(GENERATOR.len()).any(|part| part == GENERATOR.as_bytes());
            says.then_some(Self::Report)
        };
        match looks_like(text)? {
            "JSON text" => Self::json(text),
            "an HTML page" => report(),
            _ => None,
        }
    }

    fn json(text: impl Read) -> Option<Self> {
        let named: Named = serde_json::from_reader(text).ok()?;
        named.schema.starts_with("onefold.").then_some(Self::Json(named.schema))
    }

    /// What a file is, of which `head` is the beginning.
    fn of_file(path: &Path, head: &[u8]) -> Option<Self> {
        if looks_like(head) == Some("JSON text") {
            return Self::json(BufReader::new(File::open(path).ok()?.take(RESULT_MAX)));
        }
        Self::of(head)
    }
}

/// Where a result goes, looked at and found to be free for it.
pub(crate) enum Replaced {
    /// A file, new or one that goes: itself, where links led to it.
    File(PathBuf),
    /// A terminal, a pipe or `/dev/null`, which holds nothing.
    Stream(PathBuf),
}

impl Replaced {
    /// Looks at what is at `path`. `may_go` judges what says that it is a result.
    pub(crate) fn of(
        path: &Path,
        force: bool,
        may_go: impl FnOnce(&Made) -> bool,
    ) -> Result<Self, CliError> {
        let shown = path.display();
        let refused = |what: &dyn std::fmt::Display, help: &'static str| {
            let text = format!("-o names {shown}, which is {what}; nothing was changed");
            CliError::new(Exit::Usage, "output::foreign", text).help(help)
        };
        let other = "name another file";
        let kind = match fs::metadata(path) {
            Ok(found) => found.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self::File(path.to_owned()));
            }
            Err(error) => return Err(refused(&error, other)),
        };
        if kind.is_char_device() || kind.is_fifo() {
            return Ok(Self::Stream(path.to_owned()));
        }
        if !kind.is_file() {
            return Err(refused(&"no regular file", other));
        }
        let mut head = Vec::new();
        let read = fs::canonicalize(path).and_then(|path| {
            File::open(&path)?.take(HEAD).read_to_end(&mut head)?;
            Ok(path)
        });
        let path = read.map_err(|error| refused(&error, other))?;
        if head.is_empty() || force || Made::of_file(&path, &head).is_some_and(|made| may_go(&made))
        {
            return Ok(Self::File(path));
        }
        let what = looks_like(&head).unwrap_or("data");
        let what = format_args!("{what} and no older result of this command");
        Err(refused(&what, "name another file, or lose what this one holds with --force"))
    }

    /// Writes a text there, to a file in one step, so that a reader never sees half of it.
    pub(crate) fn write(self, text: &str, interrupt: &Interrupt) -> Result<(), CliError> {
        let (path, done) = match self {
            Self::Stream(path) => {
                let opened = File::options().write(true).open(&path);
                let done = opened.and_then(|mut file| file.write_all(text.as_bytes()));
                (path, done)
            }
            Self::File(path) => {
                let part = part_of(&path);
                let _unfinished = interrupt.unfinished(&part);
                let done = fs::write(&part, text).and_then(|()| fs::rename(&part, &path));
                (path, done)
            }
        };
        written(done, &path.display().to_string())
    }
}

/// Where a file is written until it is whole.
pub(crate) fn part_of(path: &Path) -> PathBuf {
    let mut part = path.to_path_buf().into_os_string();
    part.push(".part");
    part.into()
}
