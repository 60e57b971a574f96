//! Records in time order: in memory up to [`order::WINDOW_RECORDS`], as they come if the file is
//! sorted, else by sorted runs on disk.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use onefold_trace::oft::{self, Encoder, Header};
use onefold_trace::order::{self, Merge};
use onefold_trace::{Format, FormatSpec, ReadOptions, Reader, Record};

use crate::error::TraceFileError;
use crate::input::Input;

/// Records given out at once.
const BATCH: usize = 4_096;

/// Bytes of a run read at once.
const RUN_CHUNK: usize = 1 << 18;

/// Where sorted records come from.
#[derive(Debug)]
pub(crate) enum Sorted {
    /// All of them, sorted, and how many were given out.
    Memory(Arc<Vec<Record>>, usize),
    /// A file that is sorted.
    Stream(Box<Input>),
    /// Sorted runs.
    Runs(Box<Merge<Run>>),
}

/// Sorted runs in a file that is gone when nobody reads it any more.
#[derive(Debug)]
pub(crate) struct Spilled {
    file: Arc<File>,
    spans: Vec<(u64, u64)>,
}

impl Sorted {
    /// Appends the next records in time; false at the end.
    pub(crate) fn next(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceFileError> {
        match self {
            Self::Memory(records, given) => {
                let end = records.len().min(*given + BATCH);
                out.extend_from_slice(&records[*given..end]);
                Ok(std::mem::replace(given, end) < end)
            }
            Self::Stream(input) => input.next(out),
            Self::Runs(merge) => {
                for _ in 0..BATCH {
                    let Some(record) = merge.next_record()? else {
                        return Ok(false);
                    };
                    out.push(record);
                }
                Ok(true)
            }
        }
    }
}

impl Spilled {
    /// Sorts a whole file into runs on disk.
    pub(crate) fn new(
        mut input: Input,
        digests: bool,
        run_records: usize,
    ) -> Result<Self, TraceFileError> {
        let failed =
            |action| move |source| TraceFileError::io(&std::env::temp_dir(), action)(source);
        let mut file = tempfile::tempfile().map_err(failed("write"))?;
        let mut spans = Vec::new();
        let mut end = 0_u64;
        let mut records = Vec::new();
        let mut bytes = Vec::new();
        loop {
            let more = input.next(&mut records)?;
            while records.len() >= run_records || (!more && !records.is_empty()) {
                let rest = records.split_off(records.len().min(run_records));
                order::sort(&mut records);
                let start = end;
                end +=
                    write_run(&mut file, &records, digests, &mut bytes).map_err(failed("write"))?;
                spans.push((start, end));
                records = rest;
            }
            if !more {
                break;
            }
        }
        Ok(Self { file: Arc::new(file), spans })
    }

    /// The records of the trace at `path` from the first on.
    pub(crate) fn read(&self, path: &Path) -> Result<Sorted, TraceFileError> {
        let run = |&(at, end): &(u64, u64)| Run::new(&self.file, at, end, path);
        Ok(Sorted::Runs(Box::new(Merge::new(self.spans.iter().map(run).collect())?)))
    }
}

/// Appends a run as OFT; returns its length.
fn write_run(
    file: &mut File,
    records: &[Record],
    digests: bool,
    bytes: &mut Vec<u8>,
) -> io::Result<u64> {
    let flags = if digests { oft::FLAG_DIGESTS } else { 0 };
    let mut encoder = Encoder::new(Header { flags, ..Header::unknown() });
    bytes.clear();
    bytes.extend_from_slice(&encoder.header());
    let mut written = 0;
    for record in records {
        encoder.push(record, bytes);
        if bytes.len() >= RUN_CHUNK {
            file.write_all(bytes)?;
            written += bytes.len();
            bytes.clear();
        }
    }
    encoder.finish(bytes);
    file.write_all(bytes)?;
    written += bytes.len();
    Ok(written as u64)
}

/// One sorted run of the spill file.
#[derive(Debug)]
pub(crate) struct Run {
    file: Arc<File>,
    at: u64,
    end: u64,
    reader: Option<Reader>,
    records: std::collections::VecDeque<Record>,
    batch: Vec<Record>,
    path: std::path::PathBuf,
}

impl Run {
    fn new(file: &Arc<File>, at: u64, end: u64, path: &Path) -> Self {
        let spec = FormatSpec::new(Format::Oft);
        Self {
            file: Arc::clone(file),
            at,
            end,
            reader: Reader::new(spec, ReadOptions::default()).ok(),
            records: std::collections::VecDeque::new(),
            batch: Vec::new(),
            path: path.to_path_buf(),
        }
    }

    /// Reads until a record is there or the run ends.
    fn fill(&mut self) -> Result<(), TraceFileError> {
        while self.records.is_empty() {
            let Some(reader) = &mut self.reader else { return Ok(()) };
            let read = |source| TraceFileError::Read { path: self.path.clone(), source };
            let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(RUN_CHUNK);
            if left == 0 {
                reader.finish(&mut self.batch).map_err(read)?;
                self.reader = None;
            } else {
                let mut chunk = vec![0; left];
                self.file
                    .read_exact_at(&mut chunk, self.at)
                    .map_err(TraceFileError::io(&std::env::temp_dir(), "read"))?;
                self.at += left as u64;
                reader.push(&chunk, &mut self.batch).map_err(read)?;
            }
            self.records.extend(self.batch.drain(..));
        }
        Ok(())
    }
}

impl Iterator for Run {
    type Item = Result<Record, TraceFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.fill() {
            Ok(()) => self.records.pop_front().map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
}
