//! The engine of the text formats: bytes in, lines out, places of errors.

use onefold_units::convert::u64_from;

use crate::cursor::{Cursor, Expected, excerpt, newline, trim_end};
use crate::devices::Devices;
use crate::{Event, FormatSpec, OnBadLine, ReadError, ReadOptions, Record, TraceOp};

/// No format has longer lines; FIU homes lines have about 350 bytes, deduplication lines of large
/// requests some KiB.
const LINE_BYTES_MAX: usize = 1 << 20;

/// A read or write above this is a parser's mistake, not a request: block layers count in 32 bits.
pub(crate) const DATA_BYTES_MAX: u64 = 1 << 32;

/// What a reader learns about a trace besides its records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Times count from 1970, so the first one is an epoch.
    pub(crate) unix: bool,
    /// The trace has no times.
    pub(crate) untimed: bool,
    /// Completions without an issue.
    pub(crate) orphans: u64,
    /// Issues of requeued requests, not counted again.
    pub(crate) requeued: u64,
    /// Events the recorder lost, if it says so.
    pub(crate) dropped: u64,
    /// Whether lines of one instant may belong to one request.
    pub(crate) split_requests: bool,
}

/// What a line was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// A request, or part of one.
    Request,
    /// Header, completion, comment: nothing to report.
    Nothing,
    /// A request that the trace itself marks as unusable; counted.
    Skipped,
    /// The requests end here.
    End,
}

/// What all line parsers share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) devices: Devices,
    /// Decimal digits from the time field down to nanoseconds.
    pub(crate) digits: u32,
    /// Bytes per unit of the address field.
    pub(crate) addr: u64,
    /// Bytes per unit of the length field, where it shares the unit of the address.
    pub(crate) unit: u64,
    /// The number that means read.
    pub(crate) read: u64,
    pub(crate) event: Event,
    pub(crate) facts: Facts,
}

impl Context {
    pub(crate) fn new(spec: FormatSpec, options: ReadOptions) -> Self {
        let defaults = spec.format.defaults();
        let addr = spec.addr.or(defaults.addr).map_or(1, crate::AddrUnit::bytes);
        Self {
            devices: Devices::default(),
            digits: spec.time.or(defaults.time).map_or(0, crate::TimeUnit::digits),
            addr,
            unit: addr,
            read: spec.read.or(defaults.read).map_or(1, u64::from),
            event: options.event,
            facts: Facts::default(),
        }
    }

    /// The number of a device named by `key`.
    #[inline]
    pub(crate) fn device(&mut self, key: &[u8]) -> Result<u16, Expected> {
        self.device_named(key, crate::devices::plain)
    }

    pub(crate) fn device_named(
        &mut self,
        key: &[u8],
        name: fn(&[u8]) -> String,
    ) -> Result<u16, Expected> {
        let what = "a trace of at most 65,536 devices";
        self.devices.number(key, name).ok_or(Expected { at: 0, what })
    }
}

/// A request of `len` bytes at `offset`, both already multiplied out; refuses what no device can
/// be asked.
#[inline]
pub(crate) fn request(
    cursor: &Cursor<'_>,
    t_ns: u64,
    op: TraceOp,
    offset: Option<u64>,
    len: Option<u64>,
) -> Result<Record, Expected> {
    let (Some(offset), Some(len)) = (offset, len) else {
        return Err(cursor.expected("a request that ends below 2^64 bytes"));
    };
    if offset.checked_add(len).is_none() {
        return Err(cursor.expected("a request that ends below 2^64 bytes"));
    }
    if op.is_data() && !(1..=DATA_BYTES_MAX).contains(&len) {
        return Err(cursor.expected("a read or write of 1 byte to 4 GiB"));
    }
    Ok(Record::new(t_ns, op, offset, len))
}

/// One text format.
pub(crate) trait LineFormat: std::fmt::Debug {
    /// Reads one line, without its end and blanks before the end, never empty.
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected>;

    /// Gives out what waits for later lines.
    fn finish(&mut self, _context: &mut Context, _out: &mut Vec<Record>) {}
}

/// Cuts bytes into lines and hands them to a format.
#[derive(Debug)]
pub(crate) struct LineReader {
    spec: FormatSpec,
    on_bad_line: OnBadLine,
    format: Box<dyn LineFormat>,
    pub(crate) context: Context,
    /// Start of a line whose end has not been pushed yet.
    carry: Vec<u8>,
    line: u64,
    byte: u64,
    ended: bool,
    pub(crate) skipped: u64,
}

impl LineReader {
    pub(crate) fn new(spec: FormatSpec, options: ReadOptions, format: Box<dyn LineFormat>) -> Self {
        Self {
            spec,
            on_bad_line: options.on_bad_line,
            format,
            context: Context::new(spec, options),
            carry: Vec::new(),
            line: 0,
            byte: 0,
            ended: false,
            skipped: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<Record>) -> Result<(), ReadError> {
        let mut rest = bytes;
        if !self.carry.is_empty() {
            let Some(end) = newline(rest) else { return self.keep(rest) };
            let (head, tail) = rest.split_at(end);
            self.carry.extend_from_slice(head);
            let line = std::mem::take(&mut self.carry);
            self.take(&line, out)?;
            self.byte += 1;
            // Reuse the allocation.
            self.carry = line;
            self.carry.clear();
            rest = tail.get(1..).unwrap_or_default();
        }
        while let Some(end) = newline(rest) {
            let (line, tail) = rest.split_at(end);
            self.take(line, out)?;
            self.byte += 1;
            rest = tail.get(1..).unwrap_or_default();
        }
        self.keep(rest)
    }

    fn keep(&mut self, rest: &[u8]) -> Result<(), ReadError> {
        if self.ended {
            return Ok(());
        }
        if self.carry.len() + rest.len() > LINE_BYTES_MAX {
            return Err(ReadError::LineTooLong {
                format: self.spec.format,
                line: self.line + 1,
                byte: self.byte,
                limit: u64_from(LINE_BYTES_MAX),
            });
        }
        self.carry.extend_from_slice(rest);
        Ok(())
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<Record>) -> Result<(), ReadError> {
        if !self.carry.is_empty() {
            let line = std::mem::take(&mut self.carry);
            self.take(&line, out)?;
        }
        self.format.finish(&mut self.context, out);
        Ok(())
    }

    /// One line without its newline.
    fn take(&mut self, line: &[u8], out: &mut Vec<Record>) -> Result<(), ReadError> {
        self.line += 1;
        let text = trim_end(line);
        if !self.ended && !text.is_empty() {
            let mut cursor = Cursor::new(text);
            match self.format.line(&mut cursor, &mut self.context, out) {
                Ok(Taken::Request | Taken::Nothing) => {}
                Ok(Taken::Skipped) => self.skipped += 1,
                Ok(Taken::End) => self.ended = true,
                Err(_) if self.on_bad_line == OnBadLine::Skip => self.skipped += 1,
                Err(expected) => return Err(self.bad_line(text, expected)),
            }
        }
        self.byte += u64_from(line.len());
        Ok(())
    }

    fn bad_line(&self, text: &[u8], expected: Expected) -> ReadError {
        let at = expected.at.min(text.len());
        let mut found = excerpt(text, at);
        if found.is_empty() {
            found.push_str("end of line");
        }
        ReadError::Line {
            format: self.spec.format,
            line: self.line,
            column: u64_from(at) + 1,
            byte: self.byte + u64_from(at),
            found,
            expected: expected.what,
        }
    }
}
