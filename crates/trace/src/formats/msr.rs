//! MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Timestamp and `ResponseTime` are FILETIME ticks of 100 ns since 1601-01-01 UTC. Source: the
//! README of the traces, Narayanan, Donnelly, Rowstron, FAST 2008.

use crate::cursor::{Cursor, Expected};
use crate::lines::{Context, LineFormat, Taken, request};
use crate::{Record, TraceOp};

/// FILETIME of 1970-01-01.
const UNIX_EPOCH_TICKS: u64 = 116_444_736_000_000_000;

/// Nanoseconds per FILETIME tick.
const TICK_NS: u64 = 100;

/// Whether times are FILETIME or someone renumbered them; the first line tells.
#[derive(Debug, Clone, Copy)]
enum Clock {
    Filetime,
    Relative,
}

#[derive(Debug, Default)]
pub(crate) struct Msr {
    clock: Option<Clock>,
}

impl LineFormat for Msr {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        if self.clock.is_none() && cursor.line().starts_with(b"Timestamp") {
            return Ok(Taken::Nothing);
        }
        let start = *cursor;
        let t_ns = self.time(cursor, context)?.ok_or_else(|| start.expected("a FILETIME"))?;
        cursor.comma()?;
        let from_host = cursor.rest();
        let host = cursor.until_comma();
        cursor.comma()?;
        let disk = cursor.until_comma();
        let key = from_host.get(..host.len() + 1 + disk.len()).unwrap_or(from_host);
        let dev = context.device_named(key, |key| {
            String::from_utf8_lossy(key).replace(',', "_").escape_debug().to_string()
        })?;
        cursor.comma()?;
        let op = if cursor.take(b"Read") {
            TraceOp::Read
        } else if cursor.take(b"Write") {
            TraceOp::Write
        } else {
            return Err(cursor.expected("Read or Write"));
        };
        cursor.comma()?;
        let offset = cursor.integer("an offset in bytes")?.checked_mul(context.addr);
        cursor.comma()?;
        let place = *cursor;
        let len = cursor.integer("a size in bytes")?;
        cursor.comma()?;
        let latency = cursor.integer("a response time in ticks of 100 ns")?;
        cursor.end()?;
        let mut record = request(&place, t_ns, op, offset, Some(len))?;
        record.dev = dev;
        record.lat_ns = latency.checked_mul(TICK_NS);
        out.push(record);
        Ok(Taken::Request)
    }
}

impl Msr {
    fn time(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
    ) -> Result<Option<u64>, Expected> {
        if context.digits != 0 {
            self.clock.get_or_insert(Clock::Relative);
            return cursor.decimal(context.digits, "a time").map(Some);
        }
        let ticks = cursor.integer("a FILETIME")?;
        let clock = *self.clock.get_or_insert(if ticks < UNIX_EPOCH_TICKS {
            Clock::Relative
        } else {
            context.facts.unix = true;
            Clock::Filetime
        });
        let ticks = match clock {
            Clock::Filetime => ticks.checked_sub(UNIX_EPOCH_TICKS),
            Clock::Relative => Some(ticks),
        };
        Ok(ticks.and_then(|ticks| ticks.checked_mul(TICK_NS)))
    }
}
