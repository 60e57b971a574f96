//! Records of a file in file order, whatever the format.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use onefold_trace::{
    DetectError, Event, Format, FormatSpec, HEAD_BYTES, OnBadLine, ReadOptions, Reader, Record,
    Summary, detect,
};

use crate::error::TraceFileError;
use crate::open::{Bytes, Compression, foreign_compression};
use crate::options::Options;
use crate::parquet::ParquetReader;
use crate::percpu::PerCpu;

/// Bytes decompressed at once.
const CHUNK: usize = 1 << 18;

/// One pass over a trace file.
#[derive(Debug)]
pub(crate) struct Input {
    path: PathBuf,
    pub(crate) spec: FormatSpec,
    pub(crate) compression: Compression,
    pub(crate) tar: bool,
    device: Option<String>,
    stream: Stream,
}

#[derive(Debug)]
enum Stream {
    PerCpu { merged: PerCpu, reader: Box<Reader>, buffer: Vec<u8>, finished: bool },
    Bytes { bytes: Bytes, reader: Box<Reader>, buffer: Vec<u8>, finished: bool },
    Parquet(Box<ParquetReader>),
}

/// Requests of a tape, which is a folder.
const REQUESTS: &str = "requests.oft";

/// The file of a trace: that of the requests, if it is a tape.
pub(crate) fn file_of(path: &Path) -> Cow<'_, Path> {
    let requests = path.join(REQUESTS);
    if path.is_dir() && requests.is_file() { requests.into() } else { path.into() }
}

impl Input {
    /// Opens a file and decides on its format.
    pub(crate) fn open(path: &Path, options: &Options) -> Result<Self, TraceFileError> {
        let path = &*file_of(path);
        let mut bytes = Bytes::open(path)?;
        let head = bytes.peek(HEAD_BYTES)?;
        let complete = head.len() < HEAD_BYTES;
        let detected = detect(head, complete);
        let spec = match (options.format, detected) {
            // An empty file is no trace of any format.
            (Some(spec), Ok(_)) => spec,
            (Some(spec), Err(DetectError::Unknown { .. } | DetectError::Ambiguous(..)))
                if spec.format == Format::OracleGeneral || foreign_compression(head).is_none() =>
            {
                spec
            }
            (_, Ok(format)) => FormatSpec::new(format),
            (_, Err(source)) => {
                if let Some(compression) = foreign_compression(head) {
                    return Err(TraceFileError::Compression {
                        path: path.to_path_buf(),
                        compression,
                    });
                }
                return Err(TraceFileError::Detect { path: path.to_path_buf(), source });
            }
        };
        let (compression, tar) = (bytes.compression, bytes.tar);
        if !options.cpu_files.is_empty() && spec.format != Format::Blktrace {
            let path = path.to_path_buf();
            return Err(TraceFileError::NotPerCpu { path, format: spec.format });
        }
        let stream = if spec.format == Format::Parquet {
            Stream::Parquet(Box::new(ParquetReader::open(path)?))
        } else {
            let reader = Reader::new(spec, read_options(options))
                .map_err(|source| TraceFileError::Read { path: path.to_path_buf(), source })?;
            let reader = Box::new(reader);
            if options.cpu_files.is_empty() {
                Stream::Bytes { bytes, reader, buffer: vec![0; CHUNK], finished: false }
            } else {
                let merged = PerCpu::new(bytes, &options.cpu_files)?;
                Stream::PerCpu { merged, reader, buffer: Vec::new(), finished: false }
            }
        };
        Ok(Self {
            path: path.to_path_buf(),
            spec,
            compression,
            tar,
            device: options.device.clone(),
            stream,
        })
    }

    /// Appends further records of the chosen device; false at the end of the file.
    pub(crate) fn next(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceFileError> {
        let before = out.len();
        let more = match &mut self.stream {
            Stream::Parquet(parquet) => parquet.next(out)?,
            Stream::PerCpu { merged, reader, buffer, finished } => {
                if *finished {
                    return Ok(false);
                }
                buffer.clear();
                merged.read(CHUNK, buffer)?;
                *finished = buffer.is_empty();
                let result = if *finished { reader.finish(out) } else { reader.push(buffer, out) };
                result
                    .map_err(|source| TraceFileError::Read { path: self.path.clone(), source })?;
                true
            }
            Stream::Bytes { bytes, reader, buffer, finished } => {
                if *finished {
                    return Ok(false);
                }
                let count = bytes.read(buffer)?;
                let result = if count == 0 {
                    *finished = true;
                    reader.finish(out)
                } else {
                    reader.push(&buffer[..count], out)
                };
                result
                    .map_err(|source| TraceFileError::Read { path: self.path.clone(), source })?;
                true
            }
        };
        if let Some(device) = &self.device {
            let wanted = match &self.stream {
                Stream::Parquet(parquet) => parquet.device_number(device),
                Stream::Bytes { reader, .. } | Stream::PerCpu { reader, .. } => {
                    reader.device_number(device)
                }
            };
            let mut at = 0;
            out.retain(|record| {
                at += 1;
                at <= before || Some(record.dev) == wanted
            });
        }
        Ok(more)
    }

    /// What the file told besides records; complete at its end.
    pub(crate) fn summary(&self) -> Summary {
        match &self.stream {
            Stream::Bytes { reader, .. } | Stream::PerCpu { reader, .. } => reader.summary(),
            Stream::Parquet(parquet) => parquet.summary(),
        }
    }
}

const fn read_options(options: &Options) -> ReadOptions {
    let on_bad_line: OnBadLine = options.on_bad_line;
    let event: Event = options.event;
    ReadOptions { on_bad_line, event, cache_study: options.cache_study }
}
