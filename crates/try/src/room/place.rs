//! A folder of a run for mounts and sockets, and what is left of runs that were killed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::mount::{UnmountFlags, unmount};

use super::processes;
use crate::TryError;

const PREFIX: &str = "onefold-try.";
/// Held as long as the process lives.
const LOCK: &str = "lock";
/// Where a program says what it promised, and by which its processes are known.
const MARKS: &str = "marks";

/// A folder that is gone with its run.
#[derive(Debug)]
pub struct Place {
    folder: PathBuf,
    /// Unlocked by the kernel when the process ends, however that is.
    _lock: File,
}

impl Place {
    /// Makes one in the folder for temporary files.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> Result<Self, TryError> {
        let all = std::env::temp_dir();
        let own = rustix::process::getpid();
        let mut number = 0;
        loop {
            let folder = all.join(format!("{PREFIX}{own}.{number}"));
            // A program that gives up root still gets through to its disk.
            match fs::DirBuilder::new().mode(0o711).create(&folder) {
                Ok(()) => return Self::lock(folder),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(TryError::io("create", &folder)(error)),
            }
        }
    }

    fn lock(folder: PathBuf) -> Result<Self, TryError> {
        let path = folder.join(LOCK);
        let lock = File::create_new(&path).map_err(TryError::io("create", &path))?;
        let locked = flock(&lock, FlockOperation::NonBlockingLockExclusive);
        locked.map_err(|error| TryError::io("lock", &path)(error.into()))?;
        Ok(Self { folder, _lock: lock })
    }

    /// A path in it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A new folder in it.
    ///
    /// # Errors
    /// It is there, or cannot be made.
    pub fn folder(&self, name: &str) -> Result<PathBuf, TryError> {
        let path = self.path(name);
        fs::create_dir(&path).map_err(TryError::io("create", &path))?;
        Ok(path)
    }

    /// The socket for marks.
    #[must_use]
    pub fn marks(&self) -> PathBuf {
        self.path(MARKS)
    }

    /// Ends the processes that a program left, which have `ONEFOLD_TRY` in their environment: with `grace` they are asked first. Gives how
    /// many there were. Children of this process that ended are waited for.
    #[must_use]
    pub fn end_processes(&self, grace: bool) -> usize {
        processes::end(super::MARKS_VARIABLE, &self.marks(), grace)
    }

    /// Removes what runs left that were killed. Gives their folders.
    #[must_use]
    pub fn clean_up() -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return Vec::new() };
        let is_place = |path: &PathBuf| {
            let name = path.file_name().and_then(OsStr::to_str);
            name.is_some_and(|name| name.starts_with(PREFIX)) && is_dead(path)
        };
        let dead: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(is_place).collect();
        for folder in &dead {
            processes::end(super::MARKS_VARIABLE, &folder.join(MARKS), false);
            remove(folder);
        }
        dead
    }
}

/// Whether whoever made the folder is gone. Folders of others cannot be looked into, and are none of ours.
fn is_dead(folder: &Path) -> bool {
    let Ok(lock) = File::open(folder.join(LOCK)) else { return false };
    flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Removes a folder with all that is mounted there.
fn remove(folder: &Path) {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(Path::new);
    // What was mounted last has to go first.
    for point in points.filter(|point| point.starts_with(folder)).collect::<Vec<_>>().iter().rev() {
        let _ = unmount(*point, UnmountFlags::DETACH);
    }
    if let Err(error) = fs::remove_dir_all(folder) {
        tracing::warn!(folder = %folder.display(), %error, "cannot remove what is left of a run");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}
