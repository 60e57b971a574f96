//! FIU I/O deduplication: `ts_ns pid process lba size rw major minor md5`.
//!
//! One 4 KiB block per line, LBA and size in 512 B. The homes volumes have eight digests per line,
//! one per sector. Lines written by Onefold name the process `-`, use the major number for FUA,
//! know the operations F, D and Z, and write `-` where there is no digest. Source: Koller, Rangaswami,
//! "I/O Deduplication", FAST 2010, and the README of SNIA IOTTA set 390.

use onefold_units::SECTOR_BYTES;
use onefold_units::convert::low32;

use crate::cursor::{Cursor, Expected};
use crate::formats::{digest, fold_digests};
use crate::lines::{Context, LineFormat, Taken, request};
use crate::{Digest, Flags, Record, TraceOp};

/// Hexadecimal digits of one MD5 and of eight.
const DIGEST_DIGITS: usize = 32;
const SECTOR_DIGESTS_DIGITS: usize = 8 * DIGEST_DIGITS;

#[derive(Debug)]
pub(crate) struct Fiu;

impl LineFormat for Fiu {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        context.facts.split_requests = true;
        let t_ns = cursor.decimal(context.digits, "a time")?;
        cursor.gap()?;
        let pid = cursor.integer("a process number")?;
        cursor.gap()?;
        let ours = cursor.word() == b"-";
        cursor.gap()?;
        let offset = cursor.integer("an LBA of 512 B")?.checked_mul(context.addr);
        cursor.gap()?;
        let place = *cursor;
        let len = cursor.integer("a size in 512 B")?.checked_mul(SECTOR_BYTES);
        cursor.gap()?;
        let op = operation(cursor)?;
        cursor.gap()?;
        let from_major = cursor.rest();
        let major = cursor.integer("a major number")?;
        cursor.gap()?;
        cursor.integer("a minor number")?;
        let key = from_major.get(..from_major.len() - cursor.rest().len()).unwrap_or_default();
        let dev = if ours { context.device(b"0,0")? } else { context.device_named(key, name)? };
        cursor.gap()?;
        let digest = content(cursor)?;
        cursor.end()?;
        let mut record = request(&place, t_ns, op, offset, len)?;
        record.dev = dev;
        // Truncated: it only tells apart requests of one instant.
        record.client = u16::try_from(low32(pid) & 0xFFFF).unwrap_or_default();
        if ours && major != 0 {
            record.flags = Flags::FUA;
        }
        if op == TraceOp::Write {
            record.digests = digest.map(|digest| one_page(&record, digest));
        }
        out.push(record);
        Ok(Taken::Request)
    }
}

fn name(key: &[u8]) -> String {
    String::from_utf8_lossy(key).split_ascii_whitespace().collect::<Vec<_>>().join(",")
}

fn operation(cursor: &mut Cursor<'_>) -> Result<TraceOp, Expected> {
    let op = match cursor.peek() {
        Some(b'R' | b'r') => TraceOp::Read,
        Some(b'W' | b'w') => TraceOp::Write,
        Some(b'F') => TraceOp::Flush,
        Some(b'D') => TraceOp::Trim,
        Some(b'Z') => TraceOp::WriteZeroes,
        _ => return Err(cursor.expected("an operation of R W F D Z")),
    };
    cursor.skip(1);
    Ok(op)
}

fn content(cursor: &mut Cursor<'_>) -> Result<Option<Digest>, Expected> {
    let place = *cursor;
    let hex = cursor.word();
    let found = match hex.len() {
        1 if hex == b"-" => return Ok(None),
        DIGEST_DIGITS => digest(hex),
        SECTOR_DIGESTS_DIGITS => fold_digests(hex),
        _ => None,
    };
    found.map(Some).ok_or_else(|| place.expected("32 or 256 hexadecimal digits, or -"))
}

/// The digests of a write whose line has one: it counts only where it covers whole pages.
fn one_page(record: &Record, digest: Digest) -> Box<[Digest]> {
    let (_, pages) = record.pages();
    if pages == 1 && record.len == onefold_units::PAGE_BYTES {
        Box::new([digest])
    } else {
        // Off the page grid or of another size: equality of pages cannot be told.
        std::iter::repeat_n([0; 16], onefold_units::convert::index64(pages)).collect()
    }
}
