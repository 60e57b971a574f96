//! Sysinternals `DiskMon`: `seq t_s dur_s disk Read/Write sector nsect`, tabs.

use crate::cursor::{Cursor, Expected};
use crate::lines::{Context, LineFormat, Taken, request};
use crate::{Record, TraceOp};

#[derive(Debug)]
pub(crate) struct Diskmon;

impl LineFormat for Diskmon {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        cursor.blanks();
        cursor.integer("a sequence number")?;
        cursor.gap()?;
        let t_ns = cursor.decimal(context.digits, "a time in seconds")?;
        cursor.gap()?;
        let lat_ns = cursor.decimal(context.digits, "a duration in seconds")?;
        cursor.gap()?;
        let dev = context.device(cursor.word())?;
        cursor.gap()?;
        let op = match cursor.word() {
            b"Read" => TraceOp::Read,
            b"Write" => TraceOp::Write,
            _ => return Err(cursor.expected("Read or Write")),
        };
        cursor.gap()?;
        let offset = cursor.integer("a sector")?.checked_mul(context.addr);
        cursor.gap()?;
        let place = *cursor;
        let len = cursor.integer("a count of sectors")?.checked_mul(context.unit);
        cursor.end()?;
        let mut record = request(&place, t_ns, op, offset, len)?;
        record.dev = dev;
        record.lat_ns = Some(lat_ns);
        out.push(record);
        Ok(Taken::Request)
    }
}
