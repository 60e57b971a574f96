//! Trace files written in one step: a reader never sees half a file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use onefold_trace::{Losses, Record, WriteFormat, Writer};

use crate::error::TraceFileError;
use crate::parquet::ParquetWriter;
use crate::source::Meta;

/// Bytes collected before they go to the file.
const CHUNK: usize = 1 << 18;

/// zstd level: fast, and text traces shrink tenfold anyway.
const ZSTD_LEVEL: i32 = 3;

/// A format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// A stream format.
    Stream(WriteFormat),
    /// Parquet.
    Parquet,
}

impl OutputFormat {
    /// The format of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "parquet" {
            return Some(Self::Parquet);
        }
        WriteFormat::from_name(name).map(Self::Stream)
    }

    /// All names, for messages.
    #[must_use]
    pub fn names() -> String {
        let mut names = WriteFormat::ALL.map(WriteFormat::name).join(", ");
        names.push_str(", parquet");
        names
    }

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stream(format) => format.name(),
            Self::Parquet => "parquet",
        }
    }

    /// Whether records keep their device, so that no common address space is needed.
    #[must_use]
    pub const fn keeps_devices(self) -> bool {
        match self {
            Self::Stream(format) => format.keeps_devices(),
            Self::Parquet => true,
        }
    }
}

/// Where bytes go.
enum Sink {
    Plain(BufWriter<File>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
}

impl Sink {
    /// Compresses as the name of the file says.
    fn create(path: &Path, name: &Path) -> io::Result<Self> {
        let file = BufWriter::new(File::create(path)?);
        let extension = name.extension().and_then(|extension| extension.to_str());
        Ok(match extension {
            Some("gz") => {
                Self::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::default()))
            }
            Some("zst") => Self::Zstd(zstd::stream::write::Encoder::new(file, ZSTD_LEVEL)?),
            _ => Self::Plain(file),
        })
    }

    fn finish(self) -> io::Result<()> {
        let mut file = match self {
            Self::Plain(file) => file,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        };
        file.flush()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}

enum Encoder {
    Stream { writer: Box<Writer>, sink: Sink, bytes: Vec<u8> },
    Parquet(Box<ParquetWriter<Sink>>),
}

/// Writes a trace file.
pub struct TraceWriter {
    path: PathBuf,
    part: PathBuf,
    encoder: Option<Encoder>,
}

impl std::fmt::Debug for TraceWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceWriter").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Starts a trace file. `meta` describes its source; `options` says in words how it was read. The
/// file appears when [`TraceWriter::finish`] is called; names that end in `.gz` or `.zst` are
/// compressed.
pub fn create(
    path: &Path,
    format: OutputFormat,
    meta: &Meta,
    options: &str,
) -> Result<TraceWriter, TraceFileError> {
    let mut part = path.to_path_buf().into_os_string();
    part.push(".part");
    let part = PathBuf::from(part);
    let failed = TraceFileError::io(path, "write");
    let encoder = match format {
        OutputFormat::Stream(format) => {
            let sink = Sink::create(&part, path).map_err(failed)?;
            let epoch = meta.epoch_unix_ns.unwrap_or(0);
            let devices = if format.keeps_devices() { meta.devices.clone() } else { Vec::new() };
            let writer = Writer::new(format, epoch, devices, meta.has_digests);
            Encoder::Stream { writer: Box::new(writer), sink, bytes: Vec::new() }
        }
        OutputFormat::Parquet => {
            // Parquet compresses by itself and must stay seekable.
            let sink = Sink::create(&part, Path::new("")).map_err(failed)?;
            let writer = ParquetWriter::new(sink, meta, options)
                .map_err(|error| TraceFileError::io(path, "write")(io::Error::other(error)))?;
            Encoder::Parquet(Box::new(writer))
        }
    };
    Ok(TraceWriter { path: path.to_path_buf(), part, encoder: Some(encoder) })
}

impl TraceWriter {
    /// Appends one record.
    pub fn push(&mut self, record: &Record) -> Result<(), TraceFileError> {
        let failed = |error| TraceFileError::io(&self.path, "write")(error);
        match &mut self.encoder {
            Some(Encoder::Stream { writer, sink, bytes }) => {
                writer.push(record, bytes);
                if bytes.len() >= CHUNK {
                    sink.write_all(bytes).map_err(failed)?;
                    bytes.clear();
                }
                Ok(())
            }
            Some(Encoder::Parquet(writer)) => {
                writer.push(record).map_err(|error| failed(io::Error::other(error)))
            }
            None => Ok(()),
        }
    }

    /// Ends the file and gives it its name; tells what the format could not hold.
    pub fn finish(mut self) -> Result<Losses, TraceFileError> {
        let path = self.path.clone();
        let result = match self.encoder.take() {
            Some(Encoder::Stream { mut writer, mut sink, mut bytes }) => {
                writer.finish(&mut bytes);
                let losses = *writer.losses();
                sink.write_all(&bytes).and_then(|()| sink.finish()).map(|()| losses)
            }
            Some(Encoder::Parquet(writer)) => writer
                .finish()
                .map_err(io::Error::other)
                .and_then(Sink::finish)
                .map(|()| Losses::default()),
            None => Ok(Losses::default()),
        };
        result
            .and_then(|losses| fs::rename(&self.part, &path).map(|()| losses))
            .map_err(TraceFileError::io(&path, "write"))
    }
}

impl Drop for TraceWriter {
    fn drop(&mut self) {
        // After `finish` the part has its name and this finds nothing.
        let _ = fs::remove_file(&self.part);
    }
}
