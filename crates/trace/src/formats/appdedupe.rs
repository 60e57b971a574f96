//! Deduplication traces by application: `t_s R/W lba512 size512 pid process md5-md5-...`, one MD5
//! per 4 KiB.

use onefold_units::SECTOR_BYTES;
use onefold_units::convert::low32;

use crate::cursor::{Cursor, Expected};
use crate::formats::digest;
use crate::lines::{Context, LineFormat, Taken, request};
use crate::{Digest, Record, TraceOp};

#[derive(Debug)]
pub(crate) struct Appdedupe;

impl LineFormat for Appdedupe {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        let t_ns = cursor.decimal(context.digits, "a time in seconds")?;
        cursor.gap()?;
        let op = match cursor.word() {
            b"R" | b"r" => TraceOp::Read,
            b"W" | b"w" => TraceOp::Write,
            _ => return Err(cursor.expected("an operation of R W")),
        };
        cursor.gap()?;
        let offset = cursor.integer("an LBA of 512 B")?.checked_mul(context.addr);
        cursor.gap()?;
        let place = *cursor;
        let len = cursor.integer("a size in 512 B")?.checked_mul(SECTOR_BYTES);
        cursor.gap()?;
        let pid = cursor.integer("a process number")?;
        cursor.gap()?;
        cursor.word();
        cursor.gap()?;
        let digests = digests(cursor)?;
        cursor.end()?;
        let mut record = request(&place, t_ns, op, offset, len)?;
        record.client = u16::try_from(low32(pid) & 0xFFFF).unwrap_or_default();
        let (_, pages) = record.pages();
        // Off the page grid the digests describe other pages than ours.
        if op == TraceOp::Write && onefold_units::convert::u64_from(digests.len()) == pages {
            record.digests = Some(digests.into());
        }
        out.push(record);
        Ok(Taken::Request)
    }
}

fn digests(cursor: &mut Cursor<'_>) -> Result<Vec<Digest>, Expected> {
    let place = *cursor;
    let what = "digests of 32 hexadecimal digits joined by -";
    let word = cursor.word();
    if word == b"-" {
        return Ok(Vec::new());
    }
    word.split(|byte| *byte == b'-')
        .map(|part| digest(part).ok_or_else(|| place.expected(what)))
        .collect()
}
