//! `--checkpoint`: the state of a run in a file.

use std::cell::RefCell;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufReader, BufWriter, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use onefold_sim::{Store, WriteState};

use crate::error::{CliError, Exit};
use crate::interrupt::Interrupt;
use crate::replace::part_of;

/// Bytes that are read and written at once.
const BUFFER: usize = 1 << 20;

/// A file that is replaced in one step, and locked against other runs.
pub(super) struct StateFile<'a> {
    path: PathBuf,
    interrupt: &'a Interrupt,
    /// The state that is stored, locked. The lock is of the file, not of its name, so each state brings its own.
    held: RefCell<Option<File>>,
}

impl<'a> StateFile<'a> {
    /// Takes the file for this run, if it is there.
    ///
    /// # Errors
    /// Another run has it, or it cannot be opened.
    pub(super) fn take(path: PathBuf, interrupt: &'a Interrupt) -> Result<Self, CliError> {
        match locked(&path) {
            Ok(held) => Ok(Self { path, interrupt, held: RefCell::new(held) }),
            Err(error) => {
                let exit = match error.kind() {
                    io::ErrorKind::WouldBlock => Exit::Busy,
                    _ => Exit::Failed,
                };
                let text = format!("--checkpoint: {}: {error}", path.display());
                Err(CliError::new(exit, "run::checkpoint", text))
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The run is over, and its result is out: nobody goes on from it.
    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn write(&self, write: WriteState<'_>) -> io::Result<()> {
        // A run that began while this one preconditioned its drive may have stored a state first.
        if self.held.borrow().is_none() && self.path.exists() {
            return Err(taken());
        }
        let part = part_of(&self.path);
        let file = File::options().write(true).create(true).truncate(false).open(&part)?;
        lock(&file)?;
        let _unfinished = self.interrupt.unfinished(&part);
        let written = file.set_len(0).and_then(|()| {
            let mut file = BufWriter::with_capacity(BUFFER, file);
            write(&mut file)?;
            let file = file.into_inner()?;
            file.sync_all()?;
            fs::rename(&part, &self.path)?;
            *self.held.borrow_mut() = Some(file);
            Ok(())
        });
        if written.is_err() {
            // What failed is told; the part is of no use.
            let _ = fs::remove_file(&part);
        }
        written
    }
}

impl Store for StateFile<'_> {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn open(&self) -> io::Result<Option<Box<dyn Read>>> {
        let Some(held) = &*self.held.borrow() else { return Ok(None) };
        let mut file = held.try_clone()?;
        file.rewind()?;
        Ok(Some(Box::new(BufReader::with_capacity(BUFFER, file))))
    }

    fn replace(&self, write: WriteState<'_>) -> io::Result<()> {
        self.interrupt.keeping(|| self.write(write))?;
        self.interrupt.leaves("the state of the run is kept: the same command goes on from there");
        Ok(())
    }
}

/// The file at a path, locked; `None` if there is none.
fn locked(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        lock(&file)?;
        // What was replaced between the two is no longer what the path names.
        let (own, named) = (file.metadata()?, fs::metadata(path));
        if named.is_ok_and(|named| (named.dev(), named.ino()) == (own.dev(), own.ino())) {
            return Ok(Some(file));
        }
    }
}

fn lock(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(taken()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn taken() -> io::Error {
    let text = "another run keeps its state there: wait until it is over, or name another file";
    io::Error::new(io::ErrorKind::WouldBlock, text)
}
