//! SYSTOR '17: `Timestamp,Response,IOType,LUN,Offset,Size`, or with Response last.
//!
//! Times in seconds with 9 decimals, valid to 1 us; an empty type marks a request to skip. Source:
//! Lee et al., "Understanding storage traffic characteristics on enterprise VDI", SYSTOR 2017.

use crate::cursor::{Cursor, Expected};
use crate::lines::{Context, LineFormat, Taken, request};
use crate::{Record, TraceOp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Columns {
    ResponseSecond,
    ResponseLast,
}

#[derive(Debug, Default)]
pub(crate) struct Systor {
    columns: Option<Columns>,
}

impl LineFormat for Systor {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        if self.columns.is_none() && cursor.line().starts_with(b"Timestamp") {
            self.columns = Some(if cursor.line().starts_with(b"Timestamp,Response") {
                Columns::ResponseSecond
            } else {
                Columns::ResponseLast
            });
            return Ok(Taken::Nothing);
        }
        let t_ns = cursor.decimal(context.digits, "a time in seconds")?;
        cursor.comma()?;
        // Without a header the first line tells: a response starts with a digit.
        let columns = *self.columns.get_or_insert_with(|| match cursor.peek() {
            Some(b'0'..=b'9') => Columns::ResponseSecond,
            _ => Columns::ResponseLast,
        });
        let mut lat_ns = None;
        if columns == Columns::ResponseSecond {
            lat_ns = response(cursor, context)?;
            cursor.comma()?;
        }
        let op = match cursor.peek() {
            Some(b'R') => TraceOp::Read,
            Some(b'W') => TraceOp::Write,
            Some(b',') => return Ok(Taken::Skipped),
            _ => return Err(cursor.expected("an operation of R W")),
        };
        cursor.skip(1);
        cursor.comma()?;
        let dev = context.device(cursor.until_comma())?;
        cursor.comma()?;
        let offset = cursor.integer("an offset in bytes")?.checked_mul(context.addr);
        cursor.comma()?;
        let place = *cursor;
        let len = cursor.integer("a size in bytes")?;
        if columns == Columns::ResponseLast {
            cursor.comma()?;
            lat_ns = response(cursor, context)?;
        }
        cursor.end()?;
        context.facts.unix = true;
        let mut record = request(&place, t_ns, op, offset, Some(len))?;
        record.dev = dev;
        record.lat_ns = lat_ns;
        out.push(record);
        Ok(Taken::Request)
    }
}

/// The response time; some lines have none.
fn response(cursor: &mut Cursor<'_>, context: &Context) -> Result<Option<u64>, Expected> {
    if matches!(cursor.peek(), Some(b',') | None) {
        return Ok(None);
    }
    cursor.decimal(context.digits, "a response time in seconds").map(Some)
}
