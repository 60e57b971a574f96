//! `--checkpoint`: the state of a run in a file.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write as _};
use std::path::PathBuf;

use onefold_sim::{Store, WriteState};

use crate::interrupt::Interrupt;
use crate::replace::part_of;

/// Bytes that are read and written at once.
const BUFFER: usize = 1 << 20;

/// A file that is replaced in one step.
pub(super) struct StateFile<'a> {
    pub(super) path: PathBuf,
    pub(super) interrupt: &'a Interrupt,
}

impl StateFile<'_> {
    /// The run is over, and its result is out: nobody goes on from it.
    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn write(&self, write: WriteState<'_>) -> io::Result<()> {
        let part = part_of(&self.path);
        let _unfinished = self.interrupt.unfinished(&part);
        let written = File::create(&part).and_then(|file| {
            let mut file = BufWriter::with_capacity(BUFFER, file);
            write(&mut file)?;
            file.flush()?;
            file.get_ref().sync_all()?;
            fs::rename(&part, &self.path)
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
        match File::open(&self.path) {
            Ok(file) => Ok(Some(Box::new(BufReader::with_capacity(BUFFER, file)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn replace(&self, write: WriteState<'_>) -> io::Result<()> {
        self.interrupt.keeping(|| self.write(write))?;
        self.interrupt.leaves("the state of the run is kept: the same command goes on from there");
        Ok(())
    }
}
