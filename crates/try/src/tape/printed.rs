//! What a program printed, and what the disk had been asked by then.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use crate::TryError;

/// A line that was printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The last entry of the log when it was read: the program had printed it before.
    pub entry: u64,
    /// What was printed.
    pub text: String,
}

/// The file of a tape that keeps them.
#[derive(Debug)]
pub struct Printed {
    file: File,
}

impl Printed {
    /// Begins one.
    ///
    /// # Errors
    /// The file is there already, or cannot be made.
    pub fn create(path: &Path) -> Result<Self, TryError> {
        let file = File::create_new(path).map_err(TryError::io("create", path))?;
        Ok(Self { file })
    }

    /// Keeps a line, with or without its end.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn keep(&mut self, entry: u64, line: &[u8]) -> io::Result<()> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut bytes = format!("{entry}\t").into_bytes();
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
        self.file.write_all(&bytes)
    }
}

/// The lines of a file; none if it is not there. A last line that is not whole is not one.
///
/// # Errors
/// The file cannot be read, or is none of a tape.
pub fn lines(path: &Path) -> Result<Vec<Line>, TryError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(TryError::io("read", path)(source)),
    };
    let (mut reader, mut lines, mut bytes) = (BufReader::new(file), Vec::new(), Vec::new());
    loop {
        bytes.clear();
        let read = reader.read_until(b'\n', &mut bytes);
        read.map_err(TryError::io("read", path))?;
        let Some(line) = bytes.strip_suffix(b"\n") else { return Ok(lines) };
        let text = String::from_utf8_lossy(line);
        let parts = text.split_once('\t');
        let line = parts.and_then(|(entry, text)| {
            Some(Line { entry: entry.parse().ok()?, text: text.to_owned() })
        });
        lines.push(
            line.ok_or_else(|| TryError::Printed { path: path.to_owned(), line: lines.len() + 1 })?,
        );
    }
}
