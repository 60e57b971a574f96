//! The engine of the binary formats with one record after another.

use onefold_units::convert::u64_from;

use crate::error::BinaryProblem;
use crate::lines::{Context, Taken};
use crate::{FormatSpec, OnBadLine, ReadError, ReadOptions, Record};

/// Binary records.
pub(crate) trait RecordFormat: std::fmt::Debug {
    /// Length of the record that starts at `bytes`, at least 1; `None` if more bytes are needed to
    /// tell.
    fn length(&mut self, bytes: &[u8]) -> Result<Option<usize>, BinaryProblem>;

    /// Reads one record of that length.
    fn record(
        &mut self,
        bytes: &[u8],
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, BinaryProblem>;

    /// Gives out what waits for later records.
    fn finish(&mut self, _context: &mut Context, _out: &mut Vec<Record>) {}
}

/// Cuts bytes into records and hands them to a format.
#[derive(Debug)]
pub(crate) struct RecordReader {
    spec: FormatSpec,
    on_bad_line: OnBadLine,
    format: Box<dyn RecordFormat>,
    pub(crate) context: Context,
    carry: Vec<u8>,
    records: u64,
    byte: u64,
    pub(crate) skipped: u64,
}

impl RecordReader {
    pub(crate) fn new(
        spec: FormatSpec,
        options: ReadOptions,
        format: Box<dyn RecordFormat>,
    ) -> Self {
        Self {
            spec,
            on_bad_line: options.on_bad_line,
            format,
            context: Context::new(spec, options),
            carry: Vec::new(),
            records: 0,
            byte: 0,
            skipped: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<Record>) -> Result<(), ReadError> {
        if self.carry.is_empty() {
            let used = self.take_all(bytes, out)?;
            self.carry.extend_from_slice(bytes.get(used..).unwrap_or_default());
            return Ok(());
        }
        let mut whole = std::mem::take(&mut self.carry);
        whole.extend_from_slice(bytes);
        let used = self.take_all(&whole, out)?;
        whole.drain(..used);
        self.carry = whole;
        Ok(())
    }

    /// Reads the whole records of `bytes`; returns how many bytes they have.
    fn take_all(&mut self, bytes: &[u8], out: &mut Vec<Record>) -> Result<usize, ReadError> {
        let mut used = 0;
        loop {
            let rest = bytes.get(used..).unwrap_or_default();
            let length = self.format.length(rest).map_err(|problem| self.bad(problem))?;
            let Some(record) = length.and_then(|length| rest.get(..length)) else {
                return Ok(used);
            };
            self.records += 1;
            match self.format.record(record, &mut self.context, out) {
                Ok(Taken::Skipped) => self.skipped += 1,
                Ok(_) => {}
                Err(_) if self.on_bad_line == OnBadLine::Skip => self.skipped += 1,
                Err(problem) => {
                    self.records -= 1;
                    return Err(self.bad(problem));
                }
            }
            used += record.len().max(1);
            self.byte += u64_from(record.len());
        }
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<Record>) -> Result<(), ReadError> {
        if !self.carry.is_empty() && self.on_bad_line == OnBadLine::Fail {
            let have = self.carry.len();
            let length = self.format.length(&self.carry).map_err(|problem| self.bad(problem))?;
            // Not even enough to tell the length: at least one byte is missing.
            let missing = length.map_or(1, |length| length.saturating_sub(have).max(1));
            return Err(ReadError::Truncated {
                format: self.spec.format,
                byte: self.byte + u64_from(have),
                missing: u64_from(missing),
            });
        }
        if !self.carry.is_empty() {
            self.skipped += 1;
        }
        self.format.finish(&mut self.context, out);
        Ok(())
    }

    fn bad(&self, problem: BinaryProblem) -> ReadError {
        ReadError::Record {
            format: self.spec.format,
            record: self.records + 1,
            byte: self.byte,
            problem,
        }
    }
}

/// A little-endian number at `at`; zero past the end, which callers exclude by the record length.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u16::from_le_bytes(*chunk))
}

/// See [`u16_at`].
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

/// See [`u16_at`].
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

/// A binary request; see [`crate::lines::request`].
pub(crate) fn binary_request(
    t_ns: u64,
    op: crate::TraceOp,
    offset: Option<u64>,
    len: Option<u64>,
) -> Result<Record, BinaryProblem> {
    let cursor = crate::cursor::Cursor::new(&[]);
    crate::lines::request(&cursor, t_ns, op, offset, len).map_err(|_| BinaryProblem::Range {
        offset: offset.unwrap_or(u64::MAX),
        len: len.unwrap_or(u64::MAX),
    })
}
