//! Files that results replace: an older result of the same kind may go, what somebody else made may not.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use onefold_device::looks_like;

use crate::error::{CliError, Exit};
use crate::output::{Global, written};

/// Bytes that tell what a file holds.
const HEAD: u64 = 68 << 10;

/// Where a result goes, looked at and found to be free for it.
pub(crate) enum Replaced {
    /// A file, new or one that goes: itself, where links led to it.
    File(PathBuf),
    /// A terminal, a pipe or `/dev/null`, which holds nothing.
    Stream(PathBuf),
}

impl Replaced {
    /// Looks at what is at `path`. `kinds` are what [`looks_like`] says of results that may be replaced.
    pub(crate) fn of(path: &Path, kinds: &[&str]) -> Result<Self, CliError> {
        let shown = path.display();
        let refused = |what: &dyn std::fmt::Display| {
            let text = format!("-o names {shown}, which is {what}; nothing was changed");
            CliError::new(Exit::Usage, "output::foreign", text)
                .help("name another file, or remove this one first")
        };
        let kind = match fs::metadata(path) {
            Ok(found) => found.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self::File(path.to_owned()));
            }
            Err(error) => return Err(refused(&error)),
        };
        if kind.is_char_device() || kind.is_fifo() {
            return Ok(Self::Stream(path.to_owned()));
        }
        if !kind.is_file() {
            return Err(refused(&"no regular file"));
        }
        let mut head = Vec::new();
        let read = fs::canonicalize(path).and_then(|path| {
            File::open(&path)?.take(HEAD).read_to_end(&mut head)?;
            Ok(path)
        });
        let path = read.map_err(|error| refused(&error))?;
        match looks_like(&head) {
            _ if head.is_empty() => Ok(Self::File(path)),
            Some(what) if kinds.contains(&what) => Ok(Self::File(path)),
            Some(what) => Err(refused(&format_args!("{what} and no older result of this kind"))),
            None => Err(refused(&"data and no older result of this kind")),
        }
    }

    /// Writes a text there, to a file in one step, so that a reader never sees half of it.
    pub(crate) fn write(self, text: &str, global: &Global) -> Result<(), CliError> {
        let (path, done) = match self {
            Self::Stream(path) => {
                let opened = File::options().write(true).open(&path);
                let done = opened.and_then(|mut file| file.write_all(text.as_bytes()));
                (path, done)
            }
            Self::File(path) => {
                let part = part_of(&path);
                let _unfinished = global.interrupt.unfinished(&part);
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
