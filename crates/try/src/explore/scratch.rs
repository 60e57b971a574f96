//! A folder for mounts and small files, which is gone afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use crate::TryError;

/// A new folder among the temporary ones, removed when dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes one.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn new() -> Result<Self, TryError> {
        let temporary = std::env::temp_dir();
        let mut number = 0;
        loop {
            let path = temporary.join(format!("onefold-crash-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(TryError::io("create", &path)(error)),
            }
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A new folder in it.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn folder(&self, name: &str) -> Result<PathBuf, TryError> {
        let path = self.0.join(name);
        fs::create_dir(&path).map_err(TryError::io("create", &path))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nobody is left to be told. A mount that is still busy is detached, so nothing in it is touched.
        let _ = fs::remove_dir_all(&self.0);
    }
}
