//! Cloud block traces as CSV without a header.
//!
//! Alibaba: `device_id,R/W,offset,length,timestamp_us`, bytes. K5cloud:
//! `vol_id,time_s,R/W,offset,size`, bytes. Tencent: `timestamp_s,offset,size,type,volume`, sectors
//! of 512 B, 0 = read.

use crate::cursor::{Cursor, Expected};
use crate::lines::{Context, LineFormat, Taken, request};
use crate::{Record, TraceOp};

#[derive(Debug)]
pub(crate) struct Alibaba;

impl LineFormat for Alibaba {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        if cursor.line().starts_with(b"device_id,") {
            return Ok(Taken::Nothing);
        }
        let dev = volume(cursor, context)?;
        cursor.comma()?;
        let op = letter(cursor)?;
        cursor.comma()?;
        let offset = cursor.integer("an offset")?.checked_mul(context.addr);
        cursor.comma()?;
        let place = *cursor;
        let len = cursor.integer("a length")?.checked_mul(context.unit);
        cursor.comma()?;
        let t_ns = cursor.decimal(context.digits, "a time in us")?;
        cursor.end()?;
        context.facts.unix = true;
        let mut record = request(&place, t_ns, op, offset, len)?;
        record.dev = dev;
        out.push(record);
        Ok(Taken::Request)
    }
}

#[derive(Debug)]
pub(crate) struct K5cloud;

impl LineFormat for K5cloud {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        let dev = volume(cursor, context)?;
        cursor.comma()?;
        let t_ns = cursor.decimal(context.digits, "a time in seconds")?;
        cursor.comma()?;
        let op = letter(cursor)?;
        cursor.comma()?;
        let offset = cursor.integer("an offset")?.checked_mul(context.addr);
        cursor.comma()?;
        let place = *cursor;
        let len = cursor.integer("a size")?.checked_mul(context.unit);
        cursor.end()?;
        let mut record = request(&place, t_ns, op, offset, len)?;
        record.dev = dev;
        out.push(record);
        Ok(Taken::Request)
    }
}

#[derive(Debug)]
pub(crate) struct Tencent;

impl LineFormat for Tencent {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        if cursor.line().starts_with(b"Timestamp,") {
            return Ok(Taken::Nothing);
        }
        let t_ns = cursor.decimal(context.digits, "a time in seconds")?;
        cursor.comma()?;
        let offset = cursor.integer("an offset")?.checked_mul(context.addr);
        cursor.comma()?;
        let place = *cursor;
        let len = cursor.integer("a size")?.checked_mul(context.unit);
        cursor.comma()?;
        let kind_place = *cursor;
        let kind = cursor.integer("a type of 0 or 1")?;
        if kind > 1 {
            return Err(kind_place.expected("a type of 0 or 1"));
        }
        cursor.comma()?;
        let dev = volume(cursor, context)?;
        cursor.end()?;
        context.facts.unix = true;
        let op = if kind == context.read { TraceOp::Read } else { TraceOp::Write };
        let mut record = request(&place, t_ns, op, offset, len)?;
        record.dev = dev;
        out.push(record);
        Ok(Taken::Request)
    }
}

fn volume(cursor: &mut Cursor<'_>, context: &mut Context) -> Result<u16, Expected> {
    let name = cursor.until_comma();
    if name.is_empty() {
        return Err(cursor.expected("a volume"));
    }
    context.device(name)
}

fn letter(cursor: &mut Cursor<'_>) -> Result<TraceOp, Expected> {
    let op = match cursor.peek() {
        Some(b'R' | b'r') => TraceOp::Read,
        Some(b'W' | b'w') => TraceOp::Write,
        _ => return Err(cursor.expected("an operation of R W")),
    };
    cursor.skip(1);
    Ok(op)
}
