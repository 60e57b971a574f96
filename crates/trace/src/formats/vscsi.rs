//! `VMware` vSCSI: binary records of version 1 and 2, and a CSV of them.
//!
//! Version 1, 32 B: sn u32, len u32, nSG u32, cmd u16, ver u16, lbn u64, `ts_us` u64. Version 2,
//! 40 B: cmd u16, ver u16, sn u32, len u32, nSG u32, lbn u64, ts u64, rt u64. ver >> 8 is the
//! version. Source: the `CloudPhysics` readers of libCacheSim and CacheMon.

use crate::cursor::{Cursor, Expected};
use crate::error::BinaryProblem;
use crate::lines::{Context, LineFormat, Taken, request};
use crate::records::{RecordFormat, binary_request, u16_at, u32_at, u64_at};
use crate::{Record, TraceOp};

/// Places of the fields of one version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vscsi {
    version: u16,
    pub(crate) length: usize,
    command: usize,
    ver: usize,
    len: usize,
    lbn: usize,
    time: usize,
    response: Option<usize>,
}

impl Vscsi {
    pub(crate) const VERSION_1: Self = Self {
        version: 1,
        length: 32,
        len: 4,
        command: 12,
        ver: 14,
        lbn: 16,
        time: 24,
        response: None,
    };

    pub(crate) const VERSION_2: Self = Self {
        version: 2,
        length: 40,
        command: 0,
        ver: 2,
        len: 8,
        lbn: 16,
        time: 24,
        response: Some(32),
    };

    /// Whether a record has the version and a command of a vSCSI trace; its time.
    pub(crate) fn looks_right(&self, record: &[u8]) -> Option<u64> {
        let right = u16_at(record, self.ver) >> 8 == self.version
            && operation(u16_at(record, self.command)).is_some();
        right.then(|| u64_at(record, self.time))
    }
}

/// The operation of a SCSI command, 6-byte to 16-byte forms.
const fn operation(command: u16) -> Option<TraceOp> {
    Some(match command {
        0x28 | 0x88 | 0x08 | 0xA8 => TraceOp::Read,
        0x2A | 0x8A | 0x0A | 0xAA => TraceOp::Write,
        0x35 | 0x91 => TraceOp::Flush,
        0x42 => TraceOp::Trim,
        _ => return None,
    })
}

impl RecordFormat for Vscsi {
    fn length(&mut self, _bytes: &[u8]) -> Result<Option<usize>, BinaryProblem> {
        Ok(Some(self.length))
    }

    fn record(
        &mut self,
        bytes: &[u8],
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, BinaryProblem> {
        let found = u16_at(bytes, self.ver) >> 8;
        if found != self.version {
            return Err(BinaryProblem::Version {
                found: u32::from(found),
                expected: u32::from(self.version),
            });
        }
        let Some(op) = operation(u16_at(bytes, self.command)) else { return Ok(Taken::Skipped) };
        let scale = 10_u64.pow(context.digits);
        let time = u64_at(bytes, self.time);
        let t_ns = time.checked_mul(scale).ok_or(BinaryProblem::Time { found: time })?;
        let len = Some(u64::from(u32_at(bytes, self.len)));
        let (offset, len) = if op == TraceOp::Flush {
            (Some(0), Some(0))
        } else {
            (u64_at(bytes, self.lbn).checked_mul(context.addr), len)
        };
        let mut record = binary_request(t_ns, op, offset, len)?;
        record.lat_ns = self.response.and_then(|at| u64_at(bytes, at).checked_mul(scale));
        out.push(record);
        Ok(Taken::Request)
    }
}

/// The CSV form: header `version,time,op,size,lbn`; op in hexadecimal.
#[derive(Debug)]
pub(crate) struct VscsiCsv;

/// The first line of the CSV form.
pub(crate) const CSV_HEADER: &str = "version,time,op,size,lbn";

impl LineFormat for VscsiCsv {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        if cursor.line() == CSV_HEADER.as_bytes() {
            return Ok(Taken::Nothing);
        }
        cursor.integer("a version")?;
        cursor.comma()?;
        let t_ns = cursor.decimal(context.digits, "a time in seconds")?;
        cursor.comma()?;
        if !cursor.take(b"0x") {
            cursor.take(b"0X");
        }
        let command = cursor.bare_hex("a SCSI command in hexadecimal")?;
        cursor.comma()?;
        let place = *cursor;
        let len = cursor.integer("a size in bytes")?;
        cursor.comma()?;
        let offset = cursor.integer("a block of 512 B")?.checked_mul(context.addr);
        cursor.end()?;
        let Some(op) = u16::try_from(command).ok().and_then(operation) else {
            return Ok(Taken::Skipped);
        };
        let (offset, len) = if op == TraceOp::Flush { (Some(0), 0) } else { (offset, len) };
        out.push(request(&place, t_ns, op, offset, Some(len))?);
        Ok(Taken::Request)
    }
}
