//! What can be wrong with a trace. Every text says what was found and what was expected.

use thiserror::Error;

use crate::Format;

/// The bytes are not the trace they should be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A line of a text format.
    #[error(
        "line {line}, column {column} (byte {byte}): found `{found}`, expected {expected} ({})",
        .format.name()
    )]
    Line {
        /// The format being read.
        format: Format,
        /// Line number, from 1.
        line: u64,
        /// Column in bytes, from 1.
        column: u64,
        /// Offset of that column in the decompressed file.
        byte: u64,
        /// The text there.
        found: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// A line longer than any format has.
    #[error(
        "line {line} (byte {byte}) is longer than {limit} bytes: not a {} trace",
        .format.name()
    )]
    LineTooLong {
        /// The format being read.
        format: Format,
        /// Line number, from 1.
        line: u64,
        /// Offset of its start.
        byte: u64,
        /// The limit.
        limit: u64,
    },
    /// A record of a binary format.
    #[error("record {record} at byte {byte}: {problem} ({})", .format.name())]
    Record {
        /// The format being read.
        format: Format,
        /// Record number, from 1.
        record: u64,
        /// Offset of its start.
        byte: u64,
        /// Found and expected.
        problem: BinaryProblem,
    },
    /// The file ends inside a record.
    #[error(
        "the file ends at byte {byte} inside a record that needs {missing} more bytes ({})",
        .format.name()
    )]
    Truncated {
        /// The format being read.
        format: Format,
        /// Length of the file.
        byte: u64,
        /// Bytes that are missing.
        missing: u64,
    },
    /// The format has no byte stream reader.
    #[error("{} files are columns, not a stream; open them as a file", .0.name())]
    NotAStream(Format),
    /// The format says neither read nor write.
    #[error(
        "oracleGeneral has no read/write flag, so every request would be a read; allow it only for \
         cache studies"
    )]
    NoReadWriteFlag,
}

impl ReadError {
    /// Whether reading goes on behind the fault under [`OnBadLine::Skip`](crate::OnBadLine::Skip): the next line
    /// or record is found without this one.
    #[must_use]
    pub fn can_be_skipped(&self) -> bool {
        match self {
            Self::Line { .. } => true,
            Self::Record { format, problem, .. } => {
                let is_content = matches!(
                    problem,
                    BinaryProblem::Code { .. }
                        | BinaryProblem::Range { .. }
                        | BinaryProblem::Time { .. }
                );
                *format != Format::Oft && is_content
            }
            Self::Truncated { format, .. } => *format != Format::Oft,
            _ => false,
        }
    }

    /// Bytes at the start of a damaged OFT file that are a whole recording.
    #[must_use]
    pub const fn whole_bytes(&self) -> Option<u64> {
        match self {
            Self::Record { format: Format::Oft, byte: byte @ 1.., .. } => Some(*byte),
            _ => None,
        }
    }
}

/// What is wrong with a binary record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BinaryProblem {
    /// The magic number.
    #[error("magic is {found:#010x}, expected {expected:#010x}")]
    Magic {
        /// The number there.
        found: u32,
        /// The number that belongs there.
        expected: u32,
    },
    /// The version.
    #[error("version is {found}, expected {expected}")]
    Version {
        /// The version there.
        found: u32,
        /// The version this reader knows.
        expected: u32,
    },
    /// A checksum.
    #[error("checksum is {found:#010x}, expected {expected:#010x}")]
    Checksum {
        /// The checksum stored.
        found: u32,
        /// The checksum of the bytes.
        expected: u32,
    },
    /// A size field.
    #[error("{what} is {found}, expected {expected}")]
    Size {
        /// Which field.
        what: &'static str,
        /// The size there.
        found: u64,
        /// The size that belongs there.
        expected: u64,
    },
    /// A code that names nothing.
    #[error("{what} is {found}, which names nothing")]
    Code {
        /// Which field.
        what: &'static str,
        /// The code there.
        found: u64,
    },
    /// The request leaves the 64-bit address space or is implausibly long.
    #[error("request of {len} bytes at {offset} is empty, longer than 4 GiB or ends past 2^64")]
    Range {
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes.
        len: u64,
    },
    /// A time.
    #[error("time {found} does not fit nanoseconds in 64 bits")]
    Time {
        /// The time there.
        found: u64,
    },
}

/// The format could not be recognised.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DetectError {
    /// Nothing to look at.
    #[error("the file is empty, expected a trace")]
    Empty,
    /// Two formats fit.
    #[error("the file could be {} or {}; say which with --trace-format", .0.name(), .1.name())]
    Ambiguous(Format, Format),
    /// No format fits.
    #[error(
        "no known trace format fits at least 95 % of the first lines (`{first}`){}",
        .closest.as_ref().map(|closest| format!("; {closest}")).unwrap_or_default()
    )]
    Unknown {
        /// Start of the file.
        first: String,
        /// The format that comes closest, if one does.
        closest: Option<Box<Closest>>,
    },
}

/// The format that reads most of a file that no format fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closest {
    /// The format.
    pub format: Format,
    /// Lines that are requests of this format.
    pub lines: u64,
    /// Lines looked at, from the start of the file.
    pub of: u64,
    /// The first line that cannot be read: its number from 1, and what is wrong with it.
    pub fails: Option<(u64, BadColumn)>,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadColumn {
    /// Column in bytes, from 1.
    pub column: u64,
    /// The text there.
    pub found: String,
    /// What belongs there.
    pub expected: &'static str,
}

impl std::fmt::Display for Closest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { format, lines, of, fails } = self;
        write!(f, "closest is {}, which reads {lines} of {of} lines", format.name())?;
        let Some((line, BadColumn { column, found, expected })) = fails else { return Ok(()) };
        write!(f, "; line {line}, column {column}: found `{found}`, expected {expected}")
    }
}
