//! Onefold's text form: header `t_ns,op,sector512,nsect,flags,lat_ns`.

use onefold_units::SECTOR_BYTES;

use crate::cursor::{Cursor, Expected};
use crate::lines::{Context, LineFormat, Taken, request};
use crate::{Flags, Record, TraceOp};

/// The first line of every file.
pub(crate) const HEADER: &str = "t_ns,op,sector512,nsect,flags,lat_ns";

#[derive(Debug)]
pub(crate) struct OnefoldCsv;

impl LineFormat for OnefoldCsv {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        _context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        if cursor.line() == HEADER.as_bytes() {
            return Ok(Taken::Nothing);
        }
        let t_ns = cursor.integer("a time in ns")?;
        cursor.comma()?;
        let op = match cursor.peek() {
            Some(b'R') => TraceOp::Read,
            Some(b'W') => TraceOp::Write,
            Some(b'F') => TraceOp::Flush,
            Some(b'D') => TraceOp::Trim,
            Some(b'Z') => TraceOp::WriteZeroes,
            _ => return Err(cursor.expected("an operation of R W F D Z")),
        };
        cursor.skip(1);
        cursor.comma()?;
        let offset = cursor.integer("a sector")?.checked_mul(SECTOR_BYTES);
        cursor.comma()?;
        let place = *cursor;
        let len = cursor.integer("a count of sectors")?.checked_mul(SECTOR_BYTES);
        cursor.comma()?;
        let flags = flags(cursor)?;
        cursor.comma()?;
        let lat_ns =
            if cursor.take(b"-1") { None } else { Some(cursor.integer("a latency or -1")?) };
        cursor.end()?;
        let mut record = request(&place, t_ns, op, offset, len)?;
        record.flags = flags;
        record.lat_ns = lat_ns;
        out.push(record);
        Ok(Taken::Request)
    }
}

fn flags(cursor: &mut Cursor<'_>) -> Result<Flags, Expected> {
    let mut flags = Flags::NONE;
    loop {
        flags = flags.with(match cursor.peek() {
            Some(b'S') => Flags::SYNC,
            Some(b'M') => Flags::META,
            Some(b'A') => Flags::READAHEAD,
            Some(b'F') => Flags::FUA,
            Some(b',') | None => return Ok(flags),
            _ => return Err(cursor.expected("flags of S M A F")),
        });
        cursor.skip(1);
    }
}
