//! `--latency-log`: a row for each request.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use csv::Writer;
use onefold_sim::Logged;

use crate::error::{CliError, Exit};

const HEAD: [&str; 10] = [
    "pass",
    "number",
    "tenant",
    "op",
    "fua",
    "offset",
    "bytes",
    "issued_ns",
    "latency_ns",
    "waited_for",
];

/// A CSV file that grows while a run goes on.
pub(super) struct LatencyLog {
    path: PathBuf,
    file: RefCell<Writer<BufWriter<File>>>,
    /// The first failure; nothing is written after it.
    failed: RefCell<Option<csv::Error>>,
}

impl LatencyLog {
    /// A new file with its head.
    pub(super) fn create(path: &Path) -> Result<Self, CliError> {
        let file = File::create_new(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                let text = format!("--latency-log: {} exists, expected a new file", path.display());
                CliError::new(Exit::Usage, "usage::latency_log", text)
            }
            _ => Self::error(path, &error),
        })?;
        let mut file = Writer::from_writer(BufWriter::new(file));
        file.write_record(HEAD).map_err(|error| Self::error(path, &error))?;
        let (file, failed) = (RefCell::new(file), RefCell::new(None));
        Ok(Self { path: path.to_owned(), file, failed })
    }

    fn error(path: &Path, error: &dyn std::fmt::Display) -> CliError {
        let text = format!("cannot write the latency log {}: {error}", path.display());
        CliError::new(Exit::Failed, "run::latency_log", text)
    }

    /// Adds a request.
    pub(super) fn row(&self, request: &Logged<'_>) {
        if self.failed.borrow().is_some() {
            return;
        }
        let number = |number: u64| number.to_string();
        let row = [
            number(request.pass.into()),
            number(request.number),
            request.tenant.to_owned(),
            request.op_name().to_owned(),
            u8::from(request.fua).to_string(),
            number(request.offset),
            number(request.bytes),
            number(request.issued_ns),
            request.latency_ns.map_or_else(String::new, number),
            request.waited_for().to_owned(),
        ];
        if let Err(error) = self.file.borrow_mut().write_record(row) {
            *self.failed.borrow_mut() = Some(error);
        }
    }

    /// The file is complete, or why it is not.
    pub(super) fn finish(self) -> Result<(), CliError> {
        if let Some(error) = self.failed.into_inner() {
            return Err(Self::error(&self.path, &error));
        }
        let flushed = self.file.into_inner().flush();
        flushed.map_err(|error| Self::error(&self.path, &error))
    }
}
