//! Keeping a tape of a device.

use std::fs;
use std::path::{Path, PathBuf};

use onefold_device::observed::{Observed, Recorded, Recorder};
use onefold_device::{BlockDevice, Keeps, WriteLog};

use super::{ABOUT, About, BASE, REQUESTS, Tape, WRITES, base};
use crate::TryError;

/// A tape that is being kept.
#[derive(Debug)]
pub struct Kept {
    folder: PathBuf,
    /// What will be said of it.
    pub about: About,
}

/// Begins a tape in a new folder. Gives the device as it has to be served for that.
///
/// # Errors
/// The folder is there already, or the device cannot be copied into it.
pub fn keep<D: BlockDevice>(
    folder: &Path,
    device: D,
    recorded: &Recorded,
    about: About,
) -> Result<(Kept, Observed<D>), TryError> {
    if let Err(source) = fs::create_dir(folder) {
        return Err(match source.kind() {
            std::io::ErrorKind::AlreadyExists => TryError::TapeExists { folder: folder.to_owned() },
            _ => TryError::io("create", folder)(source),
        });
    }
    let kept = Kept { folder: folder.to_owned(), about };
    match begin(&kept, &device, recorded) {
        Ok((requests, log)) => Ok((kept, Observed::with_log(device, requests, log))),
        Err(error) => {
            kept.discard();
            Err(error)
        }
    }
}

/// Makes the files of a tape.
fn begin<D: BlockDevice>(
    kept: &Kept,
    device: &D,
    recorded: &Recorded,
) -> Result<(Recorder, WriteLog), TryError> {
    base::copy(device, &kept.file(BASE))?;
    let requests = onefold_serve::record(&kept.file(REQUESTS), recorded)?;
    let log = WriteLog::create(&kept.file(WRITES), Keeps::Completed)?;
    kept.write()?;
    Ok((requests, log))
}

impl Kept {
    /// A file of the tape.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes what is known by now.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn write(&self) -> Result<(), TryError> {
        self.about.write(&self.file(ABOUT))
    }

    /// Nothing was kept: the folder goes.
    pub fn discard(self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            let folder = self.folder.display();
            tracing::warn!(%folder, %error, "cannot remove a tape of nothing");
        }
    }

    /// The server has ended: so does the tape.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn end(mut self) -> Result<Tape, TryError> {
        self.about.end();
        self.write()?;
        Ok(Tape { folder: self.folder, about: self.about })
    }
}
