//! Files that are there as a whole or not at all.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::StudyError;

/// Writes a file beside its place and moves it there.
pub(crate) fn in_one_step(
    path: &Path,
    content: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), StudyError> {
    let mut part = path.to_path_buf().into_os_string();
    part.push(".part");
    let written = File::create(&part)
        .and_then(|mut file| content(&mut file))
        .and_then(|()| fs::rename(&part, path));
    written.map_err(|source| StudyError::Results {
        path: path.to_path_buf(),
        action: "write",
        source,
    })
}
