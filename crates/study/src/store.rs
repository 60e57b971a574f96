//! The folder of results.
//!
//! `results.jsonl` has one row per line, in the order in which they were finished. Lines are only
//! appended, and durable before the next workload starts. A line without its end is what a power cut
//! or a kill left: it does not count, and the next run removes it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use onefold_units::convert::u64_from;

use crate::{Row, StudyError};

const ROWS: &str = "results.jsonl";

/// Results of a study, by the digest of their points.
#[derive(Debug)]
pub struct Results {
    folder: PathBuf,
    rows: BTreeMap<String, Row>,
    /// To append to, while a run has the folder for itself.
    file: Option<File>,
}

impl Results {
    /// Reads what is in a folder; nothing if there is no such folder.
    pub fn read(folder: &Path) -> Result<Self, StudyError> {
        let path = folder.join(ROWS);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(StudyError::Results { path, action: "read", source }),
        };
        let (rows, _) = parse(&path, &text)?;
        Ok(Self { folder: folder.to_path_buf(), rows, file: None })
    }

    /// Takes a folder for itself, making it if need be, and reads what is in it.
    pub(crate) fn open(folder: &Path) -> Result<Self, StudyError> {
        let path = folder.join(ROWS);
        let failed =
            |action| move |source| StudyError::Results { path: folder.join(ROWS), action, source };
        fs::create_dir_all(folder).map_err(failed("write"))?;
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(failed("write"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StudyError::Busy { path: folder.to_path_buf() });
            }
            Err(TryLockError::Error(source)) => return Err(failed("write")(source)),
        }
        let text = fs::read(&path).map_err(failed("read"))?;
        let (rows, whole) = parse(&path, &text)?;
        let trimmed = file.set_len(whole).and_then(|()| file.seek(io::SeekFrom::End(0)));
        trimmed.map_err(failed("write"))?;
        Ok(Self { folder: folder.to_path_buf(), rows, file: Some(file) })
    }

    /// Nothing yet, and in no folder.
    pub(crate) fn in_memory() -> Self {
        Self { folder: PathBuf::new(), rows: BTreeMap::new(), file: None }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The row of a point.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Row> {
        self.rows.get(key)
    }

    /// All rows, also of other versions of the study.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }

    /// Appends rows; they are durable when this returns.
    pub(crate) fn append(&mut self, rows: Vec<Row>) -> Result<(), StudyError> {
        let mut lines = String::new();
        for row in &rows {
            // Rows are made of numbers and texts, which always have a JSON form.
            lines.push_str(&serde_json::to_string(row).unwrap_or_default());
            lines.push('\n');
        }
        if let Some(file) = &mut self.file {
            file.write_all(lines.as_bytes()).and_then(|()| file.sync_data()).map_err(|source| {
                StudyError::Results { path: self.folder.join(ROWS), action: "write", source }
            })?;
        }
        self.rows.extend(rows.into_iter().map(|row| (row.key.clone(), row)));
        Ok(())
    }
}

/// The rows of a text, and the bytes up to the end of its last whole line.
fn parse(path: &Path, text: &[u8]) -> Result<(BTreeMap<String, Row>, u64), StudyError> {
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    // What a killed run left of its last row goes; what cannot be the beginning of one belongs to somebody else.
    if text.get(whole).is_some_and(|byte| *byte != b'{') {
        return Err(StudyError::Damaged {
            path: path.to_path_buf(),
            line: text[..whole].split(|byte| *byte == b'\n').count(),
            message: "expected a row, which begins with {".to_owned(),
        });
    }
    let mut rows = BTreeMap::new();
    for (line, number) in text[..whole].split(|byte| *byte == b'\n').zip(1..) {
        if line.is_empty() {
            continue;
        }
        let row: Row = serde_json::from_slice(line).map_err(|error| StudyError::Damaged {
            path: path.to_path_buf(),
            line: number,
            message: error.to_string(),
        })?;
        rows.insert(row.key.clone(), row);
    }
    Ok((rows, u64_from(whole)))
}
