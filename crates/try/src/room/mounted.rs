//! A file system in a file, mounted through a loop device.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::FileSystem;
use super::tool::{MOUNT, UMOUNT};
use crate::TryError;

/// How long a process that was just killed may keep a file system busy.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// A mounted file system. Dropped, it disappears at once for all but those who use it, and its loop device goes with the last of them.
#[derive(Debug)]
pub struct Mounted {
    directory: PathBuf,
    is_mounted: bool,
}

impl Mounted {
    /// Mounts the file system in `image` at `directory` through a loop device, with these options of mount and its own.
    ///
    /// # Errors
    /// `mount` is missing or refuses, such as a file system that cannot be recovered.
    pub fn new(
        image: &Path,
        directory: &Path,
        fs: FileSystem,
        options: &str,
    ) -> Result<Self, TryError> {
        let mut all = format!("loop,{}", fs.mount_options());
        if !options.is_empty() {
            all.extend([",", options]);
        }
        let mut command = MOUNT.command()?;
        MOUNT.run(command.args(["-t", fs.name(), "-o", &all, "--"]).arg(image).arg(directory))?;
        Ok(Self { directory: directory.to_owned(), is_mounted: true })
    }

    /// Where it is.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Unmounts it, when all is written.
    ///
    /// # Errors
    /// A process uses it for longer than a second, or the last writes failed. It is detached then.
    pub fn unmount(mut self) -> Result<(), TryError> {
        let mut tries = 0;
        while let Err(error) = UMOUNT.run(UMOUNT.command()?.arg(&self.directory)) {
            let is_busy =
                matches!(&error, TryError::Tool { output, .. } if output.contains("busy"));
            if !is_busy || tries == TRIES {
                return Err(error);
            }
            tries += 1;
            std::thread::sleep(PAUSE);
        }
        self.is_mounted = false;
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.is_mounted {
            // Nobody is left to be told.
            let lazily = UMOUNT.command();
            let _ = lazily.map(|mut lazily| UMOUNT.run(lazily.arg("--lazy").arg(&self.directory)));
        }
    }
}
