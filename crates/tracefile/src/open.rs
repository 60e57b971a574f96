//! From a file to the bytes of a trace: decompression by magic, tar headers skipped.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use crate::error::TraceFileError;

const TAR_BLOCK: usize = 512;

/// Entries that may stand before the first file of a tar archive.
const TAR_ENTRIES_MAX: usize = 16;

/// Bytes read from disk at once.
const BUFFER: usize = 1 << 18;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
    Xz,
}

impl Compression {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
        }
    }

    fn of(magic: &[u8]) -> Self {
        if magic.starts_with(&[0x1F, 0x8B]) {
            Self::Gzip
        } else if magic.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]) {
            Self::Zstd
        } else if magic.starts_with(&[0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00]) {
            Self::Xz
        } else {
            Self::None
        }
    }
}

/// Compressions and archives that are not read, and how they begin.
const FOREIGN: [(&str, &[u8]); 10] = [
    ("bzip2", b"BZh"),
    ("lz4", &[0x04, 0x22, 0x4D, 0x18]),
    ("zip", b"PK\x03\x04"),
    ("7-Zip", b"7z\xBC\xAF\x27\x1C"),
    ("RAR", b"Rar!\x1A\x07"),
    ("compress (.Z)", &[0x1F, 0x9D]),
    ("lzip", b"LZIP"),
    ("lzma", &[0x5D, 0x00, 0x00]),
    ("lzop", b"\x89LZO\0"),
    ("framed Snappy", b"\xFF\x06\0\0sNaPpY"),
];

/// The name of a compression that is not read, if a trace begins with its first bytes: also gzip, zstd and
/// xz, of which one layer was taken off already.
pub(crate) fn foreign_compression(head: &[u8]) -> Option<&'static str> {
    let foreign = FOREIGN.iter().find(|(_, magic)| head.starts_with(magic)).map(|(name, _)| *name);
    foreign.or_else(|| match Compression::of(head) {
        Compression::None => None,
        again => Some(again.name()),
    })
}

/// The decompressed bytes of a trace file.
pub(crate) struct Bytes {
    stream: Box<dyn Read>,
    /// Read ahead to look at; given out first.
    head: Vec<u8>,
    at: usize,
    pub(crate) compression: Compression,
    pub(crate) tar: bool,
    path: std::path::PathBuf,
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bytes").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Bytes {
    /// Opens `path` and looks through compression and tar.
    pub(crate) fn open(path: &Path) -> Result<Self, TraceFileError> {
        let mut file = File::open(path).map_err(TraceFileError::io(path, "open"))?;
        let mut magic = [0; 8];
        let found = fill(&mut file, &mut magic).map_err(TraceFileError::io(path, "read"))?;
        file.rewind().map_err(TraceFileError::io(path, "read"))?;
        let compression = Compression::of(&magic[..found]);
        let file = BufReader::with_capacity(BUFFER, file);
        let stream: Box<dyn Read> = match compression {
            Compression::None => Box::new(file),
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
            Compression::Zstd => Box::new(
                zstd::stream::read::Decoder::with_buffer(file)
                    .map_err(TraceFileError::io(path, "read"))?,
            ),
            Compression::Xz => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(file)),
        };
        let path = path.to_path_buf();
        let mut bytes = Self { stream, head: Vec::new(), at: 0, compression, tar: false, path };
        bytes.skip_tar()?;
        Ok(bytes)
    }

    /// The first `count` bytes, fewer only if the trace has fewer; they are still to be read.
    pub(crate) fn peek(&mut self, count: usize) -> Result<&[u8], TraceFileError> {
        if self.head.len() < count {
            let have = self.head.len();
            self.head.resize(count, 0);
            let found = fill(&mut self.stream, &mut self.head[have..]).map_err(|e| self.failed(e));
            self.head.truncate(have + *found.as_ref().unwrap_or(&0));
            found?;
        }
        Ok(&self.head[..count.min(self.head.len())])
    }

    /// Reads the next bytes; 0 at the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, TraceFileError> {
        if self.at < self.head.len() {
            let count = buffer.len().min(self.head.len() - self.at);
            buffer[..count].copy_from_slice(&self.head[self.at..self.at + count]);
            self.at += count;
            return Ok(count);
        }
        loop {
            match self.stream.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map_err(|error| self.failed(error)),
            }
        }
    }

    fn failed(&self, source: io::Error) -> TraceFileError {
        let path = self.path.clone();
        match self.compression {
            Compression::None => TraceFileError::Io { path, action: "read", source },
            compression => {
                TraceFileError::Compressed { path, compression: compression.name(), source }
            }
        }
    }

    /// Goes to the first file of a tar archive, if this is one.
    fn skip_tar(&mut self) -> Result<(), TraceFileError> {
        for _ in 0..TAR_ENTRIES_MAX {
            let header = self.peek(TAR_BLOCK)?;
            if header.len() < TAR_BLOCK || header.get(257..262) != Some(b"ustar") {
                return Ok(());
            }
            let Some(size) = octal(&header[124..136]) else { return Ok(()) };
            let kind = header[156];
            self.tar = true;
            self.head.clear();
            if matches!(kind, b'0' | 0) {
                let stream = std::mem::replace(&mut self.stream, Box::new(io::empty()));
                self.stream = Box::new(stream.take(size));
                return Ok(());
            }
            let padded = size.div_ceil(512).saturating_mul(512);
            let mut entry = (&mut self.stream).take(padded);
            let skipped = io::copy(&mut entry, &mut io::sink());
            skipped.map_err(|error| self.failed(error))?;
        }
        Ok(())
    }
}

/// Reads until the buffer is full or the stream ends; returns the bytes read.
fn fill(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// A number of a tar header.
fn octal(field: &[u8]) -> Option<u64> {
    let digits = field.iter().filter(|byte| !matches!(byte, 0 | b' '));
    let mut value = 0_u64;
    for digit in digits {
        if !(b'0'..=b'7').contains(digit) {
            return None;
        }
        value = value.checked_mul(8)?.checked_add(u64::from(digit - b'0'))?;
    }
    Some(value)
}
