//! Storage Performance Council: `ASU,LBA,size,opcode,timestamp[,more]`; each ASU is a device.
//!
//! Source: "SPC Trace File Format Specification" revision 1.0.1; the `UMass` traces use 512 B LBAs.

use crate::cursor::{Cursor, Expected};
use crate::lines::{Context, LineFormat, Taken, request};
use crate::{Record, TraceOp};

#[derive(Debug)]
pub(crate) struct Spc;

impl LineFormat for Spc {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        cursor.blanks();
        let from_asu = cursor.rest();
        cursor.integer("an ASU number")?;
        let asu = from_asu.get(..from_asu.len() - cursor.rest().len()).unwrap_or_default();
        let dev = context.device(asu)?;
        cursor.comma()?;
        let offset = cursor.integer("an LBA")?.checked_mul(context.addr);
        cursor.comma()?;
        let place = *cursor;
        let len = cursor.integer("a size in bytes")?;
        cursor.comma()?;
        let op = match cursor.peek() {
            Some(b'r' | b'R') => TraceOp::Read,
            Some(b'w' | b'W') => TraceOp::Write,
            _ => return Err(cursor.expected("an opcode of r R w W")),
        };
        cursor.skip(1);
        cursor.comma()?;
        let t_ns = cursor.decimal(context.digits, "a time in seconds")?;
        cursor.blanks();
        // Optional fields follow a further comma and mean nothing here.
        if cursor.peek().is_some() {
            cursor.comma()?;
        }
        let mut record = request(&place, t_ns, op, offset, Some(len))?;
        record.dev = dev;
        out.push(record);
        Ok(Taken::Request)
    }
}
