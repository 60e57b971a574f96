//! fio I/O logs: line 1 `fio version 2 iolog` or `3`, then `file action [offset length]`, in
//! version 3 with a time in us before it.
//!
//! Source: fio(1), section "Trace file format". Version 2 has no times except `wait`, whose offset
//! is in us.

use crate::cursor::{Cursor, Expected};
use crate::lines::{Context, LineFormat, Taken, request};
use crate::{Record, TraceOp};

/// Nanoseconds in the unit of a `wait`.
const WAIT_NS: u64 = 1_000;

#[derive(Debug, Default)]
pub(crate) struct FioIolog {
    version: Option<u64>,
    now_ns: u64,
}

impl LineFormat for FioIolog {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        let Some(version) = self.version else {
            self.version = Some(version(cursor)?);
            context.facts.untimed = self.version == Some(2);
            return Ok(Taken::Nothing);
        };
        if version == 3 {
            self.now_ns = cursor.decimal(context.digits, "a time in us")?;
            cursor.gap()?;
        }
        let file = cursor.word();
        cursor.gap()?;
        let place = *cursor;
        let op = match cursor.word() {
            b"read" => TraceOp::Read,
            b"write" => TraceOp::Write,
            b"sync" | b"datasync" => TraceOp::Flush,
            b"trim" => TraceOp::Trim,
            b"add" | b"open" | b"close" => return Ok(Taken::Nothing),
            b"wait" if version == 2 => return self.wait(cursor, context),
            _ => return Err(place.expected("read write sync datasync trim add open close")),
        };
        let (offset, len) = if op == TraceOp::Flush {
            // fio writes meaningless numbers after a sync.
            (Some(0), Some(0))
        } else {
            cursor.gap()?;
            let offset = cursor.integer("an offset in bytes")?.checked_mul(context.addr);
            cursor.gap()?;
            let len = cursor.integer("a length in bytes")?.checked_mul(context.unit);
            cursor.end()?;
            (offset, len)
        };
        let mut record = request(&place, self.now_ns, op, offset, len)?;
        record.dev = context.device(file)?;
        out.push(record);
        Ok(Taken::Request)
    }
}

impl FioIolog {
    fn wait(&mut self, cursor: &mut Cursor<'_>, context: &mut Context) -> Result<Taken, Expected> {
        cursor.gap()?;
        let place = *cursor;
        let us = cursor.integer("a wait in us")?;
        self.now_ns = us
            .checked_mul(WAIT_NS)
            .and_then(|wait| self.now_ns.checked_add(wait))
            .ok_or_else(|| place.expected("times below 2^64 ns"))?;
        context.facts.untimed = false;
        Ok(Taken::Nothing)
    }
}

fn version(cursor: &mut Cursor<'_>) -> Result<u64, Expected> {
    let what = "fio version 2 iolog, or 3";
    if !cursor.take(b"fio version ") {
        return Err(cursor.expected(what));
    }
    let place = *cursor;
    let version = cursor.integer(what)?;
    if !(2..=3).contains(&version) || cursor.rest() != b" iolog" {
        return Err(place.expected(what));
    }
    Ok(version)
}
